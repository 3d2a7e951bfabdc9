"""The processes of a run: started together, watched, and never left behind."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from g1_policy_node.bringup import ProcessSpec, command_line

GRACE = 3.0
"""Seconds between SIGINT and SIGABRT, at which Python writes down where each thread is."""

_LAST_WORDS = 0.5
"""Seconds between SIGABRT and SIGKILL."""

_WARNINGS = ('[WARN]', '[ERROR]', '[FATAL]')
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies, however that happens."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Member:
    """One process of the crew, with its log."""

    def __init__(self, spec: ProcessSpec, log_dir: Path, environment: Mapping[str, str]) -> None:
        """Start the process in a session of its own, so that a Ctrl-C reaches it through us."""
        self.name = spec.executable
        self.log = log_dir / f'{self.name}.log'
        self._seen = 0
        with self.log.open('wb') as log:
            self.process = subprocess.Popen(
                command_line(spec),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**environment, **spec.environment},
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self.process.poll()

    def stop(self) -> bool:
        """Send SIGINT, and what ends it after GRACE; return whether SIGINT was enough."""
        if self.exit_code is not None or self._ends(signal.SIGINT, GRACE):
            return True
        if not self._ends(signal.SIGABRT, _LAST_WORDS):
            self._ends(signal.SIGKILL, None)
        return False

    def _ends(self, number: signal.Signals, within: float | None) -> bool:
        os.killpg(self.process.pid, number)
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            return False
        return True

    def tail(self, lines: int) -> list[str]:
        """Return the last lines it wrote."""
        return self.log.read_text(errors='replace').splitlines()[-lines:]

    def new_warnings(self) -> list[str]:
        """Return the complete warning lines written since the last call."""
        with self.log.open('rb') as log:
            log.seek(self._seen)
            fresh = log.read()
        complete = fresh[: fresh.rfind(b'\n') + 1]
        self._seen += len(complete)
        lines = complete.decode(errors='replace').splitlines()
        return [line for line in lines if line.startswith(_WARNINGS)]


class Crew:
    """A context in which the processes run; leaving it stops those that still do."""

    def __init__(
        self, specs: Sequence[ProcessSpec], run_dir: Path, environment: Mapping[str, str]
    ) -> None:
        self.members: list[Member] = []
        self._specs = specs
        self._log_dir = run_dir / 'log'
        self._environment = {
            **environment,
            'PYTHONUNBUFFERED': '1',
            'PYTHONFAULTHANDLER': '1',
            'RCUTILS_COLORIZED_OUTPUT': '0',
            'ROS_LOG_DIR': str(self._log_dir / 'ros'),
        }

    def __enter__(self) -> 'Crew':
        """Start them all."""
        self._log_dir.mkdir(parents=True, exist_ok=True)
        try:
            for spec in self._specs:
                self.members.append(Member(spec, self._log_dir, self._environment))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop them all."""
        self.stop()

    def ended(self) -> Member | None:
        """Return a process that has ended, a failed one if any; None while all run."""
        gone = [member for member in self.members if member.exit_code is not None]
        return max(gone, key=lambda member: member.exit_code != 0, default=None)

    def stop(self) -> list[str]:
        """Stop all, the last started first; return the names of those that had to be killed.

        In turn, so that the simulator outlives the router, which would take it for lost.
        """
        return [member.name for member in reversed(self.members) if not member.stop()]
