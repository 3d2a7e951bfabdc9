"""The lag between target and position is found, and not invented where nothing moves."""

import numpy as np
import pytest

from g1_policy_node.tools.tape.actuator import joint_lags, lag_ms
from g1_policy_node.tools.tape.tape import Series

MS = 1_000_000
TIME = np.arange(5000)


def gait(t):
    return 0.3 * np.sin(2 * np.pi * t / 800) + 0.1 * np.sin(2 * np.pi * t / 270)


@pytest.mark.parametrize('lag', [0, 17, 60, 150])
def test_a_known_lag_is_found(lag: int) -> None:
    found, correlation = lag_ms(gait(TIME), 0.8 * gait(TIME - lag) + 0.05)
    assert found == lag
    assert correlation == pytest.approx(1.0)


def test_a_joint_that_hardly_moves_or_does_not_follow_has_no_lag() -> None:
    noise = np.random.default_rng(0).normal(0, 0.2, len(TIME))
    assert lag_ms(0.01 * gait(TIME), gait(TIME)) is None
    assert lag_ms(gait(TIME), noise) is None


def test_joints_are_matched_by_name_and_targets_held_between_commands() -> None:
    slow, fast = np.arange(0, 5000, 20), np.arange(0, 5000, 5)
    target = Series(slow * MS, slow, ('a', 'b'), np.array([gait(slow), gait(slow)]).T)
    moved = np.array([gait(fast - 40), np.zeros(len(fast))]).T
    lags = joint_lags(target, Series(fast * MS, fast, ('b', 'a'), moved))
    assert lags['a'] is None
    assert lags['b'][0] == pytest.approx(30, abs=2)  # the hold itself is 10 ms of the 40
