"""What commands are asked for, and how their range grows as training goes on."""

import torch
from torch import Tensor

from g1_policy_node.contract import Contract

FIRST_SHARE = 0.6
"""Of the range of commands, at the start. From 0.3 the first policies learned to stand still."""

FULL_AFTER = 7200
"""Environment steps until the whole range of commands is asked for: 300 iterations of 24."""

STANDING_SHARE = 0.1
"""Of the commands, exactly zero, so that standing is learned too."""

SINGLE_SHARE = 0.3
"""Of the commands, along one axis alone: what is asked for most, and never drawn by chance."""

SINGLE_AXES = (0.5, 0.25, 0.25)
"""Of these, how many are of vx, vy and yaw rate."""

REFINED_FROM, REFINED_AFTER = 14400, 24000
"""Environment steps between which refinement grows from none to all of it: from iteration 600,
when it walks, to 1,000."""

EXPLORING_AT_LAST = 1 / 6
"""Of the bonus for exploring, what is left once all is asked for. Without any the deviation of the
actions fell to 0.2 and nothing more was learned; with all of it, it grew to 0.6, and what was
learned with such actions held no longer without them (docs/train.md)."""

IMITATED_FROM, IMITATED_UNTIL = 17760, 19200
"""Environment steps between which a training with a teacher imitates: 60 iterations. It begins
here, as what it imitates walks, and ends with half of the refinement."""


def command_share(steps: int) -> float:
    """Return the part of the contract's command range in use after `steps` environment steps."""
    return min(1.0, FIRST_SHARE + (1.0 - FIRST_SHARE) * steps / FULL_AFTER)


def refinement_share(steps: int) -> float:
    """Return how much is asked for, after `steps`, of what only a robot that walks can give.

    Larger kicks, less power and torque, and smooth actions.
    """
    return min(1.0, max(0.0, (steps - REFINED_FROM) / (REFINED_AFTER - REFINED_FROM)))


def exploring_share(refinement: float) -> float:
    """Return the part of the bonus for exploring that is left at this share of refinement."""
    return 1.0 - refinement * (1.0 - EXPLORING_AT_LAST)


class CommandSampler:
    """Draws velocity commands (n, 3) within the contract's ranges.

    The two sides of zero are equally likely. What is too small to walk by becomes zero.
    """

    def __init__(self, contract: Contract, device: str) -> None:
        limits = torch.tensor(contract.command_limits, dtype=torch.float32, device=device)
        self._lower, self._upper = limits.T
        self._axes = torch.tensor(SINGLE_AXES, device=device).cumsum(0)[:-1]
        self._stand_below = contract.gait.stand_below if contract.gait else 0.0

    def sample(self, count: int, share: float) -> Tensor:
        """Return `count` commands of at most `share` of the range."""
        part = 2.0 * torch.rand(count, 3, device=self._lower.device) - 1.0
        command = share * torch.where(part > 0, part * self._upper, -part * self._lower)
        single = torch.rand(count, device=command.device) < SINGLE_SHARE
        axis = torch.bucketize(torch.rand(count, 1, device=command.device), self._axes)
        others = torch.arange(3, device=command.device) != axis
        command = command.masked_fill(single[:, None] & others, 0.0)
        small = torch.linalg.vector_norm(command, dim=-1) < self._stand_below
        stand = torch.rand(count, device=command.device) < STANDING_SHARE
        return command.masked_fill((small | stand)[:, None], 0.0)
