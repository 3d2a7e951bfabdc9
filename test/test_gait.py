"""The gait clock is integer, exact, and stands still with the robot."""

import math

import numpy as np
import pytest
from samples import CONTRACT

from g1_policy_node import gait

GAIT = CONTRACT.gait
WALKING, STANDING = np.array([0.5, 0.0, 0.0]), np.array([0.05, 0.05, 0.05])


def test_feet_are_half_a_period_apart_and_wrap() -> None:
    assert [gait.foot_ticks(GAIT, k) for k in (0, 19, 20, 39, 40)] == [
        (0, 20),
        (19, 39),
        (20, 0),
        (39, 19),
        (0, 20),
    ]


@pytest.mark.parametrize(('tick', 'down'), [(0, 1.0), (21, 1.0), (22, 0.0), (39, 0.0), (40, 1.0)])
def test_contact_ends_at_exactly_tick_22_of_40(tick: int, down: float) -> None:
    assert gait.contact(GAIT, tick, WALKING)[0] == down


def test_phase_is_tick_over_period() -> None:
    for k in range(80):
        phase = (k % 40) / 40
        left = math.sin(2 * math.pi * phase)
        assert gait.phase_sin(GAIT, k, WALKING)[0] == pytest.approx(left, abs=1e-14)
        right = math.cos(2 * math.pi * ((phase + 0.5) % 1))
        assert gait.phase_cos(GAIT, k, WALKING)[1] == pytest.approx(right, abs=1e-14)


def test_below_the_threshold_of_all_three_components_it_stands() -> None:
    assert gait.is_standing(GAIT, STANDING)
    assert not gait.is_standing(GAIT, np.array([0.06, 0.06, 0.06]))
    for k in (0, 7, 33):
        assert not gait.phase_sin(GAIT, k, STANDING).any()
        assert not gait.phase_cos(GAIT, k, STANDING).any()
        assert gait.contact(GAIT, k, STANDING).all()
