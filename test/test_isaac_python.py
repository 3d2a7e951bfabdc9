import os
import sys
from pathlib import Path

import pytest

from g1_policy_node import isaac_python as module
from g1_policy_node.bringup import Options, command_line, simulator
from g1_policy_node.isaac_python import isaac_python, python_environment, train_command
from g1_policy_node.types import UserError

HAS_IT = '#!/bin/sh\nexit 0\n'
HAS_IT_NOT = '#!/bin/sh\nexit 1\n'


@pytest.fixture(autouse=True)
def this_python_has_no_isaac_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module.importlib.util, 'find_spec', lambda name: None)
    monkeypatch.setattr(module, 'data_root', lambda: tmp_path / 'tree')
    monkeypatch.chdir(tmp_path)


def put(path: Path, script: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    return str(path)


def test_it_is_the_one_given(tmp_path: Path) -> None:
    put(tmp_path / 'tree/.venv-train/bin/python', HAS_IT)
    given = put(tmp_path / 'mine/bin/python3', HAS_IT)
    assert isaac_python(given) == given
    assert isaac_python(os.path.relpath(given)) == given


def test_one_given_that_has_no_isaac_lab_is_no_reason_to_take_another(tmp_path: Path) -> None:
    put(tmp_path / 'tree/.venv-train/bin/python', HAS_IT)
    for given in (put(tmp_path / 'mine/bin/python3', HAS_IT_NOT), str(tmp_path / 'absent')):
        with pytest.raises(UserError) as error:
            isaac_python(given)
        assert str(error.value) == f'isaac_python: {given} is no Python that has Isaac Lab'


def test_this_one_comes_before_the_one_of_make_train_env(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(tmp_path / 'tree/.venv-train/bin/python', HAS_IT)
    monkeypatch.setattr(module.importlib.util, 'find_spec', lambda name: object())
    assert isaac_python() == sys.executable


def test_make_train_envs_is_found_in_the_tree_and_then_where_one_stands(tmp_path: Path) -> None:
    here = put(tmp_path / '.venv-train/bin/python', HAS_IT)
    assert isaac_python() == here
    in_tree = put(tmp_path / 'tree/.venv-train/bin/python', HAS_IT)
    assert isaac_python() == in_tree


def test_where_there_is_none_one_line_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match='no Python with Isaac Lab: make train-env') as error:
        isaac_python()
    assert len(str(error.value).splitlines()) == 1


def test_training_is_run_by_the_python_that_has_isaac_lab(tmp_path: Path) -> None:
    python = put(tmp_path / '.venv-train/bin/python', HAS_IT)
    command, environment = train_command('', ['--num-envs=4096', '--device=cuda:0'])
    train = ['-m', 'g1_policy_node.cli', 'train', '--num-envs=4096', '--device=cuda:0']
    assert command == [python, *train]
    assert environment['AMENT_PREFIX_PATH'] == str(tmp_path / '.venv-train')


def test_another_python_gets_nothing_of_this_ones_ros_but_the_same_source_tree() -> None:
    environment = python_environment('/elsewhere/bin/python')
    for name in ('LD_LIBRARY_PATH', 'PYTHONHOME', '_ROS_WHEELS_BOOTSTRAP_COMPLETE'):
        assert environment[name] == ''
    assert environment['PYTHONPATH'] == str(Path(module.__file__).parents[1])
    assert python_environment(sys.executable) == {}


def test_the_simulator_alone_runs_in_it(tmp_path: Path) -> None:
    python = put(tmp_path / 'mine/bin/python', HAS_IT)
    spec = simulator(Options(sim='isaac', isaac_python=python, run_dir='/r'))
    assert (spec.executable, spec.node) == ('isaac_sim', 'g1_sim')
    assert command_line(spec)[:3] == [python, '-m', 'g1_policy_node.sim.isaac_sim']
    assert spec.environment.items() >= python_environment(python).items()
    assert simulator(Options(run_dir='/r')).python == ''
