"""Receive stamps reach the tick clock whatever the system clock does."""

import pytest

from g1_policy_node import clock
from g1_policy_node.clock import Pair, SteadyClock, SystemTime

S = 1_000_000_000
MS = 1_000_000


class Host:
    """A host with a monotonic clock and a system clock that somebody sets."""

    def __init__(self, monkeypatch) -> None:
        self.monotonic = 5 * S
        self.offset = 1_700_000_000 * S
        monkeypatch.setattr(clock, 'read_pair', self.read_pair)

    def read_pair(self) -> Pair:
        return Pair(self.monotonic + self.offset, self.monotonic)


@pytest.fixture
def host(monkeypatch) -> Host:
    return Host(monkeypatch)


def test_a_receive_stamp_becomes_the_monotonic_time_it_came_at(host: Host) -> None:
    system = SystemTime()
    received = host.read_pair().system
    host.monotonic += 7 * MS
    assert system.read() == 0
    assert system.monotonic(received) == host.monotonic - 7 * MS


@pytest.mark.parametrize('step', [-3600 * S, -5 * S, -50 * MS, 50 * MS, 5 * S, 3600 * S])
@pytest.mark.parametrize('came', ['before the step', 'after the step'])
def test_a_step_of_the_system_clock_is_told_once_and_changes_no_age(host, step, came) -> None:
    system = SystemTime()
    received = host.read_pair().system
    if came == 'after the step':
        received += step
    host.monotonic += 7 * MS
    host.offset += step
    assert system.read() == step
    age = host.monotonic - system.monotonic(received)
    assert 0 <= age <= 7 * MS
    host.monotonic += 20 * MS
    assert system.read() == 0
    assert system.steps == 1


@pytest.mark.parametrize('step', [-3600 * S, -5 * S, -50 * MS, 50 * MS, 5 * S, 3600 * S])
@pytest.mark.parametrize('read', ['before the step', 'after the step'])
def test_a_message_that_comes_between_reading_and_taking_is_of_now(host, step, read) -> None:
    system = SystemTime()
    host.monotonic += 20 * MS
    if read == 'after the step':
        host.offset += step
    system.read()
    read_at = host.monotonic
    if read == 'before the step':
        host.offset += step
    host.monotonic += 1 * MS
    received = host.read_pair().system
    host.monotonic += 1 * MS
    assert system.monotonic(received) == read_at


@pytest.mark.parametrize('step', [-5 * S, 5 * S])
def test_a_message_of_before_a_step_keeps_its_age_over_several_readings(host, step) -> None:
    system = SystemTime()
    received, came = host.read_pair().system, host.monotonic
    host.monotonic += 7 * MS
    host.offset += step
    system.read()
    host.monotonic += 1 * MS
    assert system.read() == 0
    assert system.monotonic(received) == came


def test_slewing_is_no_step(host: Host) -> None:
    system = SystemTime()
    for _ in range(100):
        host.monotonic += 20 * MS
        host.offset += 10_000  # 500 ppm
        assert system.read() == 0
    assert system.steps == 0


def test_a_stamp_of_the_future_is_now(host: Host) -> None:
    system = SystemTime()
    assert system.monotonic(host.read_pair().system + 3 * S) == host.monotonic


def test_steady_sleep_reaches_its_deadline_and_one_in_the_past_returns() -> None:
    steady = SteadyClock()
    when = steady.now() + 3 * MS
    assert steady.sleep_until(when)
    assert steady.now() >= when
    assert steady.sleep_until(when - S)
    assert not steady.jumped_back()
