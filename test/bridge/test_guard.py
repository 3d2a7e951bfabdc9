import dataclasses
import itertools

import numpy as np
import pytest

from g1_policy_node.bridge.guard import BAD_CRC_STREAK, OVER_TEMPERATURE, Guard, Measured
from g1_policy_node.driver import JointCommand
from g1_policy_node.joints import G1_JOINT_NAMES

MS = 1_000_000
POSE = np.linspace(-0.1, 0.1, 29)
SILENCE = 100 * MS
TICKS = itertools.count(1_000_000, 2)


def ready(contract, **settings) -> Guard:
    """Return a guard that has heard of no other sender."""
    guard = Guard(contract, SILENCE, **settings)
    guard.rivals([])
    return guard


def measured(**changes) -> Measured:
    motors = POSE.copy(), np.full((29, 2), 40.0), np.zeros(29, dtype=np.uint32)
    return Measured(*motors, 5, next(TICKS))._replace(**changes)


def command(contract, now: int, **changes) -> JointCommand:
    c = JointCommand(G1_JOINT_NAMES, POSE + 0.05, contract.sha256[:16], 0, now, 0)
    return c._replace(**changes)


@pytest.fixture
def guard(contract) -> Guard:
    """A guard that follows, at 1 s."""
    guard = ready(contract)
    guard.state(measured(), 1000 * MS)
    guard.command(command(contract, 1000 * MS), 1000 * MS)
    assert guard.target(1000 * MS) is not None
    return guard


def is_latched(guard: Guard, contract, now: int) -> bool:
    """Whether a good state and a good command change nothing."""
    guard.state(measured(), now)
    guard.command(command(contract, now), now)
    return guard.target(now) is None


def test_it_damps_before_any_state(contract) -> None:
    guard = ready(contract)
    guard.command(command(contract, 0), 0)
    assert guard.target(0) is None
    assert guard.blocked(0) == 'no LowState yet'


def test_it_follows_and_holds_the_last_target(guard) -> None:
    for now in range(1000, 1100, 2):
        guard.state(measured(), now * MS)
        np.testing.assert_array_equal(guard.target(now * MS), POSE + 0.05)


def test_silence_of_commands_damps_and_a_close_target_ends_it(guard, contract) -> None:
    guard.state(measured(), 1101 * MS)
    assert guard.target(1101 * MS) is None
    assert not guard.latched
    guard.command(command(contract, 1102 * MS), 1102 * MS)
    assert guard.target(1102 * MS) is not None


def test_a_far_target_does_not_end_damping(guard, contract) -> None:
    guard.state(measured(), 1101 * MS)
    assert guard.target(1101 * MS) is None
    guard.command(command(contract, 1102 * MS, position=POSE + 0.21), 1102 * MS)
    assert guard.target(1102 * MS) is None


def test_a_command_for_another_contract_is_refused(contract) -> None:
    guard = ready(contract)
    guard.state(measured(), 0)
    guard.command(command(contract, 0, frame_id='0' * 16), 0)
    assert guard.target(0) is None
    assert guard.refused == 1


def silent_state(guard, contract):
    guard.command(command(contract, 1090 * MS), 1090 * MS)
    assert guard.target(1101 * MS) is None
    return 'no new LowState for 101 ms'


def repeated_state(guard, contract):
    tick = guard._measured.tick
    for now in range(1001, 1102):
        guard.state(measured(tick=tick), now * MS)
    guard.command(command(contract, 1101 * MS), 1101 * MS)
    assert guard.target(1101 * MS) is None
    return 'no new LowState for 101 ms'


def bad_crcs(guard, contract):
    for _ in range(BAD_CRC_STREAK):
        guard.damaged_state()
    return f'{BAD_CRC_STREAK} LowState in a row with a wrong CRC'


def motor_fault(guard, contract):
    words = np.zeros(29, dtype=np.uint32)
    words[3] = 0x20
    guard.state(measured(motorstate=words), 1010 * MS)
    return 'left_knee_joint reports fault 0x20'


def hot_motor(guard, contract):
    temperature = np.full((29, 2), 40.0)
    temperature[12, 1] = OVER_TEMPERATURE
    guard.state(measured(temperature=temperature), 1010 * MS)
    return f'waist_yaw_joint is at {OVER_TEMPERATURE:.0f} C'


def no_position(guard, contract):
    guard.state(measured(position=np.where(np.arange(29) == 3, np.nan, POSE)), 1010 * MS)
    return 'left_knee_joint is at no finite position'


def other_machine(guard, contract):
    guard.state(measured(mode_machine=6), 1010 * MS)
    return 'mode_machine was 5, now 6'


def estop(guard, contract):
    guard.estop('the operator')
    return 'estop by the operator'


def rival(guard, contract):
    guard.rivals(['participant 7'])
    return 'somebody else sends LowCmd: participant 7'


LASTING = [silent_state, repeated_state, bad_crcs, motor_fault, hot_motor, no_position, rival]
CAUSES = [*LASTING, other_machine, estop]


@pytest.mark.parametrize('cause', CAUSES)
def test_every_cause_damps_says_why_and_latches_until_reset(guard, contract, cause) -> None:
    reason = cause(guard, contract)
    assert guard.target(1102 * MS) is None
    assert guard.latched == reason
    assert f'damping: {reason}' in guard.reports
    guard.rivals([])
    assert is_latched(guard, contract, 1110 * MS)
    assert guard.reset(1110 * MS) == ''
    assert guard.target(1110 * MS) is None, 'what was followed before must be engaged anew'
    assert not is_latched(guard, contract, 1112 * MS)


@pytest.mark.parametrize('cause', LASTING)
def test_reset_is_refused_while_the_cause_lasts(guard, contract, cause) -> None:
    cause(guard, contract)
    assert guard.reset(1102 * MS)
    assert guard.latched


def test_fewer_damaged_states_than_a_streak_are_left_out_and_counted(guard) -> None:
    for _ in range(3):
        for _ in range(BAD_CRC_STREAK - 1):
            guard.damaged_state()
        guard.state(measured(), 1010 * MS)
    assert guard.target(1020 * MS) is not None
    assert guard.bad_crcs == 3 * (BAD_CRC_STREAK - 1)


def test_a_tick_that_goes_back_damps_until_it_has_risen_for_a_second(guard, contract) -> None:
    guard.state(measured(tick=500_000), 1010 * MS)
    assert guard.target(1010 * MS) is None
    assert 'tick of LowState went back' in guard.latched
    guard.state(measured(tick=500_002), 1012 * MS)
    assert guard.reset(1012 * MS)
    guard.state(measured(tick=501_002), 2012 * MS)
    assert guard.reset(2012 * MS) == ''


def test_two_senders_of_low_state_are_never_followed(contract) -> None:
    guard = ready(contract)
    for i in range(1, 400):
        guard.state(measured(tick=2 * i if i % 50 else 10**6), 2 * i * MS)
        guard.command(command(contract, 2 * i * MS), 2 * i * MS)
        assert guard.target(2 * i * MS) is None or i <= 50


def test_a_tick_that_runs_over_its_32_bits_has_not_gone_back(contract) -> None:
    guard = ready(contract)
    for i in range(10):
        guard.state(measured(tick=(2**32 - 10 + 2 * i) % 2**32), 2 * i * MS)
        assert guard.blocked(2 * i * MS) == ''


def test_a_second_sender_of_commands_is_not_heard(guard, contract) -> None:
    guard.command(command(contract, 1002 * MS, sequence=900), 1002 * MS)
    other = command(contract, 1004 * MS, sequence=5, position=POSE - 0.1)
    guard.command(other, 1004 * MS)
    np.testing.assert_array_equal(guard.target(1004 * MS), POSE + 0.05)
    assert guard.refused == 1


def test_it_follows_nothing_before_it_has_listened_for_rivals(contract) -> None:
    guard = Guard(contract, SILENCE)
    assert is_latched(guard, contract, 0)
    assert guard.blocked(0) == 'listening for other senders of LowCmd'
    guard.rivals([])
    assert not is_latched(guard, contract, 10 * MS)


def test_a_rival_before_arming_keeps_it_from_following(contract) -> None:
    guard = ready(contract)
    guard.rivals(['participant 7'])
    assert is_latched(guard, contract, 0)
    guard.rivals([])
    assert not is_latched(guard, contract, 10 * MS)


@pytest.mark.parametrize(
    ('machine', 'says'),
    [
        (3, 'waist_roll_joint, waist_pitch_joint: locked'),
        (6, 'locked on this robot'),
        (1, 'no G1 with 29 joints'),
        (99, 'no G1 with 29 joints'),
        (2, 'left_hip_roll_joint 139 N m (has 88)'),
        (10, 'trained with the other motor: left_hip_pitch_joint'),
    ],
)
def test_a_robot_that_the_contract_does_not_fit_is_not_armed(contract, machine, says) -> None:
    guard = ready(contract)
    guard.state(measured(mode_machine=machine), 0)
    guard.command(command(contract, 0), 0)
    assert guard.target(0) is None
    assert says in guard.blocked(0)


def test_what_the_operator_accepts_by_name_is_let_through(contract) -> None:
    guard = ready(contract, accept=['locked_waist'])
    guard.state(measured(mode_machine=6), 0)
    guard.command(command(contract, 0), 0)
    assert guard.target(0) is not None


def test_a_contract_of_weaker_motors_fits_every_revision_but_by_its_armature(contract) -> None:
    weak = dict(contract.joints)
    for side in ('left', 'right'):
        name = f'{side}_hip_roll_joint'
        weak[name] = dataclasses.replace(
            weak[name], effort_limit_hardware=88.0, armature=0.01017752
        )
    fitting = dataclasses.replace(contract, joints=weak)
    guard = ready(fitting)
    guard.state(measured(mode_machine=2), 0)
    assert guard.blocked(0) == ''
    guard.state(measured(mode_machine=5), 0)
    assert 'left_hip_roll_joint (armature 0.0101775, here 0.0251019)' in guard.blocked(0)
