"""The actor on a device: the contract's MLP, one row at a time or a batch of them.

On the cpu it is plain numpy, without torch: 2.6 times faster at the 50 Hz cadence and 5 times
faster to start (docs/decisions). On a CUDA device it is torch, as one captured graph.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.contract import NetworkContract
from g1_policy_node.types import Array, UserError

ACTION_TOLERANCE = 1e-5
"""Largest accepted difference of a device's actions from the golden ones (docs/design.md 4)."""

WARM_UP_PASSES = 50

Row = NDArray[np.float32]
Weights = Mapping[str, NDArray[np.float32]]


class Actor(Protocol):
    """Maps an observation (n,) float32 to the raw action (N,) float32, on `device`."""

    device: str

    def __call__(self, observation: Row) -> Row:
        """Return the raw action; the array is the actor's own and lives until the next call."""
        ...


def load_actor(network: NetworkContract, weights: Weights, device: str, batch: int = 1) -> Actor:
    """Build and warm the actor on `device`: 'cpu' or 'cuda:N'.

    With `batch` it takes so many rows at once, (batch, n), and answers with (batch, N).
    Raises UserError if the device does not exist or cannot run it; there is no fallback.
    """
    if device == 'cpu':
        actor: Actor = NumpyActor(network, weights, batch)
    else:
        from g1_policy_node.torch_actor import GraphActor

        actor = GraphActor(network, weights, device, batch)
    nothing = np.zeros(_shape(batch, network.sizes[0]), dtype=np.float32)
    for _ in range(WARM_UP_PASSES):
        actor(nothing)
    return actor


def _elu(x: Row, scratch: Row) -> None:
    np.minimum(x, 0, out=scratch)
    np.exp(scratch, out=scratch)  # half the time of expm1, and as exact as float32 sums are
    scratch -= 1
    np.maximum(x, scratch, out=x)


def _relu(x: Row, scratch: Row) -> None:
    np.maximum(x, 0, out=x)


def _tanh(x: Row, scratch: Row) -> None:
    np.tanh(x, out=x)


_ACTIVATIONS = {'elu': _elu, 'relu': _relu, 'tanh': _tanh}


def _shape(batch: int, width: int) -> tuple[int, ...]:
    return (width,) if batch == 1 else (batch, width)


class NumpyActor:
    """The forward pass of `batch` rows in numpy, into arrays made once."""

    device = 'cpu'

    def __init__(self, network: NetworkContract, weights: Weights, batch: int = 1) -> None:
        depth = len(network.sizes) - 1
        self._layers = [
            (np.ascontiguousarray(weights[f'layers.{i}.weight']).T, weights[f'layers.{i}.bias'])
            for i in range(depth)
        ]
        shapes = [_shape(batch, n) for n in network.sizes[1:]]
        self._out = [np.zeros(shape, dtype=np.float32) for shape in shapes]
        self._scratch = [np.zeros(shape, dtype=np.float32) for shape in shapes]
        self._activate = _ACTIVATIONS[network.activation]
        self._mean = weights.get('normalizer.mean')
        self._divisor = weights.get('normalizer.divisor')

    def __call__(self, observation: Row) -> Row:
        """Return the raw action (N,) for one observation (n,), or (batch, N) for (batch, n)."""
        x = observation
        if self._mean is not None and self._divisor is not None:
            x = (x - self._mean) / self._divisor
        last = len(self._layers) - 1
        for i, (weight, bias) in enumerate(self._layers):
            out = self._out[i]
            np.dot(x, weight, out=out)
            out += bias
            if i < last:
                self._activate(out, self._scratch[i])
            x = out
        return x


def action_difference(actor: Actor, observations: NDArray[np.float32], actions: Array) -> float:
    """Return the largest absolute difference of the actor's actions from `actions` (T, N).

    Raises UserError if it is above ACTION_TOLERANCE or not finite.
    """
    worst = 0.0
    for row, expected in zip(observations, actions, strict=True):
        difference = float(np.max(np.abs(actor(row) - expected)))
        if not difference <= ACTION_TOLERANCE:
            raise UserError(
                f'{actor.device}: an action differs from the golden one by {difference:.3g}, '
                f'more than {ACTION_TOLERANCE:g}'
            )
        worst = max(worst, difference)
    return worst
