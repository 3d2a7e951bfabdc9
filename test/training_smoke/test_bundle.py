"""The bundle that training leaves, in the robot's own programs."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from samples import GOLDEN
from training_smoke.runs import checkpoint

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle
from g1_policy_node.contract import load_contract
from g1_policy_node.paths import find_data
from g1_policy_node.types import Array

pytestmark = pytest.mark.timeout(600)

ACTION_TOLERANCE = 1e-5


def by_torch(trained: Path, rows: Array) -> Array:
    """What the checkpoint's network says, without any of this package."""
    state = checkpoint(trained, 'model_1.pt')['actor_state_dict']
    x = torch.tensor(rows, dtype=torch.float32)
    for layer in (0, 2, 4, 6):
        x = torch.nn.functional.linear(x, state[f'mlp.{layer}.weight'], state[f'mlp.{layer}.bias'])
        x = torch.nn.functional.elu(x) if layer < 6 else x
    return x.numpy()


def test_it_loads_and_answers_as_the_trained_network_does(trained: Path) -> None:
    bundle = load_bundle(trained / 'policy')
    wanted = load_contract(find_data('config/g1_walk_contract.yaml'))
    assert bundle.contract.observations == wanted.observations
    assert bundle.contract.joints == wanted.joints
    assert bundle.contract.gait == wanted.gait
    actor = load_actor(bundle.contract.network, bundle.weights, 'cpu')
    answers = np.array([actor(row).copy() for row in GOLDEN])
    np.testing.assert_allclose(answers, by_torch(trained, GOLDEN), atol=ACTION_TOLERANCE)
    training = json.loads((trained / 'policy' / 'manifest.json').read_text())
    assert '3.0.0' in json.dumps(training)


def test_in_lock_step_the_node_sends_its_actions_until_it_falls(
    trained: Path, tmp_path: Path
) -> None:
    """One iteration teaches nothing: that it falls is right, and is not the point here."""
    arguments = [f'--policy={trained / "policy"}', '--lockstep', f'--run-dir={tmp_path}']
    walk = [sys.executable, '-m', 'g1_policy_node.cli', 'walk', *arguments, '--duration=5']
    done = subprocess.run(walk, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert 'Traceback' not in said
    facts = json.loads((tmp_path / 'sim.json').read_text())
    assert facts['fell'] is True
    assert facts['lockstep'] is True
    assert facts['commands']['rejected'] == {}
    trips = sorted((tmp_path / 'trips').glob('*.npz'))
    with np.load(trips[-1]) as trip:
        run = trip['mode'] == 'RUN'
        assert facts['commands']['received'] >= run.sum() > 20, said
        rows, actions = trip['observation'][run], trip['action'][run]
    np.testing.assert_allclose(actions, by_torch(trained, rows), atol=ACTION_TOLERANCE)
