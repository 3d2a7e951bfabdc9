"""Begin with a policy that walks: the actor learns its answers before it learns from rewards.

The robots walk by the actor from the start, and the teacher says what it would have done where
they got to (Ross et al., "A Reduction of Imitation Learning and Structured Prediction to
No-Regret Online Learning", AISTATS 2011). It is asked on observations without noise, which the
actor does not have: so the actor learns to see through the noise. It is asked on their images in
the mirror too, as the actor is the same on both sides and the teacher need not be. The critic
learns meanwhile what walking so is worth.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from g1_policy_node.bundle import Bundle
from g1_policy_node.contract import Contract
from g1_policy_node.training.mirror import Mirror
from g1_policy_node.types import UserError

MINI_BATCHES = 16
"""Of a rollout: smaller ones than PPO's, as the slope of a square needs less averaging."""

LEARNING_RATE, FIRST_LEARNING_RATE = 1e-3, 1e-4
"""While it imitates, and what PPO begins with."""

ACTION_STD = 0.4
"""Of the raw actions, while imitating and to begin with after: the reference ended with 0.39. From
0.3 it fell to 0.2, too little to learn more (docs/train.md)."""

SAME = ('step_dt', 'joint_names', 'action', 'observations', 'gait', 'normalizer')
"""What a teacher's contract must share: all that gives its rows and its answers a meaning."""

_PARTS = ('weight', 'bias')
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    'elu': functional.elu,
    'relu': functional.relu,
    'tanh': torch.tanh,
}


def check_teacher(bundle: Bundle, contract: Contract) -> None:
    """Refuse a policy whose answers would mean something else in this training."""
    other = [name for name in SAME if getattr(bundle.contract, name) != getattr(contract, name)]
    if other:
        raise UserError(
            f'teacher: {bundle.path} was trained by other {", ".join(other)} than {contract.name}'
        )
    if bundle.contract.normalizer != 'none':
        raise UserError(f'teacher: {bundle.path} has a normalizer, which is not read here')


class Teacher:
    """The actor of a bundle, and its image in the mirror, averaged."""

    def __init__(self, bundle: Bundle, contract: Contract, mirror: Mirror, device: str) -> None:
        check_teacher(bundle, contract)
        self._layers = [
            [torch.tensor(bundle.weights[f'layers.{i}.{part}']).to(device) for part in _PARTS]
            for i in range(len(bundle.contract.network.sizes) - 1)
        ]
        self._activate = _ACTIVATIONS[bundle.contract.network.activation]
        self._mirror = mirror

    def __call__(self, rows: Tensor) -> Tensor:
        """Return the raw actions (N, J) for observations (N, n)."""
        with torch.no_grad():
            image = self._answer(self._mirror.observation.of(rows))
            return (self._answer(rows) + self._mirror.action.of(image)) / 2

    def _answer(self, rows: Tensor) -> Tensor:
        for weight, bias in self._layers[:-1]:
            rows = self._activate(functional.linear(rows, weight, bias))
        return functional.linear(rows, *self._layers[-1])


def imitate(alg: Any, teacher: Teacher) -> dict[str, float]:
    """Learn from a rollout what the teacher would have done; return the losses.

    `alg` is rsl_rl's PPO after a rollout; its storage is empty afterwards.
    """
    _set_learning_rate(alg, LEARNING_RATE)
    sums = torch.zeros(2, device=alg.device)
    for batch in alg.storage.mini_batch_generator(MINI_BATCHES, alg.num_learning_epochs):
        rows = batch.observations['policy']
        # The critic's row begins with the actor's, without noise.
        wanted = teacher(batch.observations['critic'][:, : rows.shape[1]])
        imitation = (alg.actor(batch.observations) - wanted).square().mean()
        value = (alg.critic(batch.observations) - batch.returns).square().mean()
        alg.optimizer.zero_grad()
        (imitation + value).backward()
        if alg.is_multi_gpu:
            alg.reduce_parameters()
        for network in (alg.actor, alg.critic):
            nn.utils.clip_grad_norm_(network.parameters(), alg.max_grad_norm)
        alg.optimizer.step()
        sums += torch.stack([imitation.detach(), value.detach()])
    alg.storage.clear()
    imitation, value = (sums / (MINI_BATCHES * alg.num_learning_epochs)).tolist()
    return {'value': value, 'imitation': imitation}


def end_imitation(alg: Any) -> None:
    """Leave the weights to PPO.

    The optimizer forgets how small the last slopes were, by which it would make giant steps now.
    """
    alg.optimizer.state.clear()
    _set_learning_rate(alg, FIRST_LEARNING_RATE)


def _set_learning_rate(alg: Any, rate: float) -> None:
    alg.learning_rate = rate
    for group in alg.optimizer.param_groups:
        group['lr'] = rate
