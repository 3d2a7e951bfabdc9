import json
import shutil
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from g1_policy_node import cli
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.paths import find_data
from g1_policy_node.tools.evaluation.evaluate import Request, evaluate
from g1_policy_node.types import UserError

SMALL = {
    'seconds': 4.0,
    'straight': [[0.5, 0.0, 0.0], [-0.4, 0.0, 0.0]],
    'turning': [[0.0, 0.0, 0.6]],
    'more': [[0.0, 0.0, 0.0]],
    'kicks': {
        'command': [0.5, 0.0, 0.0],
        'speeds': [1.0, 6.0],
        'seeds': 1,
        'apart': [0.5, 1.0],
    },
    'conditions': {'sensor noise': {'noise': True}},
    'bars': {'on its feet': {'falls_commands': 0}, 'a rock': {'falls_6.0': 0, 'vx_error': 9.0}},
}


@pytest.fixture(scope='module')
def plan(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp('plan') / 'small.yaml'
    shipped = yaml.safe_load(find_data('config/evaluation.yaml').read_text())
    path.write_text(yaml.safe_dump({**shipped, **SMALL}))
    return path


def run(folder: Path, *policies: str, **options) -> tuple[int, str, dict]:
    """Return the exit code, what was said, and the summary."""
    said = folder.with_suffix('.txt')
    request = Request(policies, run_dir=str(folder), **options)
    with said.open('w') as file:
        code = evaluate(request, Console(file=file, width=100))
    return code, said.read_text(), json.loads((folder / 'summary.json').read_text())


@pytest.mark.slow
def test_the_figures_do_not_depend_on_the_number_of_processes(tmp_path: Path, plan: Path) -> None:
    for jobs in (1, 2):
        run(tmp_path / f'{jobs}', 'g1_walk', plan=plan, jobs=jobs)
    (one,), (two,) = (
        json.loads((tmp_path / f'{jobs}' / 'runs.json').read_text()).values() for jobs in (1, 2)
    )
    assert one == two
    assert len(one) == 10


@pytest.mark.slow
def test_a_bundle_keeps_its_evaluation_and_its_hashes(tmp_path: Path, plan: Path) -> None:
    mine = shutil.copytree(resolve_bundle('g1_walk'), tmp_path / 'mine')
    before = load_bundle(mine)
    code, _, summary = run(tmp_path / 'run', str(mine), plan=plan, write=True, bar='on its feet')
    after = load_bundle(mine)
    assert code == 0
    assert after.weights_sha256 == before.weights_sha256
    assert after.contract_sha256 == before.contract_sha256
    kept = after.manifest.evaluation
    assert kept is not None
    assert kept['figures'] == summary['policies'][0]['figures']
    assert kept['accepted'] is True
    assert kept['plan_sha256'] == summary['plan_sha256']


@pytest.mark.slow
def test_a_policy_below_the_bar_is_named_with_what_fails(tmp_path: Path, plan: Path) -> None:
    mine = shutil.copytree(resolve_bundle('g1_walk'), tmp_path / 'mine' / 'g1_walk')
    code, said, summary = run(tmp_path / 'run', 'g1_walk', str(mine), plan=plan, bar='a rock')
    assert code == 1
    assert 'mine/g1_walk: below the bar "a rock", 1 of 2 limits:' in said
    assert 'falls of 1 with kicks of 6.0 m/s: 1, limit 0' in said
    first, second = summary['policies']
    assert first['figures'] == second['figures']
    page = (tmp_path / 'run' / 'report.html').read_text()
    assert 'None of policies/g1_walk and mine/g1_walk passes the bar' in page
    assert cli.run(['report', str(tmp_path / 'run')]) == 1
    assert (tmp_path / 'run' / 'report.html').read_text() == page


def test_quick_neither_judges_nor_writes() -> None:
    for options in ({'write': True}, {'bar': 'ship'}):
        with pytest.raises(UserError, match='--quick judges nothing'):
            evaluate(Request(('g1_walk',), quick=True, **options))
