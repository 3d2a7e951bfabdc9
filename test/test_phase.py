"""A tick comes to start just after a sample, whatever the sensor's phase, drift and jitter."""

import numpy as np
import pytest
from samples import MS

from g1_policy_node.phase import AFTER, LONGEST_INTERVAL_NS, ArrivalPhase

PERIOD = 20 * MS


def ages(interval: float, first: float, jitter: float = 0.0, ticks: int = 500) -> np.ndarray:
    """Return each tick's sample age in ns; the sensor's first sample comes at `first`."""
    rng = np.random.default_rng(0)
    count = int((ticks + 2) * PERIOD / interval)
    arrivals = np.sort(first + interval * np.arange(count) + jitter * rng.random(count))
    phase, out = ArrivalPhase(), []
    for slot in range(1, ticks + 1):
        now = slot * PERIOD + phase.delay
        newest = int(np.searchsorted(arrivals, now, side='right')) - 1
        out.append(now - arrivals[newest])
        phase.update(newest + 1, int(arrivals[newest]), now)
        assert 0 <= phase.delay < 1.5 * interval + 1
    return np.array(out)


@pytest.mark.parametrize('share', [0.0, 0.01, 0.3, 0.5, 0.77, 0.99])
@pytest.mark.parametrize('interval_ms', [0.5, 1.0, 2.0, 5.0])
def test_whatever_the_phase_a_sample_is_soon_as_young_as_aimed_at(
    interval_ms: float, share: float
) -> None:
    settled = ages(interval_ms * MS, share * interval_ms * MS)[250:]
    np.testing.assert_allclose(settled, AFTER * interval_ms * MS, atol=0.02 * MS)


@pytest.mark.parametrize('drift', [-1e-4, 1e-4])
def test_a_clock_that_drifts_is_followed(drift: float) -> None:
    settled = ages(MS * (1 + drift), 0.4 * MS)[100:]
    assert abs(settled - AFTER * MS).max() < 0.05 * MS


def test_jitter_costs_little() -> None:
    settled = ages(MS, 0.4 * MS, jitter=0.1 * MS)[100:]
    assert np.median(settled) < 0.2 * MS


def test_the_jitter_of_a_sensor_at_200_hz_does_not_end_the_waiting() -> None:
    settled = ages(5 * MS, 2 * MS, jitter=0.3 * MS)[250:]
    assert np.percentile(settled, 99) < MS


def test_a_slow_or_uncounted_sensor_is_not_waited_for() -> None:
    phase = ArrivalPhase()
    for slot in range(100):
        now = slot * PERIOD + 3 * MS
        phase.update(0, slot * PERIOD, now)
        assert phase.delay == 0
    phase = ArrivalPhase()
    for slot in range(100):
        now = slot * PERIOD + 3 * MS
        phase.update(slot, slot * PERIOD, now)
        assert phase.delay == 0
    assert LONGEST_INTERVAL_NS < PERIOD


def test_a_sample_taken_before_changes_nothing() -> None:
    phase = ArrivalPhase()
    phase.update(1, 0, MS)
    phase.update(21, 20 * MS, 20 * MS + MS // 2)
    delay = phase.delay
    phase.update(21, 20 * MS, 41 * MS)
    assert phase.delay == delay > 0
