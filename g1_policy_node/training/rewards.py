"""What walking well is worth: one table of weights, one small function for each.

The weights began as those of the reference policy's training. What made that turn was hip
yaw at -0.15 rather than -1 and yaw tracking at 1.5 over 0.16; before, it ignored the yaw command.
What made this one step was gait at 1.5 rather than 0.5, and action rate, mostly a price on
exploration, at -0.02 rather than -0.05; before, it stood still. Beside them are the mean error
over a stride, which is what a command means, power, torque over the hardware's, and touching
anything but with the feet.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from g1_policy_node.contract import Contract
from g1_policy_node.training.terms import BatchState, per_joint

STANDING_HEIGHT = 0.77
STEP_HEIGHT = 0.1
SOFT_LIMITS = 0.9
"""The part of each joint's range, and of its effort, that is not punished."""


class Feet(NamedTuple):
    """The feet of N robots: touching and meant to be (N, 2), height m, speed over ground m/s."""

    touching: Tensor
    wanted: Tensor
    height: Tensor
    speed: Tensor


class Moment(NamedTuple):
    """What the rewards look at after a step, N robots at once; SI units, policy order.

    `mean_error` (N, 3) of the velocity over the last stride; `torque` (N, J) of the PD, unlimited,
    and `asked_torque` the same when the target was new; `action` and `last_action` (N, J) as
    clipped, `height` (N,) of the pelvis, `standing` (N,) who is told to stand, `terminated` (N,)
    who fell, `undesired_contacts` (N,) how many bodies but the feet touch something.
    """

    state: BatchState
    command: Tensor
    mean_error: Tensor
    torque: Tensor
    asked_torque: Tensor
    action: Tensor
    last_action: Tensor
    joint_acc: Tensor
    height: Tensor
    standing: Tensor
    terminated: Tensor
    undesired_contacts: Tensor
    feet: Feet


WEIGHTS: dict[str, float] = {
    'terminated': -100.0,
    'alive': 0.15,
    'track_lin_vel': 1.5,
    'track_ang_vel': 1.5,
    'track_mean_lin_vel': 6.0,
    'track_mean_ang_vel': 4.0,
    'lin_vel_z': -2.0,
    'ang_vel_xy': -0.05,
    'joint_vel': -0.001,
    'joint_acc': -2.5e-7,
    'action_rate': -0.02,
    'power': -0.008,
    'torque_limits': -0.2,
    'joint_limits': -5.0,
    'arms': -0.3,
    'waist': -0.5,
    'hip_roll': -1.0,
    'hip_yaw': -0.15,
    'stand_still': -0.2,
    'upright': -5.0,
    'height': -10.0,
    'gait': 1.5,
    'undesired_contacts': -1.0,
    'feet_slide': -0.2,
    'feet_clearance': 1.0,
}

REFINING = ('power', 'torque_limits')
"""What is asked for in full only once the robot walks."""


class Rewards:
    """Weighs the terms of a moment."""

    def __init__(self, contract: Contract, device: str) -> None:
        self._default = per_joint(contract, 'default_position', device)
        self._effort = per_joint(contract, 'effort_limit_hardware', device)
        lower, upper = per_joint(contract, 'position_limits', device).T
        middle, half = (upper + lower) / 2, (upper - lower) / 2
        self._lower, self._upper = middle - SOFT_LIMITS * half, middle + SOFT_LIMITS * half
        self._deviations = {
            name: find_joints(contract.joint_names, parts) for name, parts in _JOINTS.items()
        }

    def terms(self, m: Moment, refinement: float) -> dict[str, Tensor]:
        """Return the weighed terms, each (N,) per second; those of REFINING by `refinement`."""
        out = {name: function(m) for name, function in _TERMS.items()}
        away = (m.state.joint_pos - self._default).abs()
        for name, ids in self._deviations.items():
            out[name] = away[:, ids].sum(-1)
        out['stand_still'] = away.sum(-1) * m.standing
        q = m.state.joint_pos
        out['joint_limits'] = ((self._lower - q).relu() + (q - self._upper).relu()).sum(-1)
        out['torque_limits'] = (m.asked_torque.abs() / self._effort - SOFT_LIMITS).relu().sum(-1)
        for name in REFINING:
            out[name] = refinement * out[name]
        return {name: weight * out[name] for name, weight in WEIGHTS.items()}


def find_joints(names: Sequence[str], parts: Sequence[str]) -> list[int]:
    """Return the places of the joints whose name contains one of `parts`."""
    return [i for i, name in enumerate(names) if any(part in name for part in parts)]


_JOINTS = {
    'arms': ('_shoulder_', '_elbow_', '_wrist_'),
    'waist': ('waist_',),
    'hip_roll': ('_hip_roll_',),
    'hip_yaw': ('_hip_yaw_',),
}


def _track(wanted: Tensor, is_: Tensor, width: float) -> Tensor:
    return torch.exp(-(wanted - is_).square().sum(-1) / width)


def _track_mean(error: Tensor, width: float) -> Tensor:
    """Have a slope however small the error is."""
    return torch.exp(-torch.linalg.vector_norm(error, dim=-1) / width)


def _clearance(m: Moment) -> Tensor:
    low = (m.feet.height - STEP_HEIGHT).square() * torch.tanh(2.0 * m.feet.speed)
    return torch.exp(-low.sum(-1) / 0.05)


_TERMS: dict[str, Callable[[Moment], Tensor]] = {
    'terminated': lambda m: m.terminated.float(),
    'alive': lambda m: torch.ones_like(m.height),
    'track_lin_vel': lambda m: _track(m.command[:, :2], m.state.lin_vel[:, :2], 0.25),
    'track_ang_vel': lambda m: _track(m.command[:, 2:], m.state.ang_vel[:, 2:], 0.16),
    'track_mean_lin_vel': lambda m: _track_mean(m.mean_error[:, :2], 0.1),
    'track_mean_ang_vel': lambda m: _track_mean(m.mean_error[:, 2:], 0.1),
    'lin_vel_z': lambda m: m.state.lin_vel[:, 2].square(),
    'ang_vel_xy': lambda m: m.state.ang_vel[:, :2].square().sum(-1),
    'joint_vel': lambda m: m.state.joint_vel.square().sum(-1),
    'joint_acc': lambda m: m.joint_acc.square().sum(-1),
    'action_rate': lambda m: (m.action - m.last_action).square().sum(-1),
    'power': lambda m: (m.torque * m.state.joint_vel).abs().sum(-1),
    'upright': lambda m: m.state.gravity[:, :2].square().sum(-1),
    'height': lambda m: (m.height - STANDING_HEIGHT).square(),
    'gait': lambda m: (m.feet.touching == m.feet.wanted).float().sum(-1),
    'undesired_contacts': lambda m: m.undesired_contacts.float(),
    'feet_slide': lambda m: (m.feet.speed * m.feet.touching).sum(-1),
    'feet_clearance': _clearance,
}
