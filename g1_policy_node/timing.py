"""Slots of 20 ms, missed slots, and the record of every tick. Works on any clock's ns."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK_ROWS = 1 << 15
"""Rows per allocation: eleven minutes at 50 Hz."""


class SlotGrid:
    """Slots t0 + k * period on the tick clock; late ones are skipped, never replayed."""

    def __init__(self, period_ns: int, t0: int) -> None:
        self.period_ns = period_ns
        self.t0 = t0

    def start(self, slot: int) -> int:
        """Return when `slot` starts, ns."""
        return self.t0 + slot * self.period_ns

    def at(self, now: int) -> int:
        """Return the slot that `now` is in."""
        return (now - self.t0) // self.period_ns


class MissCounter:
    """Counts the slots in which no command was published while one was due.

    `slots` is the denominator: slots in a commanding mode. Slots are numbers of a SlotGrid.
    """

    def __init__(self) -> None:
        self.slots = 0
        self.misses = 0
        self.longest_gap = 0
        self._last: int | None = None

    def published(self, slot: int) -> None:
        """Note a command inside `slot`; the commanding slots since the last one were missed."""
        if self._last is None:
            self._last = slot - 1
        missed = max(0, slot - self._last - 1)
        self.misses += missed
        self.slots += max(0, slot - self._last)
        self.longest_gap = max(self.longest_gap, missed)
        self._last = slot

    def not_due(self) -> None:
        """Note that no command is due from here on (the mode commands nothing)."""
        self._last = None


INT_COLUMNS = (
    'slot',
    'tick_ns',
    'scheduled',
    'woken',
    'taken',
    'observed',
    'acted',
    'checked',
    'published',
    'joint_age',
    'imu_age',
    'command_age',
    'joint_transport',
    'imu_transport',
    'mode',
    'verdict',
    'gait',
)
"""One int64 each per tick. Stages are CLOCK_MONOTONIC ns, 0 where not reached; ages are ns by
receive time, -1 where there is no sample; transport is DDS receive minus source time, ns."""


class Recorder:
    """Keeps one row per tick in arrays made ahead of time; nothing is written on the tick."""

    def __init__(self) -> None:
        self.rows = 0
        self._chunks: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []

    def add(self, row: tuple[int, ...], command: NDArray[np.float64]) -> None:
        """Append a row in the order of INT_COLUMNS, and the command (3,) the policy got."""
        at = self.rows % CHUNK_ROWS
        if at == 0:
            ints = np.empty((CHUNK_ROWS, len(INT_COLUMNS)), dtype=np.int64)
            self._chunks.append((ints, np.empty((CHUNK_ROWS, 3))))
        ints, commands = self._chunks[-1]
        ints[at] = row
        commands[at] = command
        self.rows += 1

    def columns(self, last: int | None = None) -> dict[str, NDArray[Any]]:
        """Return the columns (T,) and `command` (T, 3); of the newest `last` rows if given."""
        rows = self.rows
        first = 0 if last is None else max(0, rows - last)
        chunks = self._chunks[first // CHUNK_ROWS : (rows + CHUNK_ROWS - 1) // CHUNK_ROWS]
        skip = first - first // CHUNK_ROWS * CHUNK_ROWS
        empty = (np.empty((0, len(INT_COLUMNS)), dtype=np.int64), np.empty((0, 3)))
        ints, commands = (
            np.concatenate(part)[skip : skip + rows - first]
            for part in zip(*(chunks or [empty]), strict=True)
        )
        named: dict[str, NDArray[Any]] = {n: ints[:, i] for i, n in enumerate(INT_COLUMNS)}
        return {**named, 'command': commands}

    def save(self, path: Path) -> None:
        """Write timing.npz, whole or not at all."""
        partial = path.with_suffix('.partial.npz')
        np.savez(partial, allow_pickle=False, **self.columns())
        partial.replace(path)
