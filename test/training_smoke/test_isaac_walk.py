"""The shipped policy walks in Isaac Lab's simulator as it does in MuJoCo's."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(600)


def test_the_shipped_policy_walks_in_lock_step(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    arguments = ['--sim=isaac', '--lockstep', '--vx=0.5', '--duration=10']
    walk = [sys.executable, '-m', 'g1_policy_node.cli', 'walk', *arguments]
    done = subprocess.run([*walk, f'--run-dir={tmp_path}'], capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    summary = json.loads((tmp_path / 'summary.json').read_text())
    assert json.loads((tmp_path / 'sim.json').read_text())['simulator'] == 'isaac'
    assert summary['walk']['fell'] is False
    assert summary['deadline_misses'] == 0
    mean = summary['walk']['mean_velocity']
    record_property('mean_velocity', [round(value, 3) for value in mean])
    # docs/facts.md section 1: 0.54 m/s in MuJoCo.
    assert mean == pytest.approx([0.54, 0.0, 0.0], abs=0.05), said
