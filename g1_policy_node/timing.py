"""Slots of 20 ms, missed slots, and the record of every tick. Works on any clock's ns."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROWS = 1 << 15
"""Rows kept in memory, 5 MB: eleven minutes at 50 Hz, for a disk that does not answer."""


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
    """Keeps the newest ROWS rows, one per tick, in arrays made ahead of time.

    Nothing is written on the tick; journal.py takes the rows to disk.
    """

    def __init__(self) -> None:
        self.rows = 0
        # Filled, so that the pages are there before the first tick.
        self._ints = np.full((ROWS, len(INT_COLUMNS)), 0, dtype=np.int64)
        self._commands = np.full((ROWS, 3), 0.0)

    def add(self, row: tuple[int, ...], command: NDArray[np.float64]) -> None:
        """Add a row in the order of INT_COLUMNS, and the command (3,) the policy got."""
        at = self.rows % ROWS
        self._ints[at] = row
        self._commands[at] = command
        self.rows += 1

    def columns(self, first: int) -> dict[str, NDArray[Any]]:
        """Return copies of the columns (T,) and `command` (T, 3) from row `first` on.

        Rows that are no longer kept are left out. `first` below 0 counts from the newest.
        """
        end = self.rows
        first = max(first if first >= 0 else end + first, end - ROWS, 0)
        at = np.arange(first, end) % ROWS
        ints, commands = self._ints[at], self._commands[at]
        return {**{n: ints[:, i] for i, n in enumerate(INT_COLUMNS)}, 'command': commands}
