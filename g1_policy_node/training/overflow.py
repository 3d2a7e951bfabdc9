"""Watches this process's own output for the solver's word that its contacts are wrong."""

import ctypes
import os
import re
import threading
from types import TracebackType
from typing import TextIO

OVERFLOW = re.compile(rb'overflow\b.*please')
"""MuJoCo-Warp's 'nefc overflow - please increase njmax to 250', after which it goes on."""

UNCONVERGED = re.compile(rb'iterations limit reached - please')
"""MuJoCo-Warp's word that one robot's contact forces are not as exact as asked for in one step."""

KEPT = 5


class OverflowWatch:
    """Passes stdout and stderr on line by line and counts the lines about an overflow.

    Those about a solver out of iterations are counted and kept back: there are thousands of
    them, and the physics stays valid.

    Both are watched below Python, since the solver prints from compiled code. `terminal` is the
    real stdout, for what must know whether it is one.
    """

    def __init__(self) -> None:
        self.count = self.unconverged = 0
        self.lines: list[str] = []

    def __enter__(self) -> 'OverflowWatch':
        """Start watching."""
        self._real = {number: os.dup(number) for number in (1, 2)}
        self.terminal: TextIO = os.fdopen(os.dup(self._real[1]), 'w', buffering=1)
        self._threads = []
        for number, real in self._real.items():
            reading, writing = os.pipe()
            os.dup2(writing, number)
            os.close(writing)
            thread = threading.Thread(target=self._pass_on, args=(reading, real), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Put stdout and stderr back, once every line has gone through."""
        self.flush()
        for number, real in self._real.items():
            os.dup2(real, number)
        for thread in self._threads:
            thread.join(timeout=5.0)
        self.terminal.close()

    def flush(self) -> None:
        """Make what compiled code has printed so far come through."""
        ctypes.CDLL(None).fflush(None)

    def _pass_on(self, reading: int, real: int) -> None:
        with os.fdopen(reading, 'rb') as pipe:
            for line in pipe:
                if UNCONVERGED.search(line):
                    self.unconverged += 1
                    continue
                if OVERFLOW.search(line):
                    self.count += 1
                    if len(self.lines) < KEPT:
                        self.lines.append(line.decode(errors='replace').strip())
                os.write(real, line)
