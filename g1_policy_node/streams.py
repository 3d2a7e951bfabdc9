"""What the stamps of a topic say about it: order, repeats, delay, and a second sender. Pure."""

from g1_policy_node.types import Fault, Stamps

S = 1_000_000_000
MAX_RATE_HZ = 2000
"""Faster than any driver publishes: twice the 1 kHz that the router is tested with."""
PATIENCE_NS = S
"""Silence of the sender that is followed, after which another one may take its place."""
CLOCK_DRIFT = 1e-3
"""How far two clocks may drift apart, s/s: ten times a bad crystal."""


class SenderWatch:
    """Follows one sender of a topic, by the counter of its messages; a second is refused.

    A counter that falls, or rises faster than any driver sends, is another sender's. Only after
    `patience_ns` without the one that is followed may another take its place.
    """

    def __init__(self, patience_ns: int = PATIENCE_NS) -> None:
        self._patience = patience_ns
        self._followed: tuple[int, int] | None = None  # counter, received

    def is_second(self, sequence: int, received: int) -> bool:
        """Take a message's counter (0 if unknown); True if it is not the followed sender's."""
        if not sequence:
            return False
        if self._followed is not None:
            last, at = self._followed
            quiet = received - at
            if quiet <= self._patience and not follows(sequence, last, quiet):
                return True
        self._followed = sequence, received
        return False


def follows(sequence: int, last: int, elapsed_ns: int) -> bool:
    """Whether a counter can be the same sender's as the `last` one, `elapsed_ns` earlier."""
    return 0 < sequence - last <= 10 + MAX_RATE_HZ * max(elapsed_ns, 0) // S


class Stream:
    """The order and the delay of one topic's samples. Times are ns.

    `late_ns` is how much more than the least delay seen a sample may have; only differences
    of the delay are used, as the sender's clock need not be ours.
    """

    def __init__(self, topic: str, late_ns: int, fresh_ns: int) -> None:
        self._topic = topic
        self._late = late_ns
        self._fresh = fresh_ns
        self._sender = SenderWatch()
        self._least: int | None = None
        self._seen_at = 0

    def clock_stepped(self) -> None:
        """Forget the least delay: the clocks it was measured with were set."""
        self._least = None

    def check(self, new: Stamps, last: Stamps | None, now: int) -> Fault | None:
        """Return what is wrong with the stamps of a sample, given the last good one's."""
        if self._sender.is_second(new.sequence, new.received):
            return Fault('second_sender', f'{self._topic} comes from a second sender')
        if not new.header:  # unset: there is no order to check
            return None
        if last is not None and new.header == last.header:
            return Fault('duplicate', f'{self._topic} repeats the stamp of the sample before')
        if last is not None and new.header < last.header:
            if now - last.received <= self._fresh:
                older = f'{self._topic} came with a stamp older than the sample before it'
                return Fault('stamp_order', older)
            self._least = None  # nothing was fresh any more: a restarted driver's clock
        return self._lateness(new)

    def _lateness(self, new: Stamps) -> Fault | None:
        delay = new.received - new.header
        drift = round((new.received - self._seen_at) * CLOCK_DRIFT)
        self._seen_at = new.received
        self._least = delay if self._least is None else min(delay, self._least + drift)
        late = delay - self._least
        if late <= self._late:
            return None
        return Fault('late', f'{self._topic} came {late / 1e6:.0f} ms later than it can')
