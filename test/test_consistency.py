"""Measurements against each other: true ones agree, a wrong one is found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import MS

from g1_policy_node.consistency import FrozenCheck, GravityCheck, VelocityCheck
from g1_policy_node.observation import projected_gravity

TICK = 20 * MS
UP = np.array([0.0, 0.0, 9.81])
DOWN = np.array([0.0, 0.0, -1.0])


@given(st.floats(0.1, 8.0), st.floats(0.1, 1.0))
def test_a_true_velocity_agrees_with_the_positions(frequency: float, amplitude: float) -> None:
    check = VelocityCheck(3, limit=1.0)
    rate = 2 * np.pi * min(frequency, 5.0 / amplitude / 2 / np.pi)
    for k in range(200):
        t = k * TICK * 1e-9
        phase = rate * t + np.arange(3)
        check.update(amplitude * np.sin(phase), amplitude * rate * np.cos(phase), k * TICK)
    assert check.over_for == 0


@given(st.floats(1.5, 30.0), st.booleans(), st.integers(0, 2))
def test_a_velocity_that_is_off_is_found_within_half_a_second(off, above, joint) -> None:
    check = VelocityCheck(3, limit=1.0)
    wrong = np.zeros(3)
    wrong[joint] = off if above else -off
    for k in range(1, 50):
        check.update(np.zeros(3), wrong, k * TICK)
    assert int(np.abs(check.error).argmax()) == joint
    assert check.over_for > 450 * MS


def test_one_impact_is_forgotten() -> None:
    check = VelocityCheck(1, limit=1.0)
    for k in range(100):
        check.update(np.zeros(1), np.full(1, 50.0 if k == 50 else 0.0), k * TICK)
    assert check.over_for == 0


def test_samples_far_apart_say_nothing() -> None:
    check = VelocityCheck(1, limit=1.0)
    for k in range(20):
        check.update(np.full(1, float(k)), np.zeros(1), k * 200 * MS)
    assert check.over_for == 0


@given(st.floats(0.0, 0.9), st.floats(-np.pi, np.pi))
def test_gravity_by_orientation_and_by_accelerometer_agree(angle: float, about: float) -> None:
    axis = np.array([np.cos(about), np.sin(about), 0.0]) * np.sin(angle / 2)
    gravity = projected_gravity(np.array([*axis, np.cos(angle / 2)]))
    check = GravityCheck()
    for k in range(20):
        check.update(gravity, -9.81 * gravity, k * TICK)
    assert check.angle < 1e-6


@pytest.mark.parametrize('angle', [0.8, 1.6, 3.1])
def test_a_wrong_orientation_is_found(angle: float) -> None:
    gravity = projected_gravity(np.array([np.sin(angle / 2), 0.0, 0.0, np.cos(angle / 2)]))
    check = GravityCheck()
    check.update(gravity, UP, TICK)
    assert check.angle == pytest.approx(angle)


@pytest.mark.parametrize('force', [0.0, 3.0, 20.0])
def test_without_about_one_g_there_is_no_direction(force: float) -> None:
    check = GravityCheck()
    for k in range(20):
        check.update(DOWN, np.array([force, 0.0, 0.0]), k * TICK)
    assert check.angle == 0.0


def test_a_field_is_frozen_since_its_bits_last_changed() -> None:
    check = FrozenCheck()
    for k in range(10):
        check.update('moving', np.array([float(k)]), k * TICK)
        check.update('still', np.array([float(min(k, 4))]), k * TICK)
    assert check.longest(9 * TICK) == ('still', 5 * TICK)
