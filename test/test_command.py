"""The command follows cmd_vel within the trained ranges, and ramps to zero without it."""

import numpy as np
import pytest
from samples import CONTRACT, MS, command

from g1_policy_node.command import CommandFollower

TICK = 20 * MS


@pytest.fixture
def follower() -> CommandFollower:
    return CommandFollower(CONTRACT.command_limits, 500 * MS)


def test_nothing_is_commanded_before_the_first_command(follower) -> None:
    assert not follower.follow(0, TICK).any()
    assert follower.age(0) is None


def test_a_fresh_command_is_followed_at_once(follower) -> None:
    follower.take(command([0.5, 0.1, -0.2], 0))
    np.testing.assert_array_equal(follower.follow(0, TICK), [0.5, 0.1, -0.2])


def test_a_stale_command_ramps_to_zero_in_half_a_second_and_is_counted_once(follower) -> None:
    follower.take(command([1.0, 0.0, 0.0], 0))
    now, speeds = 0, []
    for _ in range(60):
        speeds.append(follower.follow(now, TICK)[0])
        now += TICK
    assert speeds[:26] == [1.0] * 26  # up to and with an age of exactly 500 ms
    assert speeds[26] == pytest.approx(0.96)
    assert np.all(np.diff(speeds[25:52]) <= 0)
    assert speeds[51:] == [0.0] * 9
    assert follower.counters['command_stale'] == 1


def test_skipped_slots_ramp_as_far_as_the_time_they_took(follower) -> None:
    follower.take(command([1.0, 0.0, 0.0], 0))
    follower.follow(0, TICK)
    assert follower.follow(1000 * MS, 10 * TICK)[0] == pytest.approx(1 - 0.2 / 0.5)


def test_not_enabled_ramps_to_zero_although_the_command_is_fresh(follower) -> None:
    follower.take(command([1.0, 0.0, 0.0], 0))
    follower.follow(0, TICK)
    follower.enabled = False
    assert follower.follow(TICK, TICK)[0] == pytest.approx(0.96)
    follower.enabled = True
    assert follower.follow(2 * TICK, TICK)[0] == 1.0


def test_a_command_out_of_the_trained_range_is_clipped_and_counted(follower) -> None:
    follower.take(command([3.0, -3.0, 3.0], 0))
    np.testing.assert_array_equal(follower.follow(0, TICK), [1.0, -0.4, 0.8])
    assert follower.counters['command_clipped'] == 1


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_a_command_that_is_not_finite_is_dropped_and_ages_the_one_before(follower, bad) -> None:
    follower.take(command([0.5, 0.0, 0.0], 0))
    follower.take(command([0.5, bad, 0.0], 400 * MS))
    assert follower.counters['command_not_finite'] == 1
    assert follower.age(400 * MS) == 400 * MS
    np.testing.assert_array_equal(follower.follow(400 * MS, TICK), [0.5, 0.0, 0.0])


def test_the_same_sample_taken_again_is_not_a_new_one(follower) -> None:
    sample = command([3.0, 0.0, 0.0], 0)
    for _ in range(5):
        follower.take(sample)
    assert follower.counters['command_clipped'] == 1
