import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from g1_policy_node.paths import PACKAGE

ROOT = Path(__file__).resolve().parents[1]
ROS_LAYER = frozenset(
    {
        'clock',
        'cmd_source',
        'command_inbox',
        'diagnostics',
        'estop',
        'evidence',
        'joy_teleop',
        'loop',
        'newest',
        'node',
        'parameters',
        'ros_io',
        'ros_process',
        'wire',
    }
)
FRONT_ENDS = frozenset({'cli', 'launching'})
STAGES = frozenset({'observation', 'actor', 'action', 'safety'})
CORE_NEEDS = frozenset({'numpy', 'safetensors', 'yaml'})
ABOVE = ('bridge', 'sim', 'training', 'tools', 'view')
# What the node must not load: simulators, training, viewers, bags, plots, terminals.
HEAVY = frozenset(
    {'isaaclab', 'matplotlib', 'mujoco', 'plotly', 'rerun', 'rich', 'rosbags', 'torch', 'viser'}
)
MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 40


def modules() -> dict[str, Path]:
    folder = ROOT / PACKAGE
    return {
        '.'.join(path.relative_to(folder).with_suffix('').parts).removesuffix('.__init__'): path
        for path in folder.rglob('*.py')
    }


def imported(tree: ast.AST, top_level: bool = False) -> Iterator[str]:
    """The full names that a module imports; without those inside functions if `top_level`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, 'imports are written in full'
            yield node.module or ''
            if node.module == PACKAGE:
                yield from (f'{PACKAGE}.{alias.name}' for alias in node.names)
        elif not (top_level and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            yield from imported(node, top_level)


MODULES = modules()
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}
FLAT = frozenset(name for name in MODULES if '.' not in name and name not in (*ABOVE, '__init__'))
CORE = sorted(FLAT - ROS_LAYER - FRONT_ENDS)


def own_imports(name: str, top_level: bool = False) -> set[str]:
    full = set(imported(TREES[name], top_level))
    return {item.removeprefix(f'{PACKAGE}.') for item in full if item.startswith(f'{PACKAGE}.')}


def foreign_imports(name: str) -> set[str]:
    tops = {item.split('.')[0] for item in imported(TREES[name])}
    return tops - {PACKAGE, '__future__'} - sys.stdlib_module_names


def test_the_layers_name_modules_that_exist() -> None:
    assert not (ROS_LAYER | FRONT_ENDS | STAGES) - FLAT


@pytest.mark.parametrize('name', CORE)
def test_the_core_needs_no_ros_and_little_else(name: str) -> None:
    allowed = CORE_NEEDS | ({'torch'} if name == 'torch_actor' else set())
    assert not foreign_imports(name) - allowed
    assert not own_imports(name) & (ROS_LAYER | FRONT_ENDS)


@pytest.mark.parametrize('name', sorted(FLAT - FRONT_ENDS))
def test_nothing_below_knows_the_simulators_the_training_or_the_tools(name: str) -> None:
    assert not {item for item in own_imports(name) if item.split('.')[0] in ABOVE}


@pytest.mark.parametrize('name', sorted(name for name in MODULES if name.startswith('bridge.')))
def test_the_bridge_to_the_robot_knows_no_simulator_and_no_tool(name: str) -> None:
    above = set(ABOVE) - {'bridge'}
    assert not {item for item in own_imports(name) if item.split('.')[0] in above}


@pytest.mark.parametrize('name', sorted(STAGES))
def test_a_stage_knows_no_other_stage(name: str) -> None:
    seen: set[str] = set()
    waiting = {name}
    while waiting:
        module = waiting.pop()
        seen.add(module)
        waiting |= (own_imports(module) & set(MODULES)) - seen
    assert seen & STAGES == {name}


def test_imports_run_in_no_circle() -> None:
    below = {name: own_imports(name, top_level=True) & set(MODULES) for name in MODULES}
    while below:
        leaves = {name for name, needs in below.items() if not needs & below.keys()}
        assert leaves, f'a circle among {sorted(below)}'
        below = {name: needs for name, needs in below.items() if name not in leaves}


@pytest.mark.parametrize(
    'module', ['node', 'cmd_source', 'bridge.unitree_bridge', 'bridge.writer']
)
def test_a_process_never_loads_both_ros_and_unitrees_dds(module: str) -> None:
    code = f'import sys, {PACKAGE}.{module}; print(*{{m.split(".")[0] for m in sys.modules}})'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert len({'rclpy', 'cyclonedds'} & set(done.stdout.split())) == 1


@pytest.mark.parametrize('module', ['node', 'cmd_source', 'joy_teleop', 'bridge.unitree_bridge'])
def test_a_node_loads_only_what_it_runs(module: str) -> None:
    code = f'import sys, {PACKAGE}.{module}; print(*{{m.split(".")[0] for m in sys.modules}})'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert 'rclpy' in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize('name', sorted(MODULES))
def test_modules_and_functions_stay_short(name: str) -> None:
    assert len(MODULES[name].read_text().splitlines()) <= MAX_MODULE_LINES
    functions = (node for node in ast.walk(TREES[name]) if isinstance(node, ast.FunctionDef))
    long = {
        node.name: (node.end_lineno or 0) - node.lineno + 1
        for node in functions
        if (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    }
    assert not long
