import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.tools.evaluation.evaluate import Request, evaluate


def run(tmp_path: Path, name: str, policies: tuple[str, ...], **options) -> Path:
    folder = tmp_path / name
    request = Request(policies, quick=True, run_dir=str(folder), **options)
    with (tmp_path / f'{name}.txt').open('w') as file:
        assert evaluate(request, Console(file=file, width=100)) == 0
    return folder


def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(resolve_bundle('g1_walk'), tmp_path / 'mine'))


@pytest.fixture(scope='module')
def one_process(tmp_path_factory) -> tuple[Path, Path]:
    """A run in one process, and the bundle, which keeps its figures."""
    tmp_path = tmp_path_factory.mktemp('evaluation')
    bundle = copied(tmp_path)
    return run(tmp_path, 'one', (str(bundle),), jobs=1, write=True), bundle


@pytest.mark.slow
def test_the_figures_do_not_depend_on_the_number_of_processes(
    tmp_path: Path, one_process: tuple[Path, Path]
) -> None:
    one, _ = one_process
    two = run(tmp_path, 'two', ('g1_walk',), jobs=2)
    (first,), (second,) = (
        json.loads((folder / 'runs.json').read_text()).values() for folder in (one, two)
    )
    assert first == second
    assert len(first) > 10


@pytest.mark.slow
def test_a_bundle_keeps_its_evaluation_and_its_hashes(one_process: tuple[Path, Path]) -> None:
    folder, path = one_process
    before, after = load_bundle(resolve_bundle('g1_walk')), load_bundle(path)
    assert after.weights_sha256 == before.weights_sha256
    assert after.contract_sha256 == before.contract_sha256
    policy = json.loads((folder / 'summary.json').read_text())['policies'][0]
    assert after.manifest.evaluation is not None
    assert after.manifest.evaluation['figures'] == policy['figures']


@pytest.mark.slow
def test_a_quick_run_says_that_it_judges_nothing(one_process: tuple[Path, Path]) -> None:
    folder, _ = one_process
    said = folder.with_name('one.txt').read_text()
    assert 'mine: measured; a quick run judges nothing' in said
    assert json.loads((folder / 'summary.json').read_text())['policies'][0]['accepted'] is None
