"""How old a LowState is: its `tick`, milliseconds on the robot's clock, carried to the host's.

LowState has no stamp. A message can be late but never early, so the smallest difference between
receive time and tick, over a while, is that of a message that came without delay; what a message
has beyond it is its age. The path's own least delay cannot be seen from one side, and is left out.
"""

from collections import deque

TICK_NS = 1_000_000
WINDOW_NS = 10_000_000_000
BLOCK_NS = 500_000_000
_WRAP = 2**32
_JUMP_NS = 1_000_000_000


class TickClockFit:
    """Learns the offset between the clocks; `age` returns how late a message came, ns.

    Clocks drift against each other (50 ppm: 0.5 ms in 10 s), so the minimum is taken over
    blocks of the last WINDOW_NS.
    """

    def __init__(self) -> None:
        self._blocks: deque[list[int]] = deque()
        self._last: int | None = None
        self._turns = 0
        self.restarts = 0

    def age(self, tick: int, received: int) -> int:
        """Return the age of a message with `tick`, received at `received` (monotonic ns), ns."""
        if self._last is not None and tick < self._last and self._last - tick > _WRAP // 2:
            self._turns += 1
        self._last = tick
        offset = received - (tick + self._turns * _WRAP) * TICK_NS
        if self._blocks and abs(offset - self._least()) > _JUMP_NS:
            # The robot was restarted, or its clock was set.
            self._blocks.clear()
            self.restarts += 1
        if not self._blocks or received - self._blocks[-1][0] > BLOCK_NS:
            self._blocks.append([received, offset])
        self._blocks[-1][1] = min(self._blocks[-1][1], offset)
        while received - self._blocks[0][0] > WINDOW_NS:
            self._blocks.popleft()
        return offset - self._least()

    def _least(self) -> int:
        return min(offset for _, offset in self._blocks)
