"""The contract's observation and action for a batch of robots, as torch tensors.

The same table of names, sizes, scales and ticks as observation.py, over N robots at once. Needs
torch alone, so that a test can hold the two against each other where Isaac Lab is not installed.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from g1_policy_node.contract import Contract, GaitContract, ObservationTerm
from g1_policy_node.observation import TERMS as NODE_TERMS
from g1_policy_node.observation import ObservationBuilder
from g1_policy_node.types import UserError


class BatchState(NamedTuple):
    """N robots: joints (N, J) rad and rad/s in policy order, vectors (N, 3) in the base frame."""

    joint_pos: Tensor
    joint_vel: Tensor
    ang_vel: Tensor
    gravity: Tensor
    lin_vel: Tensor


class BatchContext(NamedTuple):
    """What a term may read: `command` (N, 3), `last_action` (N, J) as the network gave it.

    `feet` and `standing` are the gait at this tick, None where the contract has no gait.
    """

    state: BatchState
    default_joint_pos: Tensor
    command: Tensor
    last_action: Tensor
    gait: 'GaitNow | None'


class GaitNow(NamedTuple):
    """The gait of N robots at a tick: (N, feet) each, and who stands (N, 1)."""

    sin: Tensor
    cos: Tensor
    contact: Tensor
    standing: Tensor


class GaitTable:
    """The integer gait clock for a batch: every tick's values, worked out once in float64."""

    def __init__(self, gait: GaitContract, device: str) -> None:
        ticks = torch.arange(gait.period)[:, None] + torch.tensor(gait.offsets)
        ticks = ticks % gait.period
        angle = 2 * torch.pi * ticks.double() / gait.period
        self.period = gait.period
        self._stand_below = gait.stand_below
        self._sin, self._cos, self._contact = (
            table.float().to(device) for table in (angle.sin(), angle.cos(), ticks < gait.contact)
        )

    def now(self, k: Tensor, command: Tensor) -> GaitNow:
        """Return the gait at ticks `k` (N,) under commands (N, 3)."""
        standing = self.standing(command)[:, None]
        place = k % self.period
        return GaitNow(
            self._sin[place].masked_fill(standing, 0.0),
            self._cos[place].masked_fill(standing, 0.0),
            self._contact[place].masked_fill(standing, 1.0),
            standing,
        )

    def standing(self, command: Tensor) -> Tensor:
        """Return who stands, (N,): the norm is taken in float64, as the robot does."""
        return torch.linalg.vector_norm(command.double(), dim=-1) < self._stand_below


def _gait(name: str) -> Callable[[BatchContext], Tensor]:
    def term(c: BatchContext) -> Tensor:
        value: Tensor = getattr(c.gait, name)
        return value

    return term


TERMS: dict[str, Callable[[BatchContext], Tensor]] = {
    'base_lin_vel': lambda c: c.state.lin_vel,
    'base_ang_vel': lambda c: c.state.ang_vel,
    'projected_gravity': lambda c: c.state.gravity,
    'velocity_commands': lambda c: c.command,
    'joint_pos_rel': lambda c: c.state.joint_pos - c.default_joint_pos,
    'joint_vel_rel': lambda c: c.state.joint_vel,
    'last_action': lambda c: c.last_action,
    'gait_phase_sin': _gait('sin'),
    'gait_phase_cos': _gait('cos'),
    'gait_contact': _gait('contact'),
}
"""The names of observation.TERMS; a test compares the two, value by value."""


class BatchObservation:
    """Builds the observations (N, width) of a contract; it holds the history alone.

    Refuses what the robot's ObservationBuilder refuses.
    """

    def __init__(self, contract: Contract, num_envs: int, device: str) -> None:
        ObservationBuilder(contract)
        if missing := NODE_TERMS.keys() - TERMS.keys():
            raise UserError(f'training has no observation term {", ".join(sorted(missing))}')
        self.gait = GaitTable(contract.gait, device) if contract.gait else None
        self.default_joint_pos = per_joint(contract, 'default_position', device)
        self._rows = [(TERMS[row.term], row) for row in contract.observations]
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


def noise_bounds(contract: Contract, device: str) -> Tensor:
    """Return how far noise moves each value of an observation at most, (W,), after its scale."""
    rows = [
        (row.noise * torch.tensor(row.scale)).expand(row.size).repeat(row.history)
        for row in contract.observations
    ]
    return torch.cat(rows).to(device)


def _frame(row: ObservationTerm, value: Tensor, scale: Tensor) -> Tensor:
    return (value if row.clip is None else value.clamp(*row.clip)) * scale
