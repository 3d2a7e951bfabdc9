"""The mirror is that of the robot's own physics and of the contract's own observation."""

import dataclasses

import mujoco
import numpy as np
import pytest
import torch
from samples import CONTRACT, random_state, with_terms

from g1_policy_node.contract import ObservationTerm
from g1_policy_node.sim.model import build_model
from g1_policy_node.training.env_sizes import PRIVILEGED
from g1_policy_node.training.mirror import AXIAL, COMMAND, POLAR, Mirror
from g1_policy_node.training.terms import BatchObservation, BatchState
from g1_policy_node.types import UserError

MIRROR = Mirror(CONTRACT, 'cpu')
HISTORY = with_terms(
    ObservationTerm('gait_contact', 2),
    ObservationTerm('base_ang_vel', 3, scale=0.2, history=3),
    ObservationTerm('joint_pos_rel', 29, history=2, history_order='newest_first'),
    ObservationTerm('last_action', 29),
)


def mirrored(values: np.ndarray) -> np.ndarray:
    """Joint values of the other side, which is what an action becomes."""
    return MIRROR.action.of(torch.tensor(values)).numpy()


def test_the_robot_moves_in_the_mirror_as_its_image_does_here() -> None:
    model = build_model(CONTRACT, 0.005)
    rng = np.random.default_rng(3)
    default = np.array(CONTRACT.per_joint('default_position'))
    pose, speed = default + 0.2 * rng.normal(size=29), rng.normal(size=29)
    target = default + 0.2 * rng.normal(size=29)
    linear, angular = rng.normal(size=3), rng.normal(size=3)
    ends = []
    for image in (False, True):
        turn = mirrored if image else np.asarray
        data = mujoco.MjData(model)
        data.qpos[:7] = (0.0, 0.0, 3.0, 1.0, 0.0, 0.0, 0.0)
        data.qpos[7:], data.qvel[6:], data.ctrl[:] = turn(pose), turn(speed), turn(target)
        data.qvel[:3] = linear * (POLAR if image else 1.0)
        data.qvel[3:6] = angular * (AXIAL if image else 1.0)
        for _ in range(20):
            mujoco.mj_step(model, data)
        ends.append(np.concatenate([data.qpos[:3], data.qvel[:6], data.qpos[7:], data.qvel[6:]]))
    here, image_of_here = ends
    here = np.concatenate([
        here[:3] * POLAR, here[3:6] * POLAR, here[6:9] * AXIAL,
        mirrored(here[9:38]), mirrored(here[38:]),
    ])  # fmt: skip
    # The model's two hands differ by some grams; a wrong sign is off by 0.1 and more.
    np.testing.assert_allclose(image_of_here, here, atol=0.02)


@pytest.mark.parametrize('contract', [CONTRACT, HISTORY], ids=['73', 'history'])
def test_the_image_of_an_observation_is_that_of_the_image(contract) -> None:
    mirror = Mirror(contract, 'cpu')
    rng = np.random.default_rng(4)
    here, image = (BatchObservation(contract, 1, 'cpu') for _ in range(2))
    half = contract.gait.period // 2
    for tick in range(4):
        one = random_state(rng, lin_vel=True)
        state = BatchState(
            *(torch.tensor(getattr(one, n), dtype=torch.float32)[None] for n in BatchState._fields)
        )
        other = BatchState(
            mirror.action.of(state.joint_pos), mirror.action.of(state.joint_vel),
            state.ang_vel * torch.tensor(AXIAL), state.gravity * torch.tensor(POLAR),
            state.lin_vel * torch.tensor(POLAR),
        )  # fmt: skip
        command = torch.tensor(rng.normal(size=(1, 3)), dtype=torch.float32)
        last = torch.tensor(rng.normal(size=(1, 29)), dtype=torch.float32)
        row = here.build(state, command, torch.tensor([tick]), last, noise=False)
        seen = image.build(
            other, command * torch.tensor(COMMAND), torch.tensor([tick + half]),
            mirror.action.of(last), noise=False,
        )  # fmt: skip
        torch.testing.assert_close(mirror.observation.of(row), seen, atol=1e-6, rtol=0)
        assert not torch.allclose(row, seen)


def test_the_image_of_the_image_is_the_same_again() -> None:
    rows = torch.randn(5, 73 + PRIVILEGED)
    assert torch.equal(MIRROR.critic.of(MIRROR.critic.of(rows)), rows)
    assert torch.equal(MIRROR.critic.of(rows)[:, :73], MIRROR.observation.of(rows[:, :73]))
    left_foot, right_foot = 73 + 4, 73 + 5
    assert torch.equal(MIRROR.critic.of(rows)[:, left_foot], rows[:, right_foot])


def test_a_robot_that_is_not_the_same_on_both_sides_is_refused() -> None:
    name = 'left_knee_joint'
    bent = dataclasses.replace(CONTRACT.joints[name], default_position=0.4)
    lopsided = dataclasses.replace(CONTRACT, joints={**CONTRACT.joints, name: bent})
    with pytest.raises(UserError, match='its default position is not the same on both sides'):
        Mirror(lopsided, 'cpu')
