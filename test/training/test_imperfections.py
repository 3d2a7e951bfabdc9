"""Targets that come late, and sensors that are a little off."""

import torch

from g1_policy_node.training.imperfections import (
    ENCODER_OFFSET,
    MAX_DELAY,
    MOUNT_TILT,
    Delay,
    Sensing,
)

SUBSTEPS = 4
ROBOTS = torch.arange(400)


def test_each_robot_gets_every_target_its_own_number_of_steps_late() -> None:
    torch.manual_seed(1)
    delay = Delay(torch.zeros(400, 1), SUBSTEPS)
    delay.reset(ROBOTS, torch.zeros(400, 1))
    got = []
    for tick in range(1, 8):
        delay.send(torch.full((400, 1), float(tick)))
        got += [delay.arrived()[:, 0] for _ in range(SUBSTEPS)]
    seen = torch.stack(got)
    late = (seen == 0).sum(0)
    assert late.min() == 0
    assert late.max() == MAX_DELAY
    assert (late == 0).float().mean() > 0.4, 'most robots are not late at all'
    for step in range(len(seen)):
        wanted = torch.div(step - late, SUBSTEPS, rounding_mode='floor') + 1
        assert torch.equal(seen[step], wanted.clamp(min=0).float()), step


def test_a_robot_that_starts_again_has_nothing_on_its_way() -> None:
    delay = Delay(torch.zeros(400, 1), SUBSTEPS)
    delay.send(torch.ones(400, 1))
    delay.reset(ROBOTS[:200], torch.full((200, 1), 5.0))
    assert (delay.arrived()[:200] == 5.0).all()


def test_errors_stay_with_a_robot_until_it_starts_again_and_within_their_bounds() -> None:
    torch.manual_seed(1)
    sensing = Sensing(400, 29, 'cpu')
    joints, down = torch.randn(400, 29), torch.tensor([0.0, 0.0, -1.0]).repeat(400, 1)
    assert torch.equal(sensing.joint_pos(joints), joints)
    sensing.reset(ROBOTS)
    off, tilt = sensing.joint_pos(joints) - joints, sensing.turned(down) - down
    torch.testing.assert_close(sensing.joint_pos(joints) - joints, off)
    for errors, most in ((off, ENCODER_OFFSET), (tilt[:, :2], MOUNT_TILT)):
        assert errors.abs().max() <= most + 1e-6
        assert errors.abs().mean() > 0.4 * most
        assert errors.mean().abs() < 0.1 * most
    sensing.reset(ROBOTS[:200])
    again = sensing.joint_pos(joints) - joints
    assert (again[:200] != off[:200]).any()
    torch.testing.assert_close(again[200:], off[200:])


def test_a_turned_imu_reads_the_rate_and_gravity_of_its_own_frame() -> None:
    sensing = Sensing(1, 29, 'cpu')
    sensing._mount[:] = torch.tensor([[0.0, 0.02, 0.0]])
    # Pitched by +0.02 rad about y, it sees gravity as ahead of it: R^T (0, 0, -1).
    seen = sensing.turned(torch.tensor([[0.0, 0.0, -1.0]]))
    torch.testing.assert_close(seen, torch.tensor([[0.02, 0.0, -1.0]]), atol=1e-6, rtol=0)
