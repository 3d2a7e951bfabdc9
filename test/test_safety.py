"""No target leaves the gate that is not finite, within the limits and within reach."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from samples import CONTRACT, DEFAULT, GOLDEN, LIMITS

from g1_policy_node.observation import projected_gravity
from g1_policy_node.paths import find_data
from g1_policy_node.safety import SafetyGate, SafetyLimits, load_limits
from g1_policy_node.types import RobotState, UserError, Verdict

LOW, HIGH = CONTRACT.per_joint('position_limits').T
STEP = LIMITS.max_target_rate * CONTRACT.step_dt
GATE = SafetyGate(CONTRACT, LIMITS, GOLDEN)


def at(position: np.ndarray, velocity: np.ndarray | float = 0.0) -> RobotState:
    """Return an upright robot at a pose (29,) rad, with these joint velocities, rad/s."""
    return RobotState(
        position, np.zeros(29) + velocity, np.zeros(3), np.array([0.0, 0.0, -1.0]), None
    )


@pytest.fixture
def gate() -> SafetyGate:
    return SafetyGate(CONTRACT, LIMITS, GOLDEN)


@given(
    arrays(np.float64, 29, elements=st.floats(-1e6, 1e6)),
    arrays(np.float64, 29, elements=st.floats(0, 1)),
    arrays(np.float64, 29, elements=st.floats(-60, 60)),
)
def test_whatever_finite_target_comes_what_leaves_is_in_range_and_in_reach(
    target, share, velocity
) -> None:
    gate = GATE
    previous = LOW + share * (HIGH - LOW)
    state = at(DEFAULT, velocity)
    checked = gate.check(target, previous, state)
    assert np.all(checked.target >= LOW - LIMITS.position_margin)
    assert np.all(checked.target <= HIGH + LIMITS.position_margin)
    assert np.all(np.abs(checked.target - previous) <= STEP + 1e-9)
    assert (checked.verdict is Verdict.PASS) == bool(np.all(checked.target == target))


def test_a_target_within_limits_is_not_altered(gate: SafetyGate) -> None:
    target = DEFAULT + 0.9 * STEP * np.sign(np.arange(29) - 14)
    target = np.clip(target, LOW, HIGH)
    checked = gate.check(target, DEFAULT, at(target))
    np.testing.assert_array_equal(checked.target, target)
    assert checked.verdict is Verdict.PASS
    assert not any(gate.counters.values())


def test_each_layer_counts_for_itself(gate: SafetyGate) -> None:
    beyond = DEFAULT.copy()
    ankle = CONTRACT.joint_names.index('left_ankle_roll_joint')
    beyond[ankle] = HIGH[ankle] + LIMITS.position_margin + 0.01
    assert gate.check(beyond, DEFAULT, at(DEFAULT)).verdict is Verdict.CLIP
    assert gate.counters['target_position_clipped'] == 1
    assert gate.counters['target_rate_clipped'] == 0
    fast = DEFAULT.copy()
    fast[0] += STEP + 0.01
    assert gate.check(fast, DEFAULT, at(DEFAULT)).target[0] == DEFAULT[0] + STEP
    assert gate.counters['target_rate_clipped'] == 1


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_an_action_that_is_not_finite_is_a_fault_that_names_the_joint(gate, bad: float) -> None:
    action = np.zeros(29)
    action[9] = bad
    assert gate.action_fault(action).reason == 'action of right_knee_joint is not finite'
    assert gate.counters['action_not_finite'] == 1
    assert gate.action_fault(np.zeros(29)) is None


@pytest.mark.parametrize(
    ('angle', 'faulty'), [(0.0, False), (0.99, False), (1.01, True), (3.1, True)]
)
@pytest.mark.parametrize('axis', [0, 1])
def test_a_tilt_beyond_the_limit_is_a_fault_about_any_axis(gate, angle, faulty, axis) -> None:
    quat = np.zeros(4)
    quat[axis], quat[3] = np.sin(angle / 2), np.cos(angle / 2)
    state = at(DEFAULT)._replace(gravity=projected_gravity(quat))
    assert (gate.state_fault(state) is not None) == faulty


def test_every_limit_in_the_table_has_a_source_and_is_used() -> None:
    table = load_limits(find_data('config/safety.yaml'))
    assert set(table) == {f.name for f in dataclasses.fields(SafetyLimits)}
    assert all(entry.source and entry.value > 0 for entry in table.values())
    package = ''.join(p.read_text() for p in find_data('g1_policy_node').glob('*.py'))
    assert all(f'limits.{name}' in package for name in table)


def test_a_limit_that_is_missing_or_unknown_is_named(tmp_path: Path) -> None:
    table = yaml.safe_load(find_data('config/safety.yaml').read_text())
    table['max_tlit'] = table.pop('max_tilt')
    path = tmp_path / 'safety.yaml'
    path.write_text(yaml.safe_dump(table))
    with pytest.raises(UserError, match='max_tilt, max_tlit'):
        load_limits(path)


def test_a_torque_beyond_the_motors_is_clipped_and_counted(gate) -> None:
    wrist = CONTRACT.joint_names.index('left_wrist_pitch_joint')
    target = DEFAULT.copy()
    target[wrist] += 0.6  # 24 N m of a motor for 5
    measured = at(DEFAULT)
    checked = gate.check(target, target, measured)
    torque = CONTRACT.per_joint('stiffness') * (checked.target - measured.joint_pos)
    allowed = LIMITS.max_torque_ratio * CONTRACT.per_joint('effort_limit_hardware')
    assert checked.verdict is Verdict.CLIP
    assert gate.counters['target_torque_clipped'] == 1
    assert np.all(np.abs(torque) <= allowed + 1e-9)


def test_a_base_that_turns_over_is_a_fault(gate) -> None:
    fast = np.array([0.0, -LIMITS.max_base_rate - 0.1, 0.0])
    assert gate.state_fault(at(DEFAULT)._replace(ang_vel=fast)).name == 'base_rate'
    assert gate.state_fault(at(DEFAULT)._replace(ang_vel=0.9 * fast)) is None


@given(st.integers(0, 72), st.booleans(), st.floats(1.01, 1e6))
def test_an_observation_beyond_what_training_saw_is_named(at_index, above, factor) -> None:
    gate = GATE
    low, high = gate.trained.low, gate.trained.high
    observation = ((low + high) / 2).astype(np.float32)
    assert gate.observation_fault(observation) is None
    half = (high - low)[at_index] / 2 * factor
    observation[at_index] += half if above else -half
    fault = gate.observation_fault(observation)
    assert fault.name == 'observation_range'
    assert gate.trained.labels[at_index] in fault.reason


def test_golden_observations_and_every_command_of_the_contract_are_in_range(gate) -> None:
    assert all(gate.observation_fault(row) is None for row in GOLDEN)
    for command in CONTRACT.command_limits.T:
        row = GOLDEN[0].copy()
        row[6:9] = command
        assert gate.observation_fault(row) is None


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_an_observation_that_is_not_finite_is_named(gate, bad: float) -> None:
    row = GOLDEN[0].copy()
    row[40] = bad
    fault = gate.observation_fault(row)
    assert fault.name == 'observation_not_finite'
    assert 'joint_vel_rel[2]' in fault.reason


def test_many_rows_at_once_are_checked_as_one_by_one() -> None:
    rng, gate = np.random.default_rng(4), SafetyGate(CONTRACT, LIMITS, GOLDEN)
    previous = DEFAULT + rng.normal(scale=0.2, size=(300, 29))
    target = previous + rng.normal(scale=0.3, size=(300, 29))
    target[::3] = DEFAULT + 0.01
    previous[::3] = DEFAULT
    position = DEFAULT + rng.normal(scale=0.1, size=(300, 29))
    velocity, three = rng.normal(size=(300, 29)), np.zeros((300, 3))
    states = RobotState(position, velocity, three, three, None)
    safe, altered = gate.check_rows(target, previous, states)
    for i in range(300):
        one = RobotState(position[i], velocity[i], three[i], three[i], None)
        checked = gate.check(target[i], previous[i], one)
        np.testing.assert_array_equal(safe[i], checked.target)
        assert altered[i] == (checked.verdict is Verdict.CLIP)
    assert 0 < altered.sum() < 300
