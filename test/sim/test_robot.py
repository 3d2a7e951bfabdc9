"""The robot in MuJoCo: the model is the contract's, and it does what a hoisted G1 does."""

import dataclasses
import importlib.util

import mujoco
import numpy as np
import pytest

from g1_policy_node.contract import Contract
from g1_policy_node.joints import G1_JOINTS
from g1_policy_node.sim.model import build_model, find_mjcf
from g1_policy_node.sim.robot import STANDING_HEIGHT, MujocoRobot
from g1_policy_node.types import Array, UserError


@pytest.fixture
def robot(contract: Contract) -> MujocoRobot:
    return MujocoRobot(contract)


def default(contract: Contract) -> Array:
    return contract.per_joint('default_position')


def test_joint_limits_in_the_package_are_those_of_the_model(contract: Contract) -> None:
    model = mujoco.MjModel.from_xml_path(str(find_mjcf()))
    for joint in G1_JOINTS:
        assert tuple(model.joint(joint.name).range) == (joint.lower, joint.upper)


def test_gains_armature_and_limits_of_the_model_are_the_contracts(contract: Contract) -> None:
    # In reverse order: actuator i is joint i of the contract, whatever its order.
    contract = dataclasses.replace(contract, joint_names=contract.joint_names[::-1])
    model = build_model(contract, 0.002)
    effort = contract.per_joint('effort_limit_training')
    stiffness, damping = contract.per_joint('stiffness'), contract.per_joint('damping')
    assert [model.actuator(i).name for i in range(model.nu)] == list(contract.joint_names)
    np.testing.assert_array_equal(model.actuator_gainprm[:, 0], stiffness)
    np.testing.assert_array_equal(model.actuator_biasprm[:, 1], -stiffness)
    np.testing.assert_array_equal(model.actuator_biasprm[:, 2], -damping)
    np.testing.assert_array_equal(model.actuator_forcerange, np.stack([-effort, effort], 1))
    assert model.actuator_forcelimited.all()
    dofs = [model.joint(name).dofadr[0] for name in contract.joint_names]
    np.testing.assert_array_equal(model.dof_armature[dofs], contract.per_joint('armature'))
    assert model.opt.timestep == 0.002
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST


def test_leaving_out_what_is_only_seen_changes_no_inertia(contract: Contract) -> None:
    whole = mujoco.MjModel.from_xml_path(str(find_mjcf()))
    ours = build_model(contract, 0.005)
    assert ours.nmesh == 0
    np.testing.assert_array_equal(ours.body_mass, whole.body_mass)
    np.testing.assert_array_equal(ours.body_inertia, whole.body_inertia)
    assert ours.ngeom == np.count_nonzero(whole.geom_contype) + 1  # And the floor.


def test_floor_friction_is_the_one_asked_for(contract: Contract) -> None:
    assert build_model(contract, 0.005).geom('floor').friction[0] == 1.0
    assert build_model(contract, 0.005, 0.6).geom('floor').friction[0] == 0.6


def test_the_imu_site_has_the_axes_of_the_pelvis(contract: Contract) -> None:
    site = build_model(contract, 0.005).site('imu_in_pelvis')
    np.testing.assert_array_equal(site.quat, [1.0, 0.0, 0.0, 0.0])


def test_joint_of_another_robot_is_named(contract: Contract) -> None:
    renamed = tuple('tail_joint' if n == 'waist_yaw_joint' else n for n in contract.joint_names)
    joints = {**contract.joints, 'tail_joint': contract.joints['waist_yaw_joint']}
    other = dataclasses.replace(contract, joint_names=renamed, joints=joints)
    with pytest.raises(UserError, match='missing waist_yaw_joint; unexpected tail_joint'):
        build_model(other, 0.005)


def test_absent_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(UserError, match=r'pip install --no-deps mjlab==1\.6\.0'):
        find_mjcf()


def test_changed_model_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('g1_policy_node.sim.model.MJCF_SHA256', '0' * 64)
    with pytest.raises(UserError, match='sha256 febdcbeffbbf8405, not 0000'):
        find_mjcf()


def test_fallen_robot_is_lifted_where_it_lies(robot: MujocoRobot) -> None:
    robot.data.qpos[:2] = (3.0, -2.0)
    robot.data.qpos[3:7] = (np.cos(0.5), 0.0, 0.0, np.sin(0.5))  # Yaw of 1 rad.
    for _ in range(600):
        robot.step(None)
    lying = robot.snapshot()
    assert robot.fallen
    robot.set_hoist(True)
    held = robot.snapshot()
    assert not robot.fallen
    np.testing.assert_array_equal(held.position, [*lying.position[:2], STANDING_HEIGHT])
    np.testing.assert_array_equal(held.joint_pos, lying.joint_pos)
    np.testing.assert_array_equal(held.lin_vel, 0.0)
    np.testing.assert_array_equal(held.joint_vel, 0.0)
    assert held.quat_xyzw[0] == held.quat_xyzw[1] == 0.0
    x, y, z, w = lying.quat_xyzw
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    assert 2 * np.arctan2(held.quat_xyzw[2], held.quat_xyzw[3]) == pytest.approx(yaw)


def test_damping_is_torque_against_the_speed_alone(robot: MujocoRobot, contract: Contract) -> None:
    robot.set_hoist(True)
    for _ in range(20):
        robot.step(default(contract) + 0.05)
    before = robot.snapshot()
    robot.step(None)
    np.testing.assert_allclose(
        robot.snapshot().joint_effort,
        -contract.per_joint('damping') * before.joint_vel,
        atol=1e-9,
    )


def test_effort_stays_within_the_training_limits(robot: MujocoRobot, contract: Contract) -> None:
    robot.set_hoist(True)
    robot.step(default(contract) + 3.0)
    limits = contract.per_joint('effort_limit_training')
    effort = robot.snapshot().joint_effort
    assert np.all(np.abs(effort) <= limits)
    assert np.any(np.abs(effort) == limits)


def test_power_is_that_of_every_joint_braking_or_driving(
    robot: MujocoRobot, contract: Contract
) -> None:
    robot.set_hoist(True)
    target = default(contract) + 0.2
    signs = set()
    for _ in range(40):
        robot.step(target)
        now = robot.snapshot()
        each = now.joint_effort * now.joint_vel
        signs |= set(np.sign(each))
        assert robot.joint_power() == pytest.approx(np.abs(each).sum())
    assert signs >= {-1.0, 1.0}


def test_velocities_are_in_the_base_frame(robot: MujocoRobot) -> None:
    robot.data.qpos[3:7] = (np.cos(np.pi / 4), 0.0, 0.0, np.sin(np.pi / 4))  # Facing +y.
    robot.push(np.array([0.0, 0.5]))
    robot.data.qvel[3:6] = (0.1, 0.2, 0.3)
    now = robot.snapshot()
    np.testing.assert_allclose(now.lin_vel, [0.5, 0.0, 0.0], atol=1e-12)
    np.testing.assert_array_equal(now.ang_vel, [0.1, 0.2, 0.3])


def test_angular_velocity_is_what_the_pelvis_imu_measures(robot: MujocoRobot) -> None:
    robot.data.qpos[3:7] = np.array([0.8, 0.3, -0.4, 0.33]) / np.linalg.norm([0.8, 0.3, 0.4, 0.33])
    robot.data.qvel[3:6] = (0.5, -1.0, 2.0)
    mujoco.mj_forward(robot.model, robot.data)
    gyro = robot.data.sensor('imu_ang_vel').data
    np.testing.assert_allclose(robot.snapshot().ang_vel, gyro, atol=1e-12)


def test_a_hand_in_the_thigh_is_touching_itself_and_standing_is_not(
    robot: MujocoRobot, contract: Contract
) -> None:
    robot.reset()
    assert not robot.touches_itself
    target = default(contract)
    target[contract.joint_names.index('left_shoulder_roll_joint')] -= 1.0
    robot.set_hoist(True)
    for _ in range(200):
        robot.step(target)
    assert robot.touches_itself
