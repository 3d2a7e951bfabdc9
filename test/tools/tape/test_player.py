"""A replay publishes sensors and commands alone, at their own times, in one order."""

from itertools import pairwise

import pytest
from tapes import messages, write_tape

from g1_policy_node.tools.tape.player import play, schedule, sequence_hash, spacing_error
from g1_policy_node.tools.tape.tape import open_tape


class Time:
    """A clock that only sleeping moves; it is late by `late` after every sleep."""

    def __init__(self, late: float = 0.0) -> None:
        self.now, self.late = 100.0, late

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.late * (seconds > 0)


@pytest.fixture
def due(tmp_path):
    return schedule(open_tape(write_tape(tmp_path / 'a', messages(ticks=5))))


def run(due, rate: float = 1.0, time: Time | None = None):
    time = time or Time()
    published, told = [], []
    at = list(
        play(due, rate, published.append, told.append, lambda: False, time.clock, time.sleep)
    )
    return at, published, told


def test_joint_targets_are_never_published(due) -> None:
    assert {item.topic for item in due} == {'joint_states', 'imu/data'}
    assert len(due) == 40


@pytest.mark.parametrize('rate', [1.0, 0.5, 4.0])
def test_messages_keep_their_times_at_every_rate(due, rate: float) -> None:
    at, published, _ = run(due, rate)
    assert published == due
    assert at == pytest.approx([item.at * 1e-9 / rate for item in due])
    assert spacing_error(due, at, rate)['max'] == pytest.approx(0.0, abs=1e-6)


def test_lateness_does_not_add_up_and_shows_in_the_spacing_error(due) -> None:
    at, _, _ = run(due, time=Time(late=0.001))
    assert at[-1] == pytest.approx(due[-1].at * 1e-9 + 0.001)
    assert 0.9 < spacing_error(due, at, 1.0)['max'] < 1.1


def test_the_clock_never_runs_back_and_reaches_the_end(due) -> None:
    _, _, told = run(due)
    assert told == sorted(told)
    assert told[-1] == due[-1].at
    assert max(b - a for a, b in pairwise(told)) <= 5_000_000


def test_two_replays_of_one_tape_have_one_sequence(due) -> None:
    assert sequence_hash(due) == sequence_hash(list(due))
    assert sequence_hash(due) != sequence_hash(due[::-1])
