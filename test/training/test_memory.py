import json
from pathlib import Path

import pytest
import yaml

from g1_policy_node.training.memory import (
    Layout,
    MemoryLog,
    envs_that_fit,
    expected_bytes,
    fit_model,
)

ROOT = Path(__file__).resolve().parents[2]


def test_a_straight_line_is_found_again() -> None:
    model = fit_model({n: 1e9 + 4e5 * n for n in (512, 2048, 8192)})
    assert model['fixed'] == pytest.approx(1e9)
    assert model['k'] == pytest.approx(4e5)
    assert model['largest_error'] < 1.0


def test_as_many_robots_fit_as_the_model_says_and_not_one_more() -> None:
    model = {'fixed': 100.0, 'k': 10.0}
    assert [envs_that_fit(model, free) for free in (50, 109, 110, 205)] == [0, 0, 1, 10]


def test_tensors_weigh_four_bytes_a_value() -> None:
    weights = expected_bytes(Layout(2, 3, 73, 79, 29, 1000))
    assert weights['observation'] == 4 * 2 * (2 * 73 + 79)
    assert weights['optimizer'] == 2 * weights['parameters'] == 8000


def test_a_boundary_is_taken_once_and_a_cpu_has_no_device_memory() -> None:
    log = MemoryLog('cpu')
    log.measure('start')
    first = log.boundaries['start']
    log.measure('start')
    assert log.boundaries['start'] is first
    assert log.peak_device_gb is None


def test_the_model_in_config_is_that_of_the_committed_sweep() -> None:
    told = yaml.safe_load((ROOT / 'config' / 'gpu_memory.yaml').read_text())
    path = ROOT / 'docs' / 'evidence' / 'train_h200_sweep' / 'sweep.json'
    used = {
        row['num_envs']: row['memory']['driver_used'] - row['start']['driver_used']
        for row in json.loads(path.read_text())['rows']
    }
    model = fit_model(used)
    assert told == {'fixed': round(model['fixed']), 'k': round(model['k'])}
