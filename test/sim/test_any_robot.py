"""What a robot does in every simulator: hoist, fall, push, reset, and walk as measured."""

from typing import Any

import numpy as np
import pytest

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle
from g1_policy_node.contract import Contract
from g1_policy_node.paths import find_data
from g1_policy_node.policy import Policy
from g1_policy_node.sim.protocol import Robot
from g1_policy_node.sim.robot import STANDING_HEIGHT
from g1_policy_node.types import Array


@pytest.fixture
def robot(make_robot: Any) -> Robot:
    made: Robot = make_robot(0.005)
    return made


def default(contract: Contract) -> Array:
    return contract.per_joint('default_position')


def let_go_after_settling(robot: Robot, contract: Contract) -> None:
    """Hang it for a second at the default pose, then end the hoist."""
    robot.set_hoist(True)
    for _ in range(200):
        robot.step(default(contract))
    robot.set_hoist(False)


def walk(contract: Contract, robot: Robot, command: Array, ticks: int) -> Array:
    """Walk by the shipped policy; return vx, vy and yaw rate of every tick, (ticks, 3)."""
    bundle = load_bundle(find_data('policies/g1_walk'))
    policy = Policy(bundle.contract, load_actor(contract.network, bundle.weights, 'cpu'))
    track = []
    for k in range(ticks):
        target = policy.step(robot.snapshot().state(), command, k).target
        for _ in range(round(contract.step_dt / robot.physics_dt)):
            robot.step(target)
        now = robot.snapshot()
        track.append([now.lin_vel[0], now.lin_vel[1], now.ang_vel[2]])
    return np.array(track)


def test_a_push_changes_the_velocity_of_the_pelvis_by_what_was_asked(robot: Robot) -> None:
    robot.push(np.array([0.5, -0.2]))
    np.testing.assert_allclose(robot.snapshot().lin_vel, [0.5, -0.2, 0.0], atol=1e-6)


def test_at_the_moment_it_is_let_go_the_imu_feels_no_jump(
    robot: Robot, contract: Contract
) -> None:
    let_go_after_settling(robot, contract)
    robot.step(default(contract))
    felt = np.linalg.norm(robot.snapshot().lin_acc)
    assert 0.0 < felt < 30.0  # From falling freely to standing on two feet.


def test_hoist_holds_the_pelvis_exactly_while_the_joints_move(robot: Robot) -> None:
    robot.set_hoist(True)
    before = robot.snapshot()
    for _ in range(100):
        robot.step(None)
    after = robot.snapshot()
    np.testing.assert_array_equal(after.position, [0.0, 0.0, STANDING_HEIGHT])
    np.testing.assert_array_equal(after.quat_xyzw, before.quat_xyzw)
    np.testing.assert_array_equal(after.ang_vel, 0.0)
    assert np.abs(after.joint_pos - before.joint_pos).max() > 0.05
    np.testing.assert_allclose(after.lin_acc, [0.0, 0.0, 9.81], atol=1e-3)


def test_held_robot_is_not_lifted_again(robot: Robot, contract: Contract) -> None:
    robot.set_hoist(True)
    robot.step(default(contract) + 0.1)
    moving = robot.snapshot().joint_vel
    robot.set_hoist(True)
    np.testing.assert_array_equal(robot.snapshot().joint_vel, moving)
    assert np.abs(moving).max() > 0.0


def test_without_policy_or_hoist_it_falls_in_about_a_second(
    robot: Robot, contract: Contract
) -> None:
    let_go_after_settling(robot, contract)
    steps = 0
    while not robot.snapshot().fallen and steps < 1000:
        robot.step(default(contract))
        steps += 1
    assert 0.8 < steps * robot.physics_dt < 1.6  # docs/facts.md section 1: about 1.2 s.


def test_push_moves_nothing_on_the_hoist(robot: Robot) -> None:
    robot.set_hoist(True)
    robot.push(np.array([1.0, 0.0]))
    np.testing.assert_array_equal(robot.snapshot().lin_vel, 0.0)


def test_reset_after_anything_repeats_the_same_motion(robot: Robot, contract: Contract) -> None:
    def motion() -> Array:
        for _ in range(40):
            robot.step(default(contract))
        return robot.snapshot().joint_pos

    first = motion()
    robot.set_hoist(True)
    robot.step(None)
    robot.reset()
    assert not robot.hoisted
    np.testing.assert_array_equal(motion(), first)


@pytest.mark.parametrize(
    ('command', 'measured'),
    [((0.5, 0.0, 0.0), (0.54, 0.0, 0.0)), ((0.0, 0.0, 0.6), (0.03, -0.03, 0.59))],
)
def test_shipped_policy_walks_as_measured(
    contract: Contract,
    robot: Robot,
    command: tuple[float, float, float],
    measured: tuple[float, float, float],
) -> None:
    track = walk(contract, robot, np.array(command), 500)
    assert not robot.snapshot().fallen
    # docs/facts.md section 1: the mean over t > 2 s of 10 s, which has two decimals.
    np.testing.assert_allclose(track[100:].mean(0), measured, atol=0.01)
