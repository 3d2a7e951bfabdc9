"""No state is made of anything missing, stale, malformed or impossible."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import CONTRACT, DEFAULT, LIMITS, MS, imu, inputs, joints, stamps, tilted, with_terms

from g1_policy_node.contract import ObservationTerm
from g1_policy_node.inputs import InputGate
from g1_policy_node.types import Fault, Inputs, OdomSample, RobotState

TIMEOUT = 60 * MS


def make_gate(contract=CONTRACT, **options) -> InputGate:
    return InputGate(contract, LIMITS, TIMEOUT, **options)


def fault_of(**samples) -> Fault:
    """Admit good samples but for those given; return the fault once the good ones are stale."""
    gate = make_gate()
    gate.admit(inputs()._replace(**samples), 0)
    state = gate.state(0)
    assert isinstance(state, Fault), state
    assert gate.counters == {state.name: 1}
    return state


def without(name: str) -> dict:
    keep = [i for i, n in enumerate(CONTRACT.joint_names) if n != name]
    names = tuple(CONTRACT.joint_names[i] for i in keep)
    return {'names': names, 'position': DEFAULT[keep], 'velocity': np.zeros(28)}


def renamed(old: str, new: str) -> tuple[str, ...]:
    return tuple(new if n == old else n for n in CONTRACT.joint_names)


def with_value(value: float, at: int) -> np.ndarray:
    values = np.zeros(29)
    values[at] = value
    return values


def test_complete_fresh_samples_make_a_state() -> None:
    gate = make_gate()
    gate.admit(inputs(), 0)
    state = gate.state(0)
    assert isinstance(state, RobotState)
    np.testing.assert_array_equal(state.joint_pos, DEFAULT)
    np.testing.assert_array_equal(state.gravity, [0, 0, -1])
    assert not gate.counters


@given(st.permutations(range(29)))
def test_any_order_of_the_joints_gives_the_same_state(order: list[int]) -> None:
    gate = make_gate()
    position, velocity = np.arange(29) * 0.01, np.arange(29) * 0.1
    names = tuple(CONTRACT.joint_names[i] for i in order)
    gate.admit(
        inputs()._replace(
            joints=joints(names=names, position=position[order], velocity=velocity[order])
        ),
        0,
    )
    state = gate.state(0)
    assert isinstance(state, RobotState)
    np.testing.assert_array_equal(state.joint_pos, position)
    np.testing.assert_array_equal(state.joint_vel, velocity)


@pytest.mark.parametrize(
    ('changes', 'name', 'says'),
    [
        (without('left_knee_joint'), 'joint_names', 'missing left_knee_joint'),
        (
            {'names': renamed('waist_yaw_joint', 'torso_joint')},
            'joint_names',
            'missing waist_yaw_joint; unexpected torso_joint',
        ),
        (
            {'names': renamed('right_knee_joint', 'left_knee_joint')},
            'joint_names',
            'missing right_knee_joint; duplicated left_knee_joint',
        ),
        ({'velocity': np.zeros(0)}, 'array_length', '29 names but 0 velocities'),
        ({'position': np.zeros(28)}, 'array_length', '29 names but 28 positions'),
        ({'position': with_value(np.nan, 3)}, 'not_finite', 'positions of left_knee_joint'),
        ({'velocity': with_value(np.inf, 0)}, 'not_finite', 'velocities of left_hip_pitch_joint'),
        ({'velocity': with_value(-97, 0)}, 'joint_speed', 'left_hip_pitch_joint at -97.0 rad/s'),
    ],
)
def test_joint_states_that_cannot_be_used_are_refused_and_counted(changes, name, says) -> None:
    fault = fault_of(joints=joints(**changes))
    assert fault.name == name
    assert says in fault.reason


@pytest.mark.parametrize(
    ('changes', 'name', 'says'),
    [
        ({'frame_id': 'torso'}, 'imu_frame', "in frame 'torso', not pelvis"),
        ({'frame_id': ''}, 'imu_frame', "in frame '', not pelvis"),
        ({'absent': 'orientation'}, 'imu_absent', 'has no orientation'),
        ({'quat_xyzw': np.zeros(4)}, 'quaternion_norm', 'norm 0.000'),
        ({'quat_xyzw': np.array([0, 0, 0, 1.1])}, 'quaternion_norm', 'norm 1.100'),
        ({'quat_xyzw': np.array([0, 0, np.nan, 1])}, 'not_finite', 'imu/data is not finite'),
        ({'ang_vel': np.array([0, np.inf, 0])}, 'not_finite', 'imu/data is not finite'),
        ({'ang_vel': np.array([0, 0, 50.0])}, 'ang_vel', 'is not possible'),
    ],
)
def test_imu_data_that_cannot_be_used_are_refused_and_counted(changes, name, says) -> None:
    fault = fault_of(imu=imu(**changes))
    assert fault.name == name
    assert says in fault.reason


def test_a_further_imu_frame_is_accepted_only_if_named() -> None:
    gate = make_gate(imu_frames=('imu_in_pelvis',))
    gate.admit(inputs()._replace(imu=imu(frame_id='imu_in_pelvis')), 0)
    assert isinstance(gate.state(0), RobotState)


def test_a_silent_topic_is_named_with_what_the_graph_says() -> None:
    gate = make_gate()
    gate.hints = {'imu/data': 'no publisher of /imu/data'}
    gate.admit(Inputs(joints(), None, None, None), 0)
    fault = gate.state(0)
    assert isinstance(fault, Fault)
    assert fault.reason == 'no imu/data yet (no publisher of /imu/data)'


@pytest.mark.parametrize('topic', ['joints', 'imu'])
def test_each_sensor_goes_stale_by_itself_after_the_timeout(topic: str) -> None:
    gate = make_gate()
    fresh = inputs(TIMEOUT + 1)
    old = {'joints': joints(0), 'imu': imu(0)}[topic]
    gate.admit(fresh._replace(**{topic: old}), TIMEOUT + 1)
    fault = gate.state(TIMEOUT + 1)
    assert isinstance(fault, Fault)
    assert fault.name == 'stale'
    assert ('joint_states' if topic == 'joints' else 'imu/data') in fault.reason
    gate.admit(inputs(TIMEOUT + 2), TIMEOUT + 2)
    assert isinstance(gate.state(TIMEOUT + 2), RobotState)


def test_at_exactly_the_timeout_a_sample_is_still_fresh() -> None:
    gate = make_gate()
    gate.admit(inputs(0), 0)
    assert isinstance(gate.state(TIMEOUT), RobotState)


def test_a_bad_sample_leaves_the_last_good_one_in_use_until_that_is_stale() -> None:
    gate = make_gate()
    gate.admit(inputs(0), 0)
    for k in range(1, 4):
        now = k * 20 * MS
        bad = joints(now, position=np.full(29, np.nan))
        gate.admit(Inputs(bad, imu(now), None, None), now)
        state = gate.state(now)
        assert isinstance(state, RobotState)
        np.testing.assert_array_equal(state.joint_pos, DEFAULT)
    fault = gate.state(60 * MS + 1)
    assert isinstance(fault, Fault)
    assert 'are not finite' in fault.reason
    assert gate.counters['not_finite'] == 3


def test_a_sample_stamped_before_the_last_one_is_dropped_while_that_is_fresh() -> None:
    gate = make_gate()
    gate.admit(Inputs(joints(0, stamps=stamps(0, 1000)), imu(0), None, None), 0)
    moved = joints(MS, stamps=stamps(MS, 999), position=DEFAULT + 0.1)
    gate.admit(Inputs(moved, imu(MS), None, None), MS)
    state = gate.state(MS)
    assert isinstance(state, RobotState)
    np.testing.assert_array_equal(state.joint_pos, DEFAULT)
    assert gate.counters['stamp_order'] == 1


def test_a_restarted_driver_whose_stamps_begin_anew_is_taken_before_its_silence_is_a_fault() -> (
    None
):
    gate = make_gate()
    gate.admit(Inputs(joints(0, stamps=stamps(0, 10**12)), imu(0), None, None), 0)
    for now in range(20 * MS, TIMEOUT + 20 * MS, 20 * MS):
        late = now + 2 * MS  # neither its period nor the ticks are exact
        gate.admit(Inputs(joints(now, stamps=stamps(now, now)), imu(now), None, None), now)
        assert isinstance(gate.state(late), RobotState), late
    assert gate.counters['stamp_order'] == 1


def test_stamps_of_zero_are_no_order() -> None:
    gate = make_gate()
    gate.admit(Inputs(joints(0, stamps=stamps(0, 1000)), imu(0), None, None), 0)
    gate.admit(Inputs(joints(MS), imu(MS), None, None), MS)
    assert not gate.counters


def test_a_rejected_sample_is_counted_once_however_often_it_is_looked_at() -> None:
    gate = make_gate()
    same = inputs()._replace(joints=joints(position=np.full(29, np.nan)))
    for k in range(5):
        gate.admit(same, k)
    assert gate.counters['not_finite'] == 1


def test_odom_is_needed_exactly_when_the_contract_has_a_term_that_reads_it() -> None:
    contract = with_terms(ObservationTerm('base_lin_vel', 3))
    gate = make_gate(contract)
    gate.admit(inputs(), 0)
    fault = gate.state(0)
    assert isinstance(fault, Fault)
    assert fault.reason == 'no odom yet'
    gate.admit(inputs()._replace(odom=OdomSample(np.ones(3), stamps(0))), 0)
    state = gate.state(0)
    assert isinstance(state, RobotState)
    np.testing.assert_array_equal(state.lin_vel, np.ones(3))
    gate.admit(inputs()._replace(odom=OdomSample(np.full(3, np.nan), stamps(0))), 0)
    assert gate.counters['not_finite'] == 1


def test_the_orientation_reaches_the_state_as_gravity() -> None:
    gate = make_gate()
    gate.admit(inputs()._replace(imu=imu(quat_xyzw=tilted(0.3))), 0)
    state = gate.state(0)
    assert isinstance(state, RobotState)
    np.testing.assert_allclose(state.gravity, [0, -np.sin(0.3), -np.cos(0.3)], atol=1e-12)


def test_reset_forgets_every_sample() -> None:
    gate = make_gate()
    gate.admit(inputs(), 0)
    gate.reset()
    assert isinstance(gate.state(0), Fault)


def test_a_contract_of_other_joints_wants_those() -> None:
    names = tuple(n.replace('_joint', '_motor') for n in CONTRACT.joint_names)
    other = dataclasses.replace(
        CONTRACT,
        joint_names=names,
        joints={n.replace('_joint', '_motor'): j for n, j in CONTRACT.joints.items()},
    )
    gate = make_gate(other)
    gate.admit(inputs(), 0)
    assert gate.counters['joint_names'] == 1
