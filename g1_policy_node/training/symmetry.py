"""The robot in a mirror: left and right swapped, roll and yaw turned round.

A policy taught both sides of every moment walks straight: what it does wrong to one side it does
wrong to the other half a step later. Mittal et al., "Symmetry Considerations for Learning Task
Symmetric Robot Policies", ICRA 2024; the learning itself is rsl_rl's `symmetry_cfg`.
"""

from typing import Any

import torch
from rsl_rl.extensions import Symmetry
from tensordict import TensorDict
from torch import Tensor

from g1_policy_node.training.mirror import Mirror


class MirrorAndNoise(Symmetry):
    """rsl_rl's mirror loss, and beside it one for what sensor noise does to the action.

    The second is the mean square difference between the actions of an observation as sampled and
    of the same one disturbed once more by the contract's noise, times `noise_loss_coeff` over the
    mirror's: Mysore et al., "Regularizing Action Policies for Smooth Control", ICRA 2021.
    """

    def __init__(self, noise_loss_coeff: float, **symmetry_cfg: Any) -> None:
        super().__init__(**symmetry_cfg)
        self._ratio = noise_loss_coeff / symmetry_cfg['mirror_loss_coeff']
        self._noise = symmetry_cfg['env'].unwrapped.observation_noise

    def compute_loss(self, actor: Any, batch: Any, original_batch_size: int) -> Tensor:
        """Return both losses, the noise's as a multiple of the mirror's coefficient."""
        loss: Tensor = super().compute_loss(actor, batch, original_batch_size)
        observations = batch.observations.detach()[:original_batch_size].clone()
        calm = actor(observations)
        rows = observations['policy']
        observations['policy'] = rows + self._noise * (2.0 * torch.rand_like(rows) - 1.0)
        noisy = actor(observations)
        return loss + self._ratio * torch.nn.functional.mse_loss(noisy, calm)


def both_sides(
    env: Any, obs: TensorDict | None, actions: Tensor | None
) -> tuple[TensorDict | None, Tensor | None]:
    """Return the batch followed by its mirror image; rsl_rl's `data_augmentation_func`."""
    mirror: Mirror = env.unwrapped.mirror
    seen = None
    if obs is not None:
        sides = {
            'policy': torch.cat([obs['policy'], mirror.observation(obs['policy'])]),
            'critic': torch.cat([obs['critic'], mirror.critic(obs['critic'])]),
        }
        seen = TensorDict(sides, batch_size=[2 * obs.batch_size[0]])
    done = None if actions is None else torch.cat([actions, mirror.action(actions)])
    return seen, done
