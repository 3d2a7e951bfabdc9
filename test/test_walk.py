"""Whole walks: simulator, node and command source as processes over real DDS."""

import json
from pathlib import Path

import numpy as np
import pytest
from samples import UNITREE_POLICY

from g1_policy_node.cli import run

pytestmark = [pytest.mark.ros, pytest.mark.walk]

# docs/facts.md: the reference policy without ROS, mean of (vx, vy, wz) over t > 2 s of 10 s.
FIGURES = {
    (0.0, 0.0, 0.0): (0.0, 0.0, 0.0),
    (0.3, 0.0, 0.0): (0.34, None, None),
    (0.8, 0.0, 0.0): (0.81, None, None),
    (-0.4, 0.0, 0.0): (-0.35, None, None),
    (0.0, 0.3, 0.0): (None, 0.22, None),
    (0.0, 0.0, 0.6): (None, None, 0.59),
    (0.5, 0.0, 0.5): (0.52, -0.03, 0.49),
}


def walk(run_dir: Path, command: tuple[float, ...], *options: str) -> tuple[int, dict]:
    arguments = [f'--{n}={v}' for n, v in zip(('vx', 'vy', 'wz'), command, strict=True)]
    code = run(['walk', *arguments, '--run-dir', str(run_dir), *options])
    return code, json.loads((run_dir / 'summary.json').read_text())


@pytest.mark.parametrize('command', FIGURES, ids=str)
def test_a_walk_in_lockstep_is_the_walk_without_ros(tmp_path: Path, command) -> None:
    code, summary = walk(tmp_path, command, '--lockstep', '--duration', '10')
    assert not summary['walk']['fell']
    mean = summary['walk']['mean_velocity']
    for measured, expected in zip(mean, FIGURES[command], strict=True):
        if expected is not None:
            assert abs(measured - expected) <= 0.05, mean
    assert summary['deadline_misses'] == 0
    assert summary['missing'] == []
    np.testing.assert_array_equal(summary['walk']['command'], command)
    assert code == 0, summary['criteria']


def test_a_walk_in_real_time_leaves_the_evidence(tmp_path: Path) -> None:
    _, summary = walk(tmp_path, (0.5, 0.0, 0.0), '--duration', '6')
    assert summary['slots'] > 0
    assert all(summary['latency_ms'][stage] is not None for stage in summary['latency_ms'])
    for name in ('manifest.json', 'summary.json', 'timing.npz', 'sim.npz'):
        assert (tmp_path / name).is_file(), name
    manifest = json.loads((tmp_path / 'manifest.json').read_text())
    assert manifest['weights_sha256'] == summary['weights_sha256']
    modes = [t['mode'] for t in summary['transitions']]
    order = [m for i, m in enumerate(modes) if not i or modes[i - 1] != m]
    assert order[:5] == ['INACTIVE', 'WAITING', 'RAMP', 'READY', 'RUN']
    held = [t['reason'] for t in summary['transitions'] if t['mode'] == 'HOLD']
    if held:  # this machine stood still; the robot may have fallen then, and it is told why
        assert all('slots in a row' in reason or 'stale' in reason for reason in held)
        return
    assert summary['walk']['fell'] is False
    assert abs(summary['walk']['mean_velocity'][0] - 0.54) <= 0.1
    assert order[5:] == ['INACTIVE']


def test_the_hoist_lets_go_when_run_begins(tmp_path: Path) -> None:
    walk(tmp_path, (0.0, 0.0, 0.0), '--lockstep', '--duration', '4')
    with np.load(tmp_path / 'sim.npz') as track:
        hoisted, running = track['hoisted'].astype(bool), track['running'].astype(bool)
        assert hoisted[0]
        assert not np.any(hoisted & running)
        assert np.all(hoisted | running | (np.cumsum(running) > 0))


def test_the_published_policy_of_unitree_walks_through_the_same_node(tmp_path: Path) -> None:
    pytest.importorskip('onnx')
    if not (UNITREE_POLICY / 'deploy.yaml').is_file():
        pytest.skip(f'{UNITREE_POLICY} is not there (G1_UNITREE_POLICY names another)')
    (tmp_path / 'said.yaml').write_text('normalizer: none\n')
    bundle = tmp_path / 'unitree'
    words = ['--contract', 'g1_29dof_rev_1_0', '--contract', str(tmp_path / 'said.yaml')]
    assert run(['bundle', 'import', str(UNITREE_POLICY), *words, '--out', str(bundle)]) == 0
    options = ('--lockstep', '--duration', '10', '--policy', str(bundle))
    code, summary = walk(tmp_path / 'run', (0.5, 0.0, 0.0), *options)
    assert not summary['walk']['fell']
    assert abs(summary['walk']['mean_velocity'][0] - 0.49) <= 0.05
    assert code == 0, summary['criteria']
