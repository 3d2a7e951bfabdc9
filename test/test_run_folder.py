import json
import re
from pathlib import Path

import pytest

from g1_policy_node import run_folder
from g1_policy_node.bringup import Options, processes
from g1_policy_node.types import UserError


def test_runs_of_the_same_second_get_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = [run_folder.create_run_folder('', 'walk') for _ in range(3)]
    assert len(set(made)) == 3
    for path in made:
        assert path.parent == tmp_path / 'runs'
        assert re.fullmatch(r'\d{8}T\d{6}Z-walk(-\d)?', path.name)


def test_a_run_is_never_written_over_another(tmp_path: Path) -> None:
    path = run_folder.create_run_folder(str(tmp_path / 'mine'), 'walk')
    options = Options(run_dir=str(path))
    run_folder.write_plan(options, processes(options), ['g1-policy', 'walk'])
    with pytest.raises(UserError, match='already holds a run'):
        run_folder.create_run_folder(str(path), 'walk')


def test_a_folder_that_cannot_be_made_is_a_users_mistake(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    with pytest.raises(UserError, match='cannot be made'):
        run_folder.create_run_folder(str(tmp_path / 'file' / 'run'), 'walk')


def test_the_plan_says_what_was_started_and_how_busy_the_machine_was(tmp_path: Path) -> None:
    options = Options(run_dir=str(tmp_path), vx=0.3)
    run_folder.write_plan(options, processes(options), ['g1-policy', 'walk', '--vx', '0.3'])
    plan = json.loads((tmp_path / run_folder.PLAN).read_text())
    assert plan['processes'] == ['mujoco_sim', 'policy_node', 'cmd_source', 'floor']
    assert plan['options']['vx'] == 0.3
    assert plan['command_line'][-1] == '0.3'
    assert len(plan['load_before']) == 3


def test_what_is_no_number_is_null_in_json(tmp_path: Path) -> None:
    run_folder.write_json(
        tmp_path / 'a.json', {'a': [1.5, float('nan')], 'b': {'c': float('inf')}}
    )
    assert json.loads((tmp_path / 'a.json').read_text()) == {'a': [1.5, None], 'b': {'c': None}}
    assert [path.name for path in tmp_path.iterdir()] == ['a.json']
