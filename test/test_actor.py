"""Every actor gives the golden actions, on every device there is."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from samples import CONTRACT

from g1_policy_node.actor import NumpyActor, action_difference, load_actor
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.contract import NetworkContract
from g1_policy_node.types import UserError

BUNDLE = load_bundle(resolve_bundle('g1_walk'))


def float64_forward(weights, activation, x):
    depth = len([name for name in weights if name.endswith('.bias')])
    if 'normalizer.mean' in weights:
        x = (x - weights['normalizer.mean']) / weights['normalizer.divisor']
    for i in range(depth):
        x = weights[f'layers.{i}.weight'].astype(np.float64) @ x + weights[f'layers.{i}.bias']
        if i < depth - 1:
            x = activation(x)
    return x


ACTIVATIONS = {
    'elu': lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    'relu': lambda x: np.maximum(x, 0),
    'tanh': np.tanh,
}


def random_weights(sizes, normalizer=False):
    rng = np.random.default_rng(3)
    weights = {}
    for i, (n, m) in enumerate(pairwise(sizes)):
        weights[f'layers.{i}.weight'] = (rng.normal(size=(m, n)) / np.sqrt(n)).astype(np.float32)
        weights[f'layers.{i}.bias'] = rng.normal(size=m).astype(np.float32)
    if normalizer:
        weights['normalizer.mean'] = rng.normal(size=sizes[0]).astype(np.float32)
        weights['normalizer.divisor'] = rng.uniform(0.5, 2, sizes[0]).astype(np.float32)
    return weights


def test_cpu_reproduces_the_golden_actions() -> None:
    actor = load_actor(CONTRACT.network, BUNDLE.weights, 'cpu')
    worst = action_difference(actor, BUNDLE.golden_observations, BUNDLE.golden_actions)
    assert 0 < worst < 1e-5


def test_torch_on_the_cpu_reproduces_the_golden_actions() -> None:
    pytest.importorskip('torch', reason='torch is not installed')
    from g1_policy_node.torch_actor import TorchActor

    actor = TorchActor(CONTRACT.network, BUNDLE.weights, 'cpu')
    worst = action_difference(actor, BUNDLE.golden_observations, BUNDLE.golden_actions)
    assert 0 < worst < 1e-5


@pytest.mark.parametrize('activation', ACTIVATIONS)
@pytest.mark.parametrize('normalizer', [False, True])
@pytest.mark.parametrize('kind', ['numpy', 'torch'])
def test_every_activation_and_the_normalizer_match_a_float64_forward(
    kind: str, activation: str, normalizer: bool
) -> None:
    sizes = (7, 16, 12, 5)
    weights = random_weights(sizes, normalizer)
    network = NetworkContract(sizes, activation)
    if kind == 'torch':
        pytest.importorskip('torch', reason='torch is not installed')
        from g1_policy_node.torch_actor import TorchActor

        actor = TorchActor(network, weights, 'cpu')
    else:
        actor = NumpyActor(network, weights)
    for x in np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32):
        expected = float64_forward(weights, ACTIVATIONS[activation], x.astype(np.float64))
        np.testing.assert_allclose(actor(x), expected, rtol=0, atol=2e-6)


def test_the_observation_is_not_written_to() -> None:
    actor = load_actor(CONTRACT.network, BUNDLE.weights, 'cpu')
    row = BUNDLE.golden_observations[0].copy()
    actor(row)
    np.testing.assert_array_equal(row, BUNDLE.golden_observations[0])


def test_weights_a_little_off_are_refused_with_the_difference() -> None:
    weights = dict(BUNDLE.weights)
    weights['layers.3.bias'] = weights['layers.3.bias'] + np.float32(1e-3)
    actor = NumpyActor(CONTRACT.network, weights)
    with pytest.raises(UserError, match=r'differs from the golden one by 0\.001'):
        action_difference(actor, BUNDLE.golden_observations, BUNDLE.golden_actions)


def test_an_actor_that_gives_nan_is_refused() -> None:
    weights = dict(BUNDLE.weights)
    weights['layers.3.bias'] = np.full(29, np.nan, dtype=np.float32)
    actor = NumpyActor(dataclasses.replace(CONTRACT).network, weights)
    with pytest.raises(UserError, match='by nan'):
        action_difference(actor, BUNDLE.golden_observations, BUNDLE.golden_actions)


def test_a_cuda_device_that_is_not_there_is_refused_by_name() -> None:
    torch = pytest.importorskip('torch', reason='torch is not installed')
    if torch.cuda.is_available():
        pytest.skip('this machine has a CUDA device')
    with pytest.raises(UserError, match=r'cuda:0 cannot be used: .*torch'):
        load_actor(CONTRACT.network, BUNDLE.weights, 'cuda:0')


def test_an_actor_is_warm_before_anybody_gets_it(monkeypatch) -> None:
    passes = []
    plain = NumpyActor.__call__
    monkeypatch.setattr(
        NumpyActor, '__call__', lambda self, row: passes.append(1) or plain(self, row)
    )
    load_actor(CONTRACT.network, BUNDLE.weights, 'cpu')
    assert len(passes) >= 50


def test_torch_uses_one_thread_for_one_row() -> None:
    torch = pytest.importorskip('torch', reason='torch is not installed')
    import g1_policy_node.torch_actor  # noqa: F401

    assert torch.get_num_threads() == 1


@pytest.mark.parametrize('normalizer', [False, True])
def test_a_batch_gives_the_actions_of_its_rows(normalizer: bool) -> None:
    sizes = (7, 16, 12, 5)
    weights = random_weights(sizes, normalizer)
    one, many = (NumpyActor(NetworkContract(sizes, 'elu'), weights, batch) for batch in (1, 64))
    rows = np.random.default_rng(0).normal(size=(64, 7)).astype(np.float32)
    np.testing.assert_allclose(many(rows), [one(row).copy() for row in rows], atol=1e-6, rtol=0)
