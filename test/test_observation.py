"""The observation is what the contract says, term by term, whatever the order of the joints."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import CONTRACT, DEFAULT, LIMITS, random_state, with_terms

from g1_policy_node.contract import ObservationTerm
from g1_policy_node.inputs import InputGate
from g1_policy_node.observation import ObservationBuilder, projected_gravity
from g1_policy_node.types import ImuSample, Inputs, JointSample, RobotState, Stamps, UserError

NO_ACTION = np.zeros(29)


def plain_observation(
    names: list[str],
    position: list[float],
    velocity: list[float],
    quat_xyzw: list[float],
    gyro: list[float],
    command: list[float],
    k: int,
) -> list[float]:
    """Compute the 73 values from the definition, with nothing of the package but the defaults."""
    x, y, z, w = quat_xyzw
    rotation = [  # base to world
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    gravity = [-rotation[2][i] for i in range(3)]  # transpose of it, on (0, 0, -1)
    by_name = {n: (p, v) for n, p, v in zip(names, position, velocity, strict=True)}
    order = CONTRACT.joint_names
    default = {n: CONTRACT.joints[n].default_position for n in order}
    out = [0.2 * g for g in gyro] + gravity + list(command)
    out += [by_name[n][0] - default[n] for n in order]
    out += [0.05 * by_name[n][1] for n in order]
    feet = [k % 40, (k + 20) % 40]
    if math.sqrt(sum(c * c for c in command)) < 0.1:
        return out + [0.0] * 4 + [1.0, 1.0]
    out += [math.sin(2 * math.pi * f / 40) for f in feet]
    out += [math.cos(2 * math.pi * f / 40) for f in feet]
    return out + [float(f < 22) for f in feet]


def test_a_thousand_random_states_in_random_joint_order_match_a_plain_computation() -> None:
    rng = np.random.default_rng(1)
    builder = ObservationBuilder(CONTRACT)
    for k in range(1000):
        order = rng.permutation(29)
        names = [CONTRACT.joint_names[i] for i in order]
        quat = rng.normal(size=4)
        quat /= np.linalg.norm(quat)
        low, high = CONTRACT.per_joint('position_limits')[order].T
        position, velocity = rng.uniform(low, high), 5 * rng.normal(size=29)
        gyro = rng.normal(size=3)
        command = rng.uniform(-1, 1, 3) * (k % 3 != 0)
        gate = InputGate(CONTRACT, LIMITS, 60_000_000)
        stamp = Stamps(0, 0, 0, 0)
        gate.admit(
            Inputs(
                JointSample(tuple(names), position, velocity, stamp),
                ImuSample('pelvis', quat, gyro, np.zeros(3), '', stamp),
                None,
                None,
            ),
            0,
        )
        state = gate.state(0)
        assert isinstance(state, RobotState)
        expected = plain_observation(names, position, velocity, quat, gyro, command, k)
        assert len(expected) == 73
        np.testing.assert_allclose(
            builder.build(state, command, k, NO_ACTION), expected, rtol=0, atol=1e-6
        )


def test_upright_gravity_points_down_and_each_axis_tilts_its_own_way() -> None:
    half = math.sin(math.pi / 4)
    np.testing.assert_allclose(projected_gravity(np.array([0, 0, 0, 1.0])), [0, 0, -1])
    # Rolled to the right side: gravity is to the robot's right, -y. Pitched nose down: +x.
    np.testing.assert_allclose(
        projected_gravity(np.array([half, 0, 0, half])), [0, -1, 0], atol=1e-12
    )
    np.testing.assert_allclose(
        projected_gravity(np.array([0, half, 0, half])), [1, 0, 0], atol=1e-12
    )
    np.testing.assert_allclose(
        projected_gravity(np.array([0, 0, half, half])), [0, 0, -1], atol=1e-12
    )


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: np.dot(q, q) > 1e-2))
def test_gravity_is_a_unit_vector_and_blind_to_the_quaternions_sign(quat: list[float]) -> None:
    q = np.array(quat) / np.linalg.norm(quat)
    np.testing.assert_allclose(np.linalg.norm(projected_gravity(q)), 1, atol=1e-9)
    np.testing.assert_allclose(projected_gravity(q), projected_gravity(-q), atol=1e-12)


@pytest.mark.parametrize('order', ['oldest_first', 'newest_first'])
def test_history_is_per_term_filled_by_the_first_frame_and_again_after_a_reset(order: str) -> None:
    terms = (
        ObservationTerm('base_ang_vel', 3, history=3, history_order=order),
        ObservationTerm('last_action', 29, history=2, history_order=order),
    )
    builder = ObservationBuilder(with_terms(*terms))
    states = [random_state(np.random.default_rng(i)) for i in range(4)]

    def expected(rates: list, actions: list) -> np.ndarray:
        step = 1 if order == 'oldest_first' else -1
        return np.concatenate(
            [np.concatenate(rates[::step]), np.concatenate(actions[::step])]
        ).astype(np.float32)

    w = [s.ang_vel for s in states]
    a = [np.full(29, float(i)) for i in range(4)]
    past = [
        ([w[0]] * 3, [a[0]] * 2),
        ([w[0], w[0], w[1]], a[0:2]),
        (w[0:3], a[1:3]),
        (w[1:4], a[2:4]),
    ]
    for i, (rates, actions) in enumerate(past):
        built = builder.build(states[i], np.zeros(3), 0, a[i])
        np.testing.assert_array_equal(built, expected(rates, actions))
    builder.reset()
    built = builder.build(states[2], np.zeros(3), 0, a[2])
    np.testing.assert_array_equal(built, expected([w[2]] * 3, [a[2]] * 2))


def test_clip_comes_before_scale_and_scales_may_be_per_value() -> None:
    term = ObservationTerm('base_ang_vel', 3, scale=(1.0, 2.0, 3.0), clip=(-1.0, 1.0))
    builder = ObservationBuilder(with_terms(term))
    state = random_state(np.random.default_rng(0))._replace(ang_vel=np.array([5.0, -5.0, 0.5]))
    np.testing.assert_array_equal(
        builder.build(state, np.zeros(3), 0, NO_ACTION), np.float32([1.0, -2.0, 1.5])
    )


def test_base_lin_vel_comes_from_the_state() -> None:
    builder = ObservationBuilder(with_terms(ObservationTerm('base_lin_vel', 3)))
    state = random_state(np.random.default_rng(0), lin_vel=True)
    np.testing.assert_array_equal(
        builder.build(state, np.zeros(3), 0, NO_ACTION), state.lin_vel.astype(np.float32)
    )


@pytest.mark.parametrize(
    ('contract', 'says'),
    [
        (with_terms(ObservationTerm('base_height', 1)), 'base_height is none of base_lin_vel'),
        (with_terms(ObservationTerm('joint_pos_rel', 12)), 'has 29 values, the contract says 12'),
        (with_terms(ObservationTerm('gait_contact', 2), gait=None), 'needs the contract to have'),
        (
            with_terms(ObservationTerm('base_ang_vel', 3, parameters={'frame': 'torso'})),
            'takes no parameters',
        ),
    ],
)
def test_a_term_that_does_not_fit_is_refused_by_name(contract, says: str) -> None:
    with pytest.raises(UserError, match=says):
        ObservationBuilder(contract)


def test_every_joint_lands_at_its_own_place_and_nowhere_else() -> None:
    builder = ObservationBuilder(dataclasses.replace(CONTRACT))
    level = RobotState(DEFAULT, np.zeros(29), np.zeros(3), np.array([0, 0, -1.0]), None)
    base = builder.build(level, np.zeros(3), 0, NO_ACTION).copy()
    for i in range(29):
        moved = DEFAULT.copy()
        moved[i] += 0.5
        change = builder.build(level._replace(joint_pos=moved), np.zeros(3), 0, NO_ACTION) - base
        assert np.flatnonzero(change).tolist() == [9 + i]


@pytest.mark.parametrize('order', ['oldest_first', 'newest_first'])
def test_many_rows_at_once_are_the_rows_one_by_one_to_the_bit(order: str) -> None:
    longer = with_terms(
        ObservationTerm('gait_contact', 2, history=2, history_order=order),
        ObservationTerm('last_action', 29, scale=0.1, clip=(-1.0, 1.0)),
        ObservationTerm('joint_vel_rel', 29, scale=0.05, history=4, history_order=order),
        ObservationTerm('velocity_commands', 3, scale=(2.0, 2.0, 0.25)),
        ObservationTerm('base_lin_vel', 3),
    )
    rng, count = np.random.default_rng(2), 200
    for contract in (CONTRACT, longer):
        states = [random_state(rng, lin_vel=True) for _ in range(count)]
        commands = rng.uniform(-1, 1, (count, 3)) * (rng.random((count, 1)) > 0.3)
        k, last = np.arange(5, 5 + count), rng.normal(size=(count, 29))
        builder = ObservationBuilder(contract)
        rows = zip(states, commands, k.tolist(), last, strict=True)
        wanted = np.array([builder.build(*row) for row in rows])
        columns = [np.array(values) for values in zip(*states, strict=True)]
        built = builder.build_rows(RobotState(*columns), commands, k, last)
        np.testing.assert_array_equal(built, wanted)
        assert built.dtype == np.float32
