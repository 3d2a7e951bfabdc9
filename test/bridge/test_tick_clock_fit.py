import numpy as np

from g1_policy_node.bridge.tick_clock_fit import TickClockFit

MS = 1_000_000
BASE = 77_000 * MS


def test_a_message_is_as_old_as_it_came_later_than_the_best() -> None:
    fit = TickClockFit()
    ages = [fit.age(2 * i, BASE + 2 * i * MS + late * MS) for i, late in enumerate([3, 0, 0, 5])]
    assert ages == [0, 0, 0, 5 * MS]


def test_drift_between_the_clocks_is_followed() -> None:
    fit = TickClockFit()
    rng = np.random.default_rng(3)
    # The robot's clock is 50 ppm slow: after 60 s one offset for all would be 3 ms off.
    for i in range(30_000):
        delay = int(rng.exponential(0.2 * MS))
        age = fit.age(2 * i, BASE + round(2 * i * MS * (1 + 50e-6)) + delay)
        if i > 100:
            assert abs(age - delay) < 0.7 * MS


def test_the_counter_may_run_over() -> None:
    fit = TickClockFit()
    start = 2**32 - 4
    assert [fit.age((start + 2 * i) % 2**32, BASE + 2 * i * MS) for i in range(5)] == [0] * 5
    assert fit.restarts == 0


def test_a_robot_that_was_restarted_is_fitted_anew() -> None:
    fit = TickClockFit()
    fit.age(500_000, BASE)
    assert fit.age(10, BASE + 2 * MS) == 0
    assert fit.restarts == 1
    assert fit.age(12, BASE + 7 * MS) == 3 * MS
