"""The independent forward, and the rollout that golden observations come from."""

import itertools

import numpy as np
import pytest

from g1_policy_node.bundle import Bundle, load_bundle
from g1_policy_node.contract import Contract, NetworkContract, contract_from_mapping
from g1_policy_node.observation import ObservationBuilder
from g1_policy_node.paths import find_data
from g1_policy_node.sim.robot import MujocoRobot
from g1_policy_node.tools import golden
from g1_policy_node.tools.golden import COMMANDS, command_from_parts, forward, record_golden

torch = pytest.importorskip('torch')
GAIT_TERMS = {'gait_phase_sin', 'gait_phase_cos', 'gait_contact'}


@pytest.fixture(scope='module')
def shipped() -> Bundle:
    return load_bundle(find_data('policies/g1_walk'))


@pytest.mark.parametrize('activation', ['elu', 'relu', 'tanh'])
@pytest.mark.parametrize('normalizer', [False, True])
def test_the_forward_is_torchs_in_float64(activation: str, normalizer: bool) -> None:
    sizes = (5, 7, 6, 3)
    random = np.random.default_rng(1)
    weights = {}
    for i, (n, m) in enumerate(itertools.pairwise(sizes)):
        weights[f'layers.{i}.weight'] = random.normal(size=(m, n)).astype(np.float32)
        weights[f'layers.{i}.bias'] = random.normal(size=m).astype(np.float32)
    observations = random.normal(size=(50, 5)).astype(np.float32) * 3
    x = torch.tensor(observations, dtype=torch.float64)
    if normalizer:
        weights['normalizer.mean'] = random.normal(size=5).astype(np.float32)
        weights['normalizer.divisor'] = random.uniform(0.1, 2, size=5).astype(np.float32)
        x = (x - torch.tensor(weights['normalizer.mean'])) / torch.tensor(
            weights['normalizer.divisor']
        )
    function = {'elu': torch.nn.functional.elu, 'relu': torch.relu, 'tanh': torch.tanh}[activation]
    for i in range(3):
        x = torch.nn.functional.linear(
            x,
            torch.tensor(weights[f'layers.{i}.weight'], dtype=torch.float64),
            torch.tensor(weights[f'layers.{i}.bias'], dtype=torch.float64),
        )
        x = function(x) if i < 2 else x
    network = NetworkContract(sizes, activation)  # type: ignore[arg-type]
    np.testing.assert_allclose(forward(network, weights, observations), x.numpy(), atol=1e-12)


def test_the_shipped_actions_are_a_float64_forward_of_the_shipped_observations(
    shipped: Bundle,
) -> None:
    """In torch and float64, so neither numpy actor is judged by itself."""
    x = torch.tensor(shipped.golden_observations, dtype=torch.float64)
    for i in range(4):
        weight = torch.tensor(shipped.weights[f'layers.{i}.weight'], dtype=torch.float64)
        bias = torch.tensor(shipped.weights[f'layers.{i}.bias'], dtype=torch.float64)
        x = torch.nn.functional.linear(x, weight, bias)
        x = torch.nn.functional.elu(x) if i < 3 else x
    np.testing.assert_allclose(shipped.golden_actions, x.numpy(), rtol=0, atol=1e-12)


def test_the_shipped_observations_cover_standing_turning_and_every_gait_tick(
    shipped: Bundle,
) -> None:
    observed = shipped.golden_observations
    seen = {tuple(row) for row in observed[:, 6:9].tolist()}
    wanted = (command_from_parts(shipped.contract, parts).astype(np.float32) for parts in COMMANDS)
    assert seen == {tuple(command.tolist()) for command in wanted}
    assert (0.0, 0.0, 0.0) in seen
    assert min(c[2] for c in seen) < 0 < max(c[2] for c in seen)
    walking = np.linalg.norm(observed[:, 6:9], axis=1) > 0.1
    phases = np.arctan2(observed[walking, 67], observed[walking, 69]) / (2 * np.pi) * 40
    assert {round(p) % 40 for p in phases.tolist()} == set(range(40))
    assert 'fell in 0' in (shipped.manifest.golden_source or '')


def test_a_recording_is_the_same_for_the_same_seed_and_another_for_another(
    shipped: Bundle,
) -> None:
    some = COMMANDS[1:2]
    first, again, other = (
        record_golden(shipped.contract, shipped.weights, seed, some).golden for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.observations, again.observations)
    np.testing.assert_array_equal(first.actions, again.actions)
    assert not np.array_equal(first.observations, other.observations)


def test_a_policy_that_falls_is_reported_and_its_rollout_ends(shipped: Bundle) -> None:
    limp = {name: np.zeros_like(tensor) for name, tensor in shipped.weights.items()}
    run = record_golden(shipped.contract, limp, commands=COMMANDS[:2])
    assert run.falls == 2
    assert 'fell in 2' in run.source
    assert len(run.golden.observations) < len(COMMANDS[:2]) * 62


def test_each_rollout_starts_at_a_gait_tick_of_its_own_and_is_pushed_once(
    shipped: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushes: list[float] = []
    monkeypatch.setattr(
        MujocoRobot, 'push', lambda robot, velocity: pushes.append(float(np.linalg.norm(velocity)))
    )
    monkeypatch.setattr(golden, 'SECONDS', 0.1)
    run = record_golden(shipped.contract, shipped.weights, commands=COMMANDS[1:2] * 4)
    assert pushes == pytest.approx([golden.PUSH_SPEED] * 4)
    first_rows = run.golden.observations[:: len(run.golden.observations) // 4]
    assert len({tuple(row[67:71]) for row in first_rows.tolist()}) > 1


def test_nothing_of_a_rollout_is_left_in_the_next(
    shipped: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = shipped.contract.to_mapping()
    terms = [t for t in data['observations'] if t['term'] not in GAIT_TERMS]
    data['observations'] = [*terms, {'term': 'last_action', 'size': 29, 'history': 2}]
    data.update(gait=None, weights_sha256=None)
    data['network']['sizes'] = [67 + 58, 29]
    weights = {
        'layers.0.weight': np.zeros((29, 125), dtype=np.float32),
        'layers.0.bias': np.full(29, 0.1, dtype=np.float32),
    }
    monkeypatch.setattr(golden, 'SECONDS', 0.1)
    run = record_golden(contract_from_mapping(data), weights, commands=COMMANDS[1:2] * 2)
    one, other = np.split(run.golden.observations, 2)
    np.testing.assert_array_equal(one[0], other[0])
    assert not one[0, 67:].any()
    assert one[-1, 67:].all()


def test_progress_names_every_rollout(shipped: Bundle) -> None:
    lines: list[str] = []
    limp = {name: np.zeros_like(tensor) for name, tensor in shipped.weights.items()}
    record_golden(shipped.contract, limp, commands=COMMANDS[:2], progress=lines.append)
    assert ['1 of 2' in lines[0], '2 of 2' in lines[1]] == [True, True]


def test_commands_are_parts_of_the_range_on_each_side_of_zero(shipped: Bundle) -> None:
    contract: Contract = shipped.contract
    np.testing.assert_allclose(command_from_parts(contract, (1, -1, 0.5)), [1.0, -0.4, 0.4])
    np.testing.assert_allclose(command_from_parts(contract, (-1, 1, -0.5)), [-0.5, 0.4, -0.4])


def test_a_contract_without_gait_and_another_rate_is_recorded_too(shipped: Bundle) -> None:
    data = shipped.contract.to_mapping()
    data['observations'] = [t for t in data['observations'] if t['term'] not in GAIT_TERMS]
    data.update(gait=None, step_dt=0.03, weights_sha256=None)
    data['network']['sizes'] = [67, 29]
    contract = contract_from_mapping(data)
    weights = {
        'layers.0.weight': np.zeros((29, 67), dtype=np.float32),
        'layers.0.bias': np.zeros(29, dtype=np.float32),
    }
    run = record_golden(contract, weights, commands=COMMANDS[:1])
    assert run.golden.observations.shape[1] == ObservationBuilder(contract).size == 67
