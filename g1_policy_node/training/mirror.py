"""What a contract's observation and action become in a mirror; needs torch alone."""

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

PRIVILEGED = (*POLAR, 1.0, None, None, *COMMAND)
"""Signs of what only the critic sees; None: the feet, which change places."""


class Mirror:
    """Mirrors observations (N, W), critic observations and raw actions (N, J) of a contract.

    A joint's image is that of the other side by name; roll and yaw joints turn the other way.
    Raises UserError for a robot whose default pose or action is not the same on both sides.
    """

    def __init__(self, contract: Contract, device: str) -> None:
        names = contract.joint_names
        self._joint_ids = [names.index(_other_side(name)) for name in names]
        self._joint_signs = [-1.0 if 'roll' in n or 'yaw' in n else 1.0 for n in names]
        for what, row in (
            ('default position', [contract.joints[n].default_position for n in names]),
            ('action offset', [contract.action.offset[n] for n in names]),
        ):
            image = np.array(self._joint_signs) * np.array(row)[self._joint_ids]
            if not np.allclose(image, row, atol=1e-9):
                raise UserError(f'{contract.name}: its {what} is not the same on both sides')
        ids, signs = self._observation_rows(contract)
        width = len(ids)
        feet = [width + 5, width + 4]
        more = [*range(width, width + 4), *feet, *range(width + 6, width + len(PRIVILEGED))]
        more_signs = [1.0 if sign is None else sign for sign in PRIVILEGED]
        self._observation = _move(ids, signs, device)
        self._critic = _move(ids + more, signs + more_signs, device)
        self._action = _move(self._joint_ids, self._joint_signs, device)

    def observation(self, rows: Tensor) -> Tensor:
        """Return the observations as the mirrored robot would make them."""
        return _apply(rows, self._observation)

    def critic(self, rows: Tensor) -> Tensor:
        """Return the critic's observations as of the mirrored robot."""
        return _apply(rows, self._critic)

    def action(self, raw: Tensor) -> Tensor:
        """Return the raw actions the mirrored robot would take."""
        return _apply(raw, self._action)

    def _observation_rows(self, contract: Contract) -> tuple[list[int], list[float]]:
        joints = (self._joint_ids, self._joint_signs)
        feet = ([1, 0], [1.0, 1.0])
        images = {
            'base_lin_vel': ([0, 1, 2], list(POLAR)),
            'base_ang_vel': ([0, 1, 2], list(AXIAL)),
            'projected_gravity': ([0, 1, 2], list(POLAR)),
            'velocity_commands': ([0, 1, 2], list(COMMAND)),
            'joint_pos_rel': joints,
            'joint_vel_rel': joints,
            'last_action': joints,
            'gait_phase_sin': feet,
            'gait_phase_cos': feet,
            'gait_contact': feet,
        }
        ids: list[int] = []
        signs: list[float] = []
        for row in contract.observations:
            places, turned = images[row.term]
            for _ in range(row.history):
                start = len(ids)
                ids += [start + place for place in places]
                signs += turned
        return ids, signs


def _other_side(name: str) -> str:
    for side, other in (('left_', 'right_'), ('right_', 'left_')):
        if name.startswith(side):
            return other + name.removeprefix(side)
    return name


def _move(ids: list[int], signs: list[float], device: str) -> tuple[Tensor, Tensor]:
    return torch.tensor(ids, device=device), torch.tensor(signs, device=device)


def _apply(rows: Tensor, move: tuple[Tensor, Tensor]) -> Tensor:
    ids, signs = move
    return rows[:, ids] * signs
