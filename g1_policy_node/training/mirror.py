"""What a contract's observation and action become in a mirror; needs torch alone."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from g1_policy_node.contract import Contract
from g1_policy_node.types import UserError

POLAR = (1.0, -1.0, 1.0)
"""Signs of a velocity or of gravity: the y axis points to the other side."""

AXIAL = (-1.0, 1.0, -1.0)
"""Signs of a rate of turn: roll and yaw are turned round, pitch is not."""

COMMAND = (1.0, -1.0, -1.0)
"""Signs of a command: vx, vy and yaw rate."""


class Image(NamedTuple):
    """What a row (..., W) is in the mirror: value `ids[i]` (W,) times `signs[i]` (W,), at i.

    The image of the image is the row itself.
    """

    ids: Tensor
    signs: Tensor

    def of(self, rows: Tensor) -> Tensor:
        """Return the rows as the mirror shows them."""
        return rows[..., self.ids] * self.signs


class Mirror:
    """The images of observations, critic observations and raw actions of a contract.

    A joint's image is that of the other side by name; roll and yaw joints turn the other way.
    Raises UserError for a robot whose default pose or action is not the same on both sides.
    """

    def __init__(self, contract: Contract, device: str) -> None:
        names = contract.joint_names
        ids = [names.index(_other_side(name)) for name in names]
        signs = [-1.0 if 'roll' in n or 'yaw' in n else 1.0 for n in names]
        for what, row, turned in (
            ('default position', contract.per_joint('default_position'), np.array(signs)),
            ('action offset', [contract.action.offset[n] for n in names], np.array(signs)),
            ('action scale', [contract.action.scale[n] for n in names], 1.0),
        ):
            if not np.allclose(turned * np.array(row)[ids], row, atol=1e-9):
                raise UserError(f'{contract.name}: its {what} is not the same on both sides')
        self._device = device
        self._joints = (ids, signs)
        rows = self._observation_blocks(contract)
        self.action = self._image([self._joints])
        self.observation = self._image(rows)
        # As env_sizes.PRIVILEGED: velocity, height, feet, mean error of the command.
        privileged = [_signs(POLAR), _signs((1.0,)), _FEET, _signs(COMMAND)]
        self.critic = self._image([*rows, *privileged])

    def _observation_blocks(self, contract: Contract) -> list[tuple[list[int], list[float]]]:
        blocks = {
            'base_lin_vel': _signs(POLAR),
            'base_ang_vel': _signs(AXIAL),
            'projected_gravity': _signs(POLAR),
            'velocity_commands': _signs(COMMAND),
            'joint_pos_rel': self._joints,
            'joint_vel_rel': self._joints,
            'last_action': self._joints,
            'gait_phase_sin': _FEET,
            'gait_phase_cos': _FEET,
            'gait_contact': _FEET,
        }
        return [blocks[row.term] for row in contract.observations for _ in range(row.history)]

    def _image(self, blocks: list[tuple[list[int], list[float]]]) -> Image:
        ids: list[int] = []
        signs: list[float] = []
        for places, turned in blocks:
            start = len(ids)
            ids += [start + place for place in places]
            signs += turned
        return Image(
            torch.tensor(ids, device=self._device), torch.tensor(signs, device=self._device)
        )


_FEET = ([1, 0], [1.0, 1.0])


def _signs(signs: tuple[float, ...]) -> tuple[list[int], list[float]]:
    return list(range(len(signs))), list(signs)


def _other_side(name: str) -> str:
    for side, other in (('left_', 'right_'), ('right_', 'left_')):
        if name.startswith(side):
            return other + name.removeprefix(side)
    return name
