"""A loss for how far the action moves from one tick to the next, sensor noise included.

As a reward it would mostly punish exploration, which moves the action far more. The loss looks at
the mean action alone, of two ticks that follow each other, as in Mysore et al., "Regularizing
Action Policies for Smooth Control with Reinforcement Learning", ICRA 2021. There it is a square;
the absolute value leaves a stumbling robot its quick step and presses on what moves all the time.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor


class Smoothness:
    """PPO's one place for a loss beside its own is that of rsl_rl's Symmetry: this fits in there.

    `coefficient` weighs the mean absolute change of the raw action per joint and tick, times what
    `share` says at the time.
    """

    use_mirror_loss = True

    def __init__(self, coefficient: float, share: Callable[[], float]) -> None:
        self._coefficient, self._share = coefficient, share

    @property
    def mirror_loss_coeff(self) -> float:
        """The weight of the loss at this moment of the curriculum."""
        return self._coefficient * self._share()

    def augment_batch(self, batch: Any, original_batch_size: int) -> None:
        """Leave the batch as it is."""

    def compute_loss(self, actor: Any, batch: Any, original_batch_size: int) -> Tensor:
        """Return the mean of |action - action of the tick before| over robots and joints."""
        now = actor.output_mean
        before = batch.observations.clone(recurse=False)
        before['policy'] = before['previous']
        change: Tensor = (now - actor(before)).abs().mean()
        return change
