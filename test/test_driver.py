"""The driver's rules, on a fake clock: silence damps, and only a near target ends damping."""

from collections.abc import Sequence

import numpy as np
import pytest

from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.driver import CommandWatch, JointCommand
from g1_policy_node.paths import find_data
from g1_policy_node.sim.robot import MujocoRobot
from g1_policy_node.types import Array

NAMES = ('hip', 'knee', 'ankle')
SHA256 = '0123456789abcdef' * 4
MS = 1_000_000
POSE = np.array([0.1, 0.2, 0.3])


def command(
    position: Array | Sequence[float] = POSE,
    received: int = 0,
    names: tuple[str, ...] = NAMES,
    frame_id: str = SHA256[:16],
) -> JointCommand:
    return JointCommand(names, np.array(position), frame_id, 0, received, 0)


@pytest.fixture
def watch() -> CommandWatch:
    return CommandWatch(NAMES, SHA256)


def follow(watch: CommandWatch, received: int = 0) -> None:
    watch.consider(command(received=received), POSE)
    assert not watch.damping


def test_it_damps_before_the_first_command(watch: CommandWatch) -> None:
    assert watch.target(0) is None


def test_target_is_held_between_commands(watch: CommandWatch) -> None:
    follow(watch)
    for now in (0, 20 * MS, 100 * MS):
        np.testing.assert_array_equal(watch.target(now), POSE)


def test_silence_of_more_than_100_ms_damps(watch: CommandWatch) -> None:
    follow(watch, received=7)
    assert watch.target(7 + 100 * MS) is not None
    assert watch.target(7 + 100 * MS + 1) is None
    assert watch.reports[-1] == 'damping: no joint_command for 100 ms'


def test_silence_counts_from_when_a_command_came_not_from_when_it_was_read(
    watch: CommandWatch,
) -> None:
    watch.consider(command(received=0), POSE)
    assert watch.target(150 * MS) is None


def test_damping_lasts_without_a_new_command(watch: CommandWatch) -> None:
    follow(watch)
    assert watch.target(101 * MS) is None
    assert watch.target(0) is None


def test_damping_ends_for_a_near_target_only(watch: CommandWatch) -> None:
    watch.consider(command(POSE + np.array([0.0, 0.201, 0.0])), POSE)
    assert watch.damping
    assert 'knee is 0.20 rad from its target' in watch.reports[-1]
    watch.consider(command(POSE + np.array([0.199, -0.199, 0.0])), POSE)
    assert not watch.damping
    assert watch.rejected == {'far': 1}


def test_far_target_is_followed_once_engaged(watch: CommandWatch) -> None:
    follow(watch)
    watch.consider(command(POSE + 1.0, received=20 * MS), POSE)
    np.testing.assert_array_equal(watch.target(20 * MS), POSE + 1.0)


def test_restarted_commander_cannot_snap_the_robot(watch: CommandWatch) -> None:
    follow(watch)
    assert watch.target(200 * MS) is None
    for k in range(5):
        now = (300 + 20 * k) * MS
        watch.consider(command(POSE + 0.5, received=now), POSE)
        assert watch.target(now) is None


def test_joints_are_matched_by_name_in_any_order(watch: CommandWatch) -> None:
    watch.consider(command(POSE[[2, 0, 1]], names=('ankle', 'hip', 'knee')), POSE)
    np.testing.assert_array_equal(watch.target(0), POSE)


@pytest.mark.parametrize(
    ('bad', 'reason', 'told'),
    [
        (command(frame_id='fedcba9876543210'), 'contract', "'fedcba9876543210'"),
        (command(frame_id=''), 'contract', "contract ''"),
        (command(names=('hip', 'knee', 'toe')), 'joints', 'missing ankle; unexpected toe'),
        (command(names=('hip', 'knee')), 'joints', 'missing ankle'),
        (command(names=('hip', 'knee', 'ankle', 'hip')), 'joints', 'duplicated hip'),
        (command(POSE[:2]), 'length', '3 names but 2 positions'),
        (command([0.1, np.nan, 0.3]), 'not_finite', 'knee'),
        (command([0.1, 0.2, np.inf]), 'not_finite', 'ankle'),
    ],
)
def test_bad_command_is_refused_counted_and_told_once(
    watch: CommandWatch, bad: JointCommand, reason: str, told: str
) -> None:
    for _ in range(3):
        watch.consider(bad, POSE)
    assert watch.damping
    assert watch.rejected == {reason: 3}
    assert watch.received == 3
    assert len(watch.reports) == 1
    assert told in watch.reports[0]


def test_refused_commands_count_as_silence(watch: CommandWatch) -> None:
    follow(watch)
    for now in range(0, 120 * MS, 20 * MS):
        watch.consider(command(frame_id='other', received=now), POSE)
    np.testing.assert_array_equal(watch.target(100 * MS), POSE)
    assert watch.target(101 * MS) is None


def test_order_of_the_command_does_not_change_the_motion() -> None:
    contract: Contract = load_contract(find_data('policies/g1_walk/policy.yaml'))
    default = contract.per_joint('default_position')
    rng = np.random.default_rng(3)

    def motion(order: Array) -> Array:
        robot = MujocoRobot(contract)
        watch = CommandWatch(contract.joint_names, contract.sha256)
        names = tuple(contract.joint_names[i] for i in order)
        for k in range(40):
            target = default + 0.1 * np.sin(0.3 * k + np.arange(len(default)))
            sent = command(target[order], k * 20 * MS, names, contract.sha256[:16])
            watch.consider(sent, robot.snapshot().joint_pos)
            robot.step(watch.target(k * 20 * MS))
        assert not watch.damping
        return robot.snapshot().joint_pos

    straight = motion(np.arange(len(default)))
    np.testing.assert_array_equal(motion(rng.permutation(len(default))), straight)


def test_while_one_sender_is_followed_a_second_is_refused(watch: CommandWatch) -> None:
    mine, other = 1000, 5
    for k in range(20):
        now = 20 * MS * k
        watch.consider(command(received=now)._replace(sequence=mine + k), POSE)
        stranger = command(POSE + 0.1, now + MS)._replace(sequence=other + k)
        watch.consider(stranger, POSE)
        np.testing.assert_array_equal(watch.target(now + 2 * MS), POSE)
    assert watch.rejected == {'second_sender': 20}


def test_a_second_sender_is_taken_once_the_first_is_silent_and_the_motors_damp(watch) -> None:
    watch.consider(command(received=0)._replace(sequence=1000), POSE)
    assert watch.target(101 * MS) is None
    watch.consider(command(received=102 * MS)._replace(sequence=1), POSE)
    assert not watch.damping
