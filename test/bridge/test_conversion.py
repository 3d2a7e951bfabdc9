import numpy as np
import pytest

from g1_policy_node.bridge.conversion import CommandBuilder, StateReader
from g1_policy_node.bridge.guard import Guard
from g1_policy_node.bridge.hardware import ACCEPTABLE
from g1_policy_node.bridge.link import pack_command, unpack_command
from g1_policy_node.bridge.messages import LOW_CMD, LOW_STATE, Message
from g1_policy_node.driver import JointCommand
from g1_policy_node.joints import G1_JOINT_NAMES

QUATERNION_WXYZ = (0.9, 0.1, -0.2, 0.3)
LOCKED = ('waist_roll_joint', 'waist_pitch_joint')


def low_state(mode_machine: int = 5, **changes) -> bytes:
    """A LowState in which every joint has numbers of its own."""
    message = Message(LOW_STATE)
    f = message.fields
    f['mode_machine'] = mode_machine
    f['tick'] = 1234
    f['imu_state']['quaternion'] = QUATERNION_WXYZ
    f['imu_state']['gyroscope'] = (0.1, 0.2, 0.3)
    f['imu_state']['accelerometer'] = (1.0, 2.0, 9.8)
    for i in range(35):
        f['motor_state'][i]['q'] = 0.01 * (i + 1)
        f['motor_state'][i]['dq'] = 0.1 * (i + 1)
        f['motor_state'][i]['tau_est'] = i + 1
    for name, value in changes.items():
        f[name] = value
    message.seal()
    return bytes(message.data)


def reader(mode_machine: int = 5, **changes) -> StateReader:
    state = StateReader()
    assert state.load(low_state(mode_machine, **changes))
    return state


def round_trip(contract, names, mode_machine: int = 5) -> tuple[np.ndarray, Message]:
    """LowState -> measured -> joint_command in `names`' order -> slot -> guard -> LowCmd."""
    state = reader(mode_machine)
    guard = Guard(contract, 10**8, accept=ACCEPTABLE)
    guard.rivals([])
    guard.state(state.measured(), 0)
    position = dict(zip(G1_JOINT_NAMES, state.joints()[0], strict=True))
    command = JointCommand(
        tuple(names),
        np.array([position[name] + 0.1 for name in names]),
        contract.sha256[:16],
        0,
        0,
        0,
    )
    guard.command(unpack_command(pack_command(command)), 0)
    target = guard.target(0)
    assert target is not None
    sent = Message(LOW_CMD)
    sent.load(bytes(CommandBuilder(contract).build(target, state.measured())))
    assert sent.intact()
    return state.joints()[0], sent


@pytest.mark.parametrize('joint', G1_JOINT_NAMES)
@pytest.mark.parametrize('reverse', [False, True])
def test_a_joint_comes_back_to_the_motor_it_was_read_from(contract, joint, reverse) -> None:
    names = G1_JOINT_NAMES[::-1] if reverse else G1_JOINT_NAMES
    motor = G1_JOINT_NAMES.index(joint)
    measured, sent = round_trip(contract, names)
    assert measured[motor] == pytest.approx(0.01 * (motor + 1))
    command = sent.fields['motor_cmd'][motor]
    assert command['q'] == pytest.approx(0.01 * (motor + 1) + 0.1)
    assert command['kp'] == pytest.approx(contract.joints[joint].stiffness)
    assert command['kd'] == pytest.approx(contract.joints[joint].damping)
    assert (command['mode'], command['dq'], command['tau']) == (1, 0, 0)


@pytest.mark.parametrize('mode_machine', [3, 6])
def test_a_locked_joint_reads_zero_and_its_motor_is_left_alone(contract, mode_machine) -> None:
    measured, sent = round_trip(contract, G1_JOINT_NAMES, mode_machine)
    for motor, name in enumerate(G1_JOINT_NAMES):
        command = sent.fields['motor_cmd'][motor]
        if name in LOCKED:
            assert measured[motor] == 0
            assert command['mode'] == command['kp'] == command['kd'] == command['q'] == 0
        else:
            assert command['mode'] == 1
            assert command['q'] == pytest.approx(0.01 * (motor + 1) + 0.1)


def test_slots_beyond_the_joints_stay_zero_and_modes_are_set(contract) -> None:
    _, sent = round_trip(contract, G1_JOINT_NAMES)
    assert not any(
        bytes(sent.fields['motor_cmd'][i].tobytes()).strip(b'\0') for i in range(29, 35)
    )
    assert sent.fields['mode_pr'] == 0
    assert sent.fields['mode_machine'] == 5


def test_damping_has_no_stiffness_and_the_contracts_damping(contract) -> None:
    state = reader()
    sent = Message(LOW_CMD)
    sent.load(bytes(CommandBuilder(contract).build(None, state.measured())))
    assert sent.intact()
    motors = sent.fields['motor_cmd'][:29]
    assert not motors['kp'].any()
    expected = [contract.joints[name].damping for name in G1_JOINT_NAMES]
    np.testing.assert_allclose(motors['kd'], expected, rtol=1e-6)


def test_damping_after_following_leaves_nothing_of_the_target_s_gains(contract) -> None:
    state, builder = reader(), CommandBuilder(contract)
    fresh = bytes(CommandBuilder(contract).build(None, state.measured()))
    builder.build(np.ones(29), state.measured())
    assert bytes(builder.build(None, state.measured())) == fresh


def test_the_quaternion_is_turned_from_w_first_to_w_last() -> None:
    quaternion, rate, force = reader().imu()
    np.testing.assert_allclose(quaternion, [0.1, -0.2, 0.3, 0.9], rtol=1e-6)
    np.testing.assert_allclose(rate, [0.1, 0.2, 0.3], rtol=1e-6)
    np.testing.assert_allclose(force, [1.0, 2.0, 9.8], rtol=1e-6)


def test_velocity_and_torque_are_read_per_joint() -> None:
    _, velocity, torque = reader().joints()
    np.testing.assert_allclose(velocity, 0.1 * np.arange(1, 30), rtol=1e-6)
    np.testing.assert_allclose(torque, np.arange(1, 30))


def test_a_damaged_state_is_told() -> None:
    data = bytearray(low_state())
    data[100] ^= 1
    assert not StateReader().load(bytes(data))


@pytest.mark.parametrize(
    ('keys', 'pressed'), [(1 << 5 | 1 << 9, True), (1 << 5, False), (1 << 9, False), (0, False)]
)
def test_l2_and_b_together_are_the_gamepad_s_estop(keys: int, pressed: bool) -> None:
    remote = np.zeros(40, np.uint8)
    remote[2:4] = keys & 0xFF, keys >> 8
    assert reader(wireless_remote=remote).estop_pressed is pressed
