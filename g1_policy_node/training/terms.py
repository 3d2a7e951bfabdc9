"""The contract's observation and action for a batch of robots, as torch tensors.

The terms of observation.py itself, over N robots at once, and its sizes, scales and ticks. Needs
torch alone, so that a test can hold the two against each other where Isaac Lab is not installed.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from g1_policy_node.contract import Contract, GaitContract, ObservationTerm
from g1_policy_node.gait import GaitTable
from g1_policy_node.observation import TERMS, ObservationBuilder


class BatchState(NamedTuple):
    """N robots: joints (N, J) rad and rad/s in policy order, vectors (N, 3) in the base frame."""

    joint_pos: Tensor
    joint_vel: Tensor
    ang_vel: Tensor
    gravity: Tensor
    lin_vel: Tensor


class BatchContext(NamedTuple):
    """What a term may read, by the names of observation.Context.

    `command` is (N, 3), `last_action` (N, J) as the network gave it; `gait` is None where the
    contract has none.
    """

    state: BatchState
    default_joint_pos: Tensor
    command: Tensor
    last_action: Tensor
    gait: 'BatchGaitNow | None'


class BatchGaitNow(NamedTuple):
    """The gait of N robots at a tick, as gait.GaitNow: (N, feet) each, and who stands (N, 1)."""

    sin: Tensor
    cos: Tensor
    contact: Tensor
    standing: Tensor


class BatchGait:
    """The integer gait clock for a batch: the robot's own table of ticks, on the device."""

    def __init__(self, gait: GaitContract, device: str) -> None:
        table = GaitTable(gait)
        self.period = gait.period
        self._stand_below = gait.stand_below
        self._walking, self._standing = (
            [torch.tensor(values, dtype=torch.float32, device=device) for values in ticks]
            for ticks in (table.walking, table.standing)
        )

    def now(self, k: Tensor, command: Tensor) -> BatchGaitNow:
        """Return the gait at ticks `k` (N,) under commands (N, 3)."""
        standing = self.standing(command)[:, None]
        place = k % self.period
        both = zip(self._standing, self._walking, strict=True)
        sin, cos, contact = (
            torch.where(standing, still[place], moving[place]) for still, moving in both
        )
        return BatchGaitNow(sin, cos, contact, standing)

    def standing(self, command: Tensor) -> Tensor:
        """Return who stands, (N,): the norm is taken in float64, as the robot does."""
        return torch.linalg.vector_norm(command.double(), dim=-1) < self._stand_below


class BatchObservation:
    """Builds the observations (N, width) of a contract; it holds the history alone.

    Refuses what the robot's ObservationBuilder refuses.
    """

    def __init__(self, contract: Contract, num_envs: int, device: str) -> None:
        ObservationBuilder(contract)
        self.gait = BatchGait(contract.gait, device) if contract.gait else None
        self.default_joint_pos = per_joint(contract, 'default_position', device)
        self._rows = [(TERMS[row.term].function, row) for row in contract.observations]
        self._scales = [torch.tensor(row.scale, device=device) for row in contract.observations]
        self._history = [
            torch.zeros(num_envs, row.history, row.size, device=device)
            if row.history > 1
            else None
            for row in contract.observations
        ]
        self._fresh = torch.ones(num_envs, 1, 1, dtype=torch.bool, device=device)

    def reset(self, ids: Tensor) -> None:
        """Forget these robots' history; their next frame fills all of it."""
        self._fresh[ids] = True

    def build(
        self, state: BatchState, command: Tensor, k: Tensor, last_action: Tensor, noise: bool
    ) -> Tensor:
        """Return the observations and remember their frames; `k` (N,) is the gait tick.

        With `noise`, every term is disturbed as the contract says, before its clip and scale.
        """
        gait = self.gait.now(k, command) if self.gait else None
        context = BatchContext(state, self.default_joint_pos, command, last_action, gait)
        blocks = []
        for i, (term, row) in enumerate(self._rows):
            value = term(context)
            if noise and row.noise > 0.0:
                value = value + row.noise * (2.0 * torch.rand_like(value) - 1.0)
            blocks.append(self._with_history(i, row, _frame(row, value, self._scales[i])))
        self._fresh[:] = False
        return torch.cat(blocks, dim=-1)

    def _with_history(self, i: int, row: ObservationTerm, frame: Tensor) -> Tensor:
        past = self._history[i]
        if past is None:
            return frame
        newest = frame[:, None, :]
        past = torch.where(self._fresh, newest, torch.cat([past[:, 1:], newest], dim=1))
        self._history[i] = past
        return (past if row.history_order == 'oldest_first' else past.flip(1)).flatten(1)


class BatchAction:
    """target = offset + scale * clip(raw), (N, J) rad in policy order."""

    def __init__(self, contract: Contract, device: str) -> None:
        names, action = contract.joint_names, contract.action
        self._scale = torch.tensor([action.scale[name] for name in names], device=device)
        self._offset = torch.tensor([action.offset[name] for name in names], device=device)
        self._clip = action.clip

    def clip(self, raw: Tensor) -> Tensor:
        """Return the raw actions within the contract's bounds."""
        return raw if self._clip is None else raw.clamp(*self._clip)

    def target(self, raw: Tensor) -> Tensor:
        """Return the joint targets of raw actions."""
        return self._offset + self._scale * self.clip(raw)


def per_joint(contract: Contract, name: str, device: str) -> Tensor:
    """Return a JointContract field as float32, (J,) or (J, 2), in policy order."""
    return torch.tensor(contract.per_joint(name), dtype=torch.float32, device=device)


def _frame(row: ObservationTerm, value: Tensor, scale: Tensor) -> Tensor:
    return (value if row.clip is None else value.clamp(*row.clip)) * scale
