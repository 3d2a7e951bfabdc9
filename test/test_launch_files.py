import importlib.util
import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# The folder launch/ of this repository is no substitute: it has no actions.
pytest.importorskip(
    'launch.actions', reason='ros2 launch is not installed here', exc_type=ImportError
)
pytest.importorskip(
    'launch_ros.actions', reason='launch_ros is not installed', exc_type=ImportError
)

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction
from launch_ros.actions import Node

from g1_policy_node.bringup import DESCRIPTIONS, choices, default_text
from g1_policy_node.launching import REAL, REAL_DEFAULTS, SIM, WALK
from g1_policy_node.paths import find_data

NAMES = {'walk': WALK, 'sim': SIM, 'real': REAL}
DEFAULTS = {'real': REAL_DEFAULTS}


def description(name: str) -> LaunchDescription:
    path: Path = find_data(f'launch/{name}.launch.py')
    spec = importlib.util.spec_from_file_location(f'{name}_launch', path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    described: LaunchDescription = module.generate_launch_description()
    return described


def started(name: str, **arguments: str) -> list[Any]:
    """What a launch file starts with these arguments, as launch would visit it."""
    context = LaunchContext()
    context.launch_configurations.update(arguments)
    visited = [entity.visit(context) or [] for entity in description(name).entities]
    return list(itertools.chain.from_iterable(visited))


def executables(actions: list[Any]) -> list[str]:
    return [action.node_executable for action in actions if isinstance(action, Node)]


@pytest.mark.parametrize('name', NAMES)
def test_the_arguments_are_those_of_the_bring_up(name: str) -> None:
    declared = {a.name: a for a in description(name).get_launch_arguments()}
    assert tuple(declared) == NAMES[name]
    for argument in declared.values():
        assert isinstance(argument, DeclareLaunchArgument)
        assert DESCRIPTIONS[argument.name] in argument.description
        assert tuple(argument.choices or ()) == choices(argument.name)
        [default] = argument.default_value
        own = DEFAULTS.get(name, {})
        assert default.text == own.get(argument.name, default_text(argument.name))


def test_a_walk_starts_what_the_bring_up_says(tmp_path: Path) -> None:
    actions = started('walk', run_dir=str(tmp_path / 'a'))
    assert executables(actions) == ['mujoco_sim', 'policy_node', 'cmd_source']
    others = [a for a in actions if isinstance(a, ExecuteProcess) and not isinstance(a, Node)]
    assert len(others) == 1
    fewer = started('walk', run_dir=str(tmp_path / 'b'), sim='none', cmd_source='False')
    assert executables(fewer) == ['policy_node']


def test_the_simulator_alone_is_just_that(tmp_path: Path) -> None:
    assert executables(started('sim', run_dir=str(tmp_path / 'a'))) == ['mujoco_sim']


def test_isaac_lab_runs_in_its_own_python(tmp_path: Path) -> None:
    python = tmp_path / 'bin' / 'python'
    python.parent.mkdir()
    python.write_text('#!/bin/sh\n')
    python.chmod(0o755)
    chosen = {'sim': 'isaac', 'isaac_python': str(python), 'run_dir': str(tmp_path / 'a')}
    [simulator, _] = started('sim', **chosen)
    assert isinstance(simulator, ExecuteProcess)
    assert not isinstance(simulator, Node)
    assert simulator.cmd[0][0].text == str(python)
    [train, _] = started('train', isaac_python=str(python), num_envs='4096', device='cuda:0')
    words = [part[0].text for part in train.cmd]
    assert words[:4] == [str(python), '-m', 'g1_policy_node.cli', 'train']
    assert set(words[4:]) == {'--num-envs=4096', '--device=cuda:0'}


def test_the_simulator_alone_has_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match='no simulator'):
        started('sim', sim='none', run_dir=str(tmp_path / 'a'))


def test_the_nodes_read_the_run_s_own_parameter_file(tmp_path: Path) -> None:
    started('walk', run_dir=str(tmp_path), use_sim_time='True', device='cuda:0', vx='1')
    router = (tmp_path / 'params' / 'g1_policy.yaml').read_text()
    assert 'use_sim_time: true' in router
    assert 'device: cuda:0' in router
    assert 'vx: 1.0' in (tmp_path / 'params' / 'g1_cmd.yaml').read_text()


@pytest.mark.parametrize(
    ('argument', 'value', 'expected'),
    [
        ('vx', 'fast', 'vx: expected a number'),
        ('use_sim_time', '1', 'not valid'),
        ('sim', 'gazebo', 'not valid'),
    ],
)
def test_a_wrong_value_ends_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str, value: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match=expected):
        started('walk', **{argument: value})
    assert list(tmp_path.iterdir()) == []


def test_the_launch_files_hold_nothing_but_the_bring_up() -> None:
    for name in NAMES:
        assert all(
            isinstance(entity, DeclareLaunchArgument | OpaqueFunction)
            for entity in description(name).entities
        )
