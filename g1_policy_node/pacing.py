"""When a driver's next step is due: in real time, or one tick per command."""

import time
from collections.abc import Callable

SLACK_NS = 5_000_000
"""How far the simulation may lag and catch up: one physics step of training."""


class RealTimePace:
    """Sleeps to absolute deadlines one step apart; late by more than SLACK_NS, it re-bases.

    So no step is left out and none is made up for in a burst: simulated time falls behind
    instead, and `lost_ns` says by how much. All times are ns on a steady clock.
    """

    def __init__(
        self,
        step_ns: int,
        now: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._step = step_ns
        self._now = now
        self._sleep = sleep
        self.rebases = 0
        self.lost_ns = 0
        self.restart()

    def restart(self) -> None:
        """Begin anew: the next deadline is one step from now."""
        self._due = self._now() + self._step

    def wait(self) -> None:
        """Sleep until the step is due."""
        early = self._due - self._now()
        if early > 0:
            self._sleep(early * 1e-9)
        elif -early > SLACK_NS:
            self.rebases += 1
            self.lost_ns -= early
            self._due -= early
        self._due += self._step


class LockStep:
    """Keeps simulated time within one tick of the newest command's stamp, once one has come.

    Counting from each command keeps a policy that ticks off the grid once from waiting for ever.
    """

    def __init__(self, tick_ns: int, step_ns: int) -> None:
        self._tick = tick_ns
        self._step = step_ns
        self._stamp: int | None = None

    @property
    def engaged(self) -> bool:
        """Whether time advances by commands."""
        return self._stamp is not None

    def command(self, stamp: int, now: int) -> bool:
        """Take a command's stamp, ns of simulated time; False, and free, if it cannot be one."""
        self._stamp = stamp if 0 < stamp <= now else None
        return self.engaged

    def must_wait(self, now: int) -> bool:
        """Whether the next step from `now` would go more than one tick past the command."""
        return self._stamp is not None and now + self._step > self._stamp + self._tick

    def give_up(self) -> None:
        """Run freely until the next command."""
        self._stamp = None
