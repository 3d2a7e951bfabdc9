"""The environment that training steps: its sizes, its resets, and the contract in it."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from samples import CONTRACT
from training_smoke.runs import NUM_ENVS

from g1_policy_node.observation import ObservationBuilder, projected_gravity
from g1_policy_node.training.curriculum import REFINED_AFTER, command_share
from g1_policy_node.types import RobotState

pytestmark = pytest.mark.timeout(600)

JOINTS = len(CONTRACT.joint_names)


def some_actions() -> torch.Tensor:
    return 0.5 * torch.randn(NUM_ENVS, JOINTS)


def test_an_observation_is_73_wide_and_an_action_29(env: Any) -> None:
    observations = env.get_observations()
    assert observations['policy'].shape == (NUM_ENVS, 73)
    assert observations['critic'].shape == (NUM_ENVS, 82)
    assert env.unwrapped.raw_action.shape == (NUM_ENVS, 29) == (NUM_ENVS, JOINTS)
    assert env.unwrapped.step_dt == pytest.approx(CONTRACT.step_dt)


def test_observations_and_rewards_stay_finite_under_random_actions(env: Any) -> None:
    torch.manual_seed(1)
    moved = torch.zeros(JOINTS)
    before = env.unwrapped.state().joint_pos.clone()
    for _ in range(30):
        observations, rewards, _, _ = env.step(some_actions())
        for name, values in (*observations.items(), ('reward', rewards)):
            assert torch.isfinite(values).all(), name
        moved = torch.maximum(moved, (env.unwrapped.state().joint_pos - before).abs().amax(0))
    assert (moved > 1e-3).all(), 'a joint that does not move is not driven'


def test_a_fallen_robot_starts_again_and_the_other_goes_on(env: Any) -> None:
    inner = env.unwrapped
    env.reset()
    for _ in range(3):
        env.step(torch.zeros(NUM_ENVS, JOINTS))
    pose = inner.robot.data.root_link_pose_w.torch[:1].clone()
    pose[:, 2] = 0.2
    ids = torch.tensor([0], dtype=torch.int32)
    inner.robot.write_root_pose_to_sim_index(root_pose=pose, env_ids=ids)
    _, _, dones, extras = env.step(torch.zeros(NUM_ENVS, JOINTS))
    assert dones.tolist() == [1, 0]
    assert not extras['time_outs'].any(), 'a fall is no end of time'
    assert inner.episode_length_buf.tolist() == [0, 4]
    assert inner.robot.data.root_pos_w.torch[0, 2] > 0.7
    away = inner.state().joint_pos[0] - torch.tensor(CONTRACT.per_joint('default_position'))
    assert away.abs().max() < 0.3
    assert not inner.raw_action[0].any()
    assert 0 <= inner.k[0] < inner.gait.period
    limits = torch.tensor(CONTRACT.command_limits) * command_share(inner.common_step_counter)
    assert (limits[:, 0] <= inner.command[0]).all()
    assert (inner.command[0] <= limits[:, 1]).all()
    assert extras['log'], 'what the episode was worth, by reward term'
    assert all(math.isfinite(float(value)) for value in extras['log'].values())


def test_the_critics_clean_row_is_the_robots_observation_of_the_same_state(env: Any) -> None:
    inner, data = env.unwrapped, env.unwrapped.robot.data
    for _ in range(5):
        observations, *_ = env.step(some_actions())
    for i in range(NUM_ENVS):
        joint_pos, joint_vel, ang_vel, _, lin_vel = (x[i].numpy() for x in inner.state())
        # The robot works gravity out of its orientation; Isaac Lab has its own way.
        gravity = projected_gravity(data.root_quat_w.torch[i].numpy().astype(float))
        state = RobotState(joint_pos, joint_vel, ang_vel, gravity, lin_vel)
        row = ObservationBuilder(CONTRACT).build(
            state,
            inner.command[i].numpy().astype(float),
            int(inner.k[i]),
            inner.raw_action[i].numpy(),
        )
        np.testing.assert_allclose(observations['critic'][i, :73].numpy(), row, atol=2e-6)


def test_the_motors_have_the_contracts_gains_armature_and_limits(env: Any) -> None:
    inner, data = env.unwrapped, env.unwrapped.robot.data
    assert tuple(inner.robot.joint_names[i] for i in inner._joints) == CONTRACT.joint_names
    for field, buffer in (
        ('armature', data.joint_armature),
        ('effort_limit_training', data.joint_effort_limits),
    ):
        found = buffer.torch[:, inner._joints].numpy()
        np.testing.assert_allclose(found, [CONTRACT.per_joint(field)] * NUM_ENVS, rtol=1e-6)


def test_gains_trunks_and_soles_differ_from_robot_to_robot_within_bounds(env: Any) -> None:
    inner, data = env.unwrapped, env.unwrapped.robot.data
    for field, buffer in (('stiffness', data.joint_stiffness), ('damping', data.joint_damping)):
        share = buffer.torch[:, inner._joints].numpy() / CONTRACT.per_joint(field)
        assert (np.abs(share - 1.0) <= 0.1 + 1e-6).all(), field
        assert (share[0] != share[1]).any(), field
    [trunk], _ = inner.robot.find_bodies('torso_link')
    masses = data.body_mass.torch[:, trunk]
    assert masses[0] != masses[1]


def test_an_observation_comes_with_that_of_the_tick_before(env: Any) -> None:
    inner = env.unwrapped
    observations, *_ = env.step(some_actions())
    later, *_ = env.step(some_actions())
    for i in range(NUM_ENVS):
        new = inner.episode_length_buf[i] == 0
        before = later['policy'][i] if new else observations['policy'][i]
        assert torch.equal(later['previous'][i], before)


def test_the_largest_kick_is_what_the_curriculum_allows(
    env: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from g1_policy_node.training.env import PUSH_SPEED, REFINED_PUSH_SPEED

    inner, data = env.unwrapped, env.unwrapped.robot.data
    largest = []
    for steps in (0, REFINED_AFTER):
        monkeypatch.setattr(inner, 'common_step_counter', steps)
        added = []
        for _ in range(40):
            env.reset()
            before = data.root_lin_vel_w.torch.clone()
            inner._push(torch.tensor([0]))
            change = data.root_lin_vel_w.torch - before
            assert not change[1].any(), 'the other robot is left alone'
            added.append(float(torch.linalg.vector_norm(change[0, :2])))
        largest.append(max(added))
    assert 0.5 * PUSH_SPEED < largest[0] <= PUSH_SPEED + 1e-5
    assert PUSH_SPEED < largest[1] <= REFINED_PUSH_SPEED + 1e-5


def test_legs_that_cross_are_an_undesired_contact_and_standing_feet_are_none(env: Any) -> None:
    inner = env.unwrapped
    env.reset()
    joints = inner.robot.data.default_joint_pos.torch[:1].clone()
    for name, angle in (('left_hip_roll_joint', -0.4), ('right_hip_roll_joint', 0.4)):
        joints[:, inner.robot.find_joints(name)[0]] = angle
    ids = torch.tensor([0], dtype=torch.int32)
    inner.robot.write_joint_position_to_sim_index(position=joints, env_ids=ids)
    env.step(torch.zeros(NUM_ENVS, JOINTS))
    moment = inner._moment()
    assert moment.undesired_contacts[0] >= 2
    assert moment.undesired_contacts[1] == 0
    assert moment.feet.touching[1].all()
