"""The stamps of a topic: order, repeats, delay and a second sender."""

from hypothesis import given
from hypothesis import strategies as st
from samples import MS

from g1_policy_node.streams import PATIENCE_NS, SenderWatch, Stream
from g1_policy_node.types import Fault, Stamps

FRESH = 60 * MS
PERIOD = 5 * MS
OFFSET = 12_345_000 * MS
"""The sender's clock is another one."""


def stamps(received: int, late: int = 0) -> Stamps:
    return Stamps(received + OFFSET - late, 0, received, 0)


class Feed:
    """Feeds a stream and remembers the last good stamps, as the gate of inputs does."""

    def __init__(self) -> None:
        self.stream = Stream('topic', FRESH, FRESH)
        self.last: Stamps | None = None

    def __call__(self, new: Stamps) -> Fault | None:
        fault = self.stream.check(new, self.last, new.received)
        self.last = self.last if fault else new
        return fault

    def name(self, new: Stamps) -> str:
        fault = self(new)
        return fault.name if fault else ''


@given(st.lists(st.integers(0, 50), min_size=2, max_size=200), st.integers(0, 10**6))
def test_one_senders_counter_is_accepted_whatever_gets_lost(lost: list[int], start: int) -> None:
    watch = SenderWatch()
    sequence, now = start + 1, 0
    for skipped in lost:
        sequence, now = sequence + 1 + skipped, now + (1 + skipped) * PERIOD
        assert not watch.is_second(sequence, now)


@given(st.integers(20, 10**6), st.lists(st.booleans(), min_size=2, max_size=100))
def test_of_two_senders_only_the_first_is_ever_accepted(apart: int, turns: list[bool]) -> None:
    watch = SenderWatch()
    now, counters = 0, [10**7, 10**7 - apart]
    assert not watch.is_second(counters[0], now)
    for second in turns:
        now += PERIOD
        counters = [counter + 1 for counter in counters]
        assert watch.is_second(counters[second], now) == second


def test_a_restarted_sender_is_taken_after_the_patience() -> None:
    watch = SenderWatch()
    assert not watch.is_second(5000, 0)
    assert watch.is_second(1, PATIENCE_NS)
    assert not watch.is_second(2, PATIENCE_NS + 1)


def test_a_middleware_that_does_not_count_is_not_judged() -> None:
    watch = SenderWatch()
    assert not any(watch.is_second(0, i) for i in range(10))


def test_a_steady_delay_of_any_length_is_no_fault_and_a_jump_of_it_is() -> None:
    feed = Feed()
    assert not any(feed(stamps(i * PERIOD, late=500 * MS)) for i in range(100))
    now = 100 * PERIOD
    assert feed.name(stamps(now, late=500 * MS + FRESH + MS)) in ('late', 'stamp_order')
    late = [feed.name(stamps(now + i * PERIOD, late=500 * MS + 70 * MS)) for i in range(15, 40)]
    assert set(late) == {'late'}


def test_clocks_that_drift_apart_are_no_fault() -> None:
    feed = Feed()
    for i in range(0, 60 * 60 * 200, 200):  # an hour at 100 ppm: 360 ms
        now = i * PERIOD
        assert feed(stamps(now, late=now // 10_000)) is None


def test_a_step_of_the_clock_is_no_fault_once_it_is_told() -> None:
    feed = Feed()
    for i in range(20):
        feed(stamps(i * PERIOD))
    feed.stream.clock_stepped()
    names = [feed.name(stamps(i * PERIOD, late=5000 * MS)) for i in range(20, 60)]
    assert set(names[:12]) == {'stamp_order'}
    assert set(names[13:]) == {''}


def test_the_same_stamp_again_is_a_repeat_also_when_nothing_is_fresh() -> None:
    feed = Feed()
    first = stamps(0)
    assert feed(first) is None
    for now in (PERIOD, FRESH, 10 * FRESH):
        assert feed.name(first._replace(received=now)) == 'duplicate'


def test_without_stamps_there_is_no_order() -> None:
    feed = Feed()
    assert not any(feed(Stamps(0, 0, i * PERIOD, 0)) for i in range(10))
