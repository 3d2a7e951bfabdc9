"""Skips these tests where Isaac Lab is not installed, and trains once for all of them."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from training_smoke.runs import NUM_ENVS, train


@pytest.fixture(scope='session', autouse=True)
def isaac_lab() -> None:
    if importlib.util.find_spec('isaaclab') is None:
        pytest.skip('Isaac Lab is not installed here: make test-train')


@pytest.fixture(scope='session')
def trained(isaac_lab: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of one iteration."""
    folder: Path = tmp_path_factory.mktemp('trained')
    train(folder, '--iterations=1')
    return folder


@pytest.fixture(scope='module')
def env(isaac_lab: None) -> Iterator[Any]:
    """The environment as training makes it, in this process."""
    from g1_policy_node.training.isaac import make_env

    made = make_env('', NUM_ENVS, 'cpu', seed=1)
    yield made
    made.close()
