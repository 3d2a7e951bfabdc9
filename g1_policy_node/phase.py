"""When in its slot a tick starts: just after a sensor sample has come. Pure.

Node and robot have clocks of their own: without this a tick finds a sample of any age up to an
interval, half of one on average. The slots stay where they are.
"""

AFTER = 0.1
"""Age of a sample that a tick aims at, in intervals: room for the jitter of the sender."""
LONGEST_INTERVAL_NS = 6_000_000
"""A sensor slower than 200 Hz, jitter allowed for, is not waited for: it would take too much of
the slot."""
GAIN = 0.1
"""Share of an error that one tick corrects: jitter is averaged, drift of a clock followed."""


class ArrivalPhase:
    """Learns from the samples taken how long after its slot's start a tick best begins.

    `delay` is that in ns, less than one and a half intervals of the sensor.
    """

    def __init__(self) -> None:
        self.delay = 0
        self._last: tuple[int, int] | None = None  # sequence, received

    def update(self, sequence: int, received: int, now: int) -> None:
        """Take the newest sample's counter and reception (ns), found by a tick at `now`."""
        last, self._last = self._last, (sequence, received)
        if last is None or sequence <= last[0]:
            return
        interval = (received - last[1]) / (sequence - last[0])
        if not 0 < interval <= LONGEST_INTERVAL_NS:
            self.delay = 0
            return
        half = interval / 2
        early = (received + AFTER * interval - now + half) % interval - half
        delay = self.delay + GAIN * early
        # Half an interval of slack, lest jitter sends a delay near 0 to and fro.
        if delay < 0:
            delay += interval
        elif delay >= interval + half:
            delay -= interval
        self.delay = min(round(delay), 2 * LONGEST_INTERVAL_NS)
