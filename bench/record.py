"""What a process under measurement writes down about itself: its ticks and its collections."""

import gc
import time
from pathlib import Path

import numpy as np

TICK_COLUMNS = ('scheduled', 'woken', 'published')
"""CLOCK_MONOTONIC ns; `published` is read after the command has been given to DDS."""


class CollectionLog:
    """Notes start (monotonic ns), duration (ns) and generation of every garbage collection."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, int]] = []
        self._started = 0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        now = time.monotonic_ns()
        if phase == 'start':
            self._started = now
        else:
            self.rows.append((self._started, now - self._started, info['generation']))

    def save(self, folder: Path) -> None:
        """Write collections.npy (n, 3)."""
        np.save(folder / 'collections.npy', np.array(self.rows, np.int64).reshape(-1, 3))


def save_ticks(folder: Path, rows: list[tuple[int, int, int]]) -> None:
    """Write ticks.npy (n, 3) in the order of TICK_COLUMNS."""
    np.save(folder / 'ticks.npy', np.array(rows, np.int64).reshape(-1, 3))
