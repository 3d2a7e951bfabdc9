"""The tick clock: one clock for every timeout, steady time or ROS time under use_sim_time.

DDS receive stamps are system time. They are carried over to the tick clock by a pair of
(system, monotonic) readings taken at each tick; the two are never subtracted otherwise.
"""

import threading
import time
from collections import deque
from typing import NamedTuple, Protocol

from rclpy.clock import JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node

SYSTEM_STEP_NS = 5_000_000
"""A change of (system - monotonic) between two readings that counts as a step, not as slewing."""


STEP_MEMORY_NS = 1_000_000_000
"""How long after a step a message of before it may still be taken."""


class Pair(NamedTuple):
    """System and monotonic time read together, ns; `offset` is system minus monotonic."""

    system: int
    monotonic: int

    @property
    def offset(self) -> int:
        """System minus monotonic time, ns."""
        return self.system - self.monotonic


class SystemTime:
    """Turns DDS receive stamps into monotonic time, across steps of the system clock."""

    def __init__(self) -> None:
        self._pair = self._before = read_pair()
        self.steps = 0

    def read(self) -> int:
        """Read the pair anew; return by how many ns the system clock stepped, 0 if it did not."""
        last, self._pair = self._pair, read_pair()
        step = self._pair.offset - last.offset
        if abs(step) >= SYSTEM_STEP_NS:
            self._before = last
            self.steps += 1
            return step
        if self._pair.monotonic - self._before.monotonic > STEP_MEMORY_NS:
            self._before = self._pair
        return 0

    def monotonic(self, system_ns: int) -> int:
        """Return when a message stamped `system_ns` since the last reading came, monotonic ns.

        At most the last reading. Around a step, which may even come after that reading, the
        stamp may be of either side: the one that puts it before now, and nearest to it, is right.
        """
        now = read_pair()
        candidates = [system_ns - pair.offset for pair in (now, self._pair, self._before)]
        past = [t for t in candidates if t <= now.monotonic + SYSTEM_STEP_NS]
        return min(max(past, default=self._pair.monotonic), self._pair.monotonic)


def read_pair() -> Pair:
    """Read system and monotonic time as close together as Python can."""
    return Pair(time.time_ns(), time.monotonic_ns())


class TickClock(Protocol):
    """A clock for slots and timeouts, in ns."""

    def now(self) -> int:
        """Return the time, 0 while there is none (no /clock yet)."""
        ...

    def sleep_until(self, when: int) -> bool:
        """Sleep until `when`; False if it gave up early, to let the caller look around."""
        ...

    def at(self, monotonic_ns: int) -> int:
        """Return this clock's time at a recent monotonic time."""
        ...

    def jumped_back(self) -> bool:
        """Tell, once, that time went backwards."""
        ...


class SteadyClock:
    """CLOCK_MONOTONIC, slept on by absolute deadline."""

    def now(self) -> int:
        """Return monotonic ns."""
        return time.monotonic_ns()

    def sleep_until(self, when: int) -> bool:
        """Sleep until `when`."""
        while (left := when - time.monotonic_ns()) > 0:
            time.sleep(left * 1e-9)
        return True

    def at(self, monotonic_ns: int) -> int:
        """Return `monotonic_ns`."""
        return monotonic_ns

    def jumped_back(self) -> bool:
        """Steady time never does."""
        return False


class SimulatedClock:
    """ROS time from /clock, as the node's executor receives it."""

    PATIENCE_S = 0.1

    def __init__(self, node: Node) -> None:
        self._clock = node.get_clock()
        self._changed = threading.Condition()
        self._history: deque[tuple[int, int]] = deque(maxlen=64)
        self._went_back = False
        threshold = JumpThreshold(
            min_forward=Duration(nanoseconds=1), min_backward=Duration(nanoseconds=-1)
        )
        self._handle = self._clock.create_jump_callback(threshold, post_callback=self._on_jump)

    def now(self) -> int:
        """Return ROS time in ns, 0 before the first /clock."""
        nanoseconds: int = self._clock.now().nanoseconds
        return nanoseconds

    def sleep_until(self, when: int) -> bool:
        """Wait for /clock to reach `when`, at most PATIENCE_S of wall time."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.now() >= when or self._went_back, timeout=self.PATIENCE_S
            )
            return self.now() >= when and not self._went_back

    def at(self, monotonic_ns: int) -> int:
        """Return the first simulated time that was told at `monotonic_ns` or later.

        A driver publishes the sensors of an instant before that instant's /clock, so this is
        the instant of a sample that came at `monotonic_ns`.
        """
        for arrived, simulated in list(self._history):
            if arrived >= monotonic_ns:
                return simulated
        return self.now()

    def jumped_back(self) -> bool:
        """Tell, once, that /clock went backwards."""
        went_back, self._went_back = self._went_back, False
        return went_back

    def _on_jump(self, jump: TimeJump) -> None:
        with self._changed:
            if jump.delta.nanoseconds < 0:
                self._went_back = True
                self._history.clear()
            self._history.append((time.monotonic_ns(), self.now()))
            self._changed.notify_all()
