import argparse
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from g1_policy_node.tools.report import report
from g1_policy_node.types import UserError

EVIDENCE = Path(__file__).resolve().parents[2] / 'docs' / 'evidence'
TRIAL = {'victim': 'writer', 'speed': 0.52, 'damped_s': 0.009, 'right': True, 'problem': ''}


def shown(run_dir: Path) -> tuple[int, str]:
    console = Console(width=200, color_system=None)
    with console.capture() as said:
        code = report(argparse.Namespace(runs=[run_dir]), console)
    return code, said.get()


@pytest.mark.parametrize('kind', ['train_h200_2', 'compare', 'walk-cpu'])
def test_figures_that_were_kept_without_their_parts_are_not_made_again(
    kind: str, tmp_path: Path
) -> None:
    run_dir = tmp_path / kind
    shutil.copytree(EVIDENCE / kind, run_dir)
    before = {path.name: path.read_bytes() for path in run_dir.iterdir()}
    code, _ = shown(run_dir)
    assert code == 0
    assert {name: (run_dir / name).read_bytes() for name in before} == before


def test_a_training_says_how_long_and_shows_its_curves(tmp_path: Path) -> None:
    run_dir = tmp_path / 'train'
    shutil.copytree(EVIDENCE / 'train_h200_2', run_dir)
    code, said = shown(run_dir)
    page = (run_dir / 'report.html').read_text()
    for text in (said, page):
        assert 'The training finished: 121.1 million steps in 12.9 minutes.' in text
    assert code == 0
    assert 'data:image/png;base64,' in page


@pytest.mark.parametrize('right', [True, False])
def test_a_rehearsal_is_as_good_as_its_kills(right: bool, tmp_path: Path) -> None:
    trials = [TRIAL, {**TRIAL, 'victim': 'policy_node', 'damped_s': None, 'right': right}]
    figures = {'trials': trials, 'limit_s': 0.3, 'accepted': right}
    (tmp_path / 'rehearsal.json').write_text(json.dumps(figures))
    code, said = shown(tmp_path)
    assert code == (0 if right else 1)
    assert f'{2 if right else 1} of 2 kills ended as they should.' in said
    assert ('stands' if right else 'did not damp') in (tmp_path / 'report.html').read_text()


def test_an_empty_folder_is_refused_and_stays_empty(tmp_path: Path) -> None:
    with pytest.raises(UserError, match='no run'):
        shown(tmp_path)
    assert not list(tmp_path.iterdir())
