"""Networks that treat left and right alike, exactly and from the first iteration on.

The image of what they see gives the image of what they answer. A robot that is the same on both
sides then walks no better to one than to the other, and drifts to neither. Of each hidden layer
the second half mirrors the first; for whoever runs it the network is a plain MLP. Su et al.,
"Leveraging Symmetry in RL-based Legged Locomotion Control", IROS 2024, compare this with learning
from mirrored data.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from g1_policy_node.training.mirror import Image, Mirror


def make_symmetric(actor: Any, critic: Any, mirror: Mirror) -> None:
    """Make and keep an actor and a critic of rsl_rl symmetric, as networks are when they are new.

    Their parameters are averaged with their images, and so is every gradient from now on. As
    gradients decide alone what an optimizer does, symmetry stays.
    """
    value = Image(*(t.to(mirror.action.ids.device) for t in (torch.tensor([0]), torch.ones(1))))
    _share_layers(actor.mlp, mirror.observation, mirror.action)
    _share_layers(critic.mlp, mirror.critic, value)
    ids = mirror.action.ids
    _share(actor.distribution.std_param, lambda std: std[ids], scale=1.0)


def _share_layers(mlp: nn.Module, seen: Image, answered: Image) -> None:
    layers = [layer for layer in mlp.modules() if isinstance(layer, nn.Linear)]
    for i, layer in enumerate(layers):
        out = answered if i == len(layers) - 1 else _halves(layer.out_features, seen)
        # The mean of two independent weights is smaller than each: the scale makes up for it.
        _share(layer.weight, _weights_image(seen, out), scale=math.sqrt(2.0))
        _share(layer.bias, out.of, scale=1.0)
        seen = out


def _weights_image(seen: Image, out: Image) -> Callable[[Tensor], Tensor]:
    return lambda weights: out.signs[:, None] * seen.of(weights)[out.ids]


def _halves(width: int, like: Image) -> Image:
    """Return the image of a hidden layer: its halves change places."""
    if width % 2:
        raise ValueError(f'a hidden layer of {width} has no halves')
    ids = torch.arange(width, device=like.ids.device).roll(width // 2)
    return Image(ids, torch.ones(width, device=like.ids.device))


def _share(parameter: Tensor, image: Callable[[Tensor], Tensor], scale: float) -> None:
    with torch.no_grad():
        parameter.copy_(scale * (parameter + image(parameter)) / 2)
    parameter.register_hook(lambda gradient: (gradient + image(gradient)) / 2)
