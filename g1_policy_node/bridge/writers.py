"""The writer and the one standing by: started, replaced when one dies, told to leave."""

import subprocess
import sys
import time
from os import getpid

from g1_policy_node.bridge.writer_settings import WriterSettings
from g1_policy_node.types import UserError

_BAD_USAGE = 2
_PAUSE_S = 0.5
"""Least time between two starts, so that a writer that cannot live does not eat the machine."""


class Writers:
    """Two writer processes; which of them sends is decided by a lock between them."""

    def __init__(self, settings: WriterSettings) -> None:
        self._settings = settings
        self._processes: list[subprocess.Popen[bytes]] = []
        self._started_at = 0.0
        self.deaths = 0

    def tend(self) -> None:
        """Start what is missing; UserError if a writer refused its settings."""
        for process in list(self._processes):
            if (code := process.poll()) is not None:
                self._processes.remove(process)
                if code == _BAD_USAGE:
                    raise UserError('the writer process refused its settings, see above')
                self.deaths += 1
        if len(self._processes) < 2 and time.monotonic() - self._started_at >= _PAUSE_S:
            self._processes.append(self._start())

    def end(self, pid: int) -> None:
        """Kill a writer that hangs: its lock, and with it damping, goes to the other one."""
        for process in self._processes:
            if process.pid == pid and process.poll() is None:
                process.kill()

    def stop(self) -> bool:
        """Ask both to damp and leave; return whether they did."""
        for process in self._processes:
            process.terminate()
        deadline = time.monotonic() + self._settings.linger + 1.0
        for process in self._processes:
            try:
                process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                return False
        return True

    def _start(self) -> 'subprocess.Popen[bytes]':
        self._started_at = time.monotonic()
        return subprocess.Popen(
            [
                sys.executable,
                '-m',
                'g1_policy_node.bridge.writer',
                self._settings.text(),
                str(getpid()),
            ],
            pass_fds=self._settings.descriptors,
            stdin=subprocess.DEVNULL,
            # A Ctrl-C is for the node: the writer must go on, and damp.
            start_new_session=True,
        )
