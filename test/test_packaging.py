import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import g1_policy_node
from g1_policy_node.paths import PACKAGE, data_root, find_data
from g1_policy_node.types import UserError

ROOT = Path(__file__).resolve().parents[1]
EXECUTABLES = {
    'policy_node',
    'mujoco_sim',
    'isaac_sim',
    'unitree_bridge',
    'cmd_source',
    'joy_teleop',
    'g1_view',
    'floor',
    'tape_recorder',
    'g1-policy',
}
DEPENDENCY = {
    'PIL': 'python3-pil',
    'jinja2': 'python3-jinja2',
    'numpy': 'python3-numpy',
    'rich': 'python3-rich',
    'yaml': 'python3-yaml',
}
# Not in a ROS distribution: the README says how to get them; ament_index_python comes with rclpy.
# Training's own, matplotlib among them, are those of Isaac Lab's environment.
NO_KEY = {
    'cyclonedds', 'isaaclab', 'isaaclab_newton', 'isaaclab_rl', 'matplotlib', 'mujoco', 'newton',
    'onnx', 'rosbags', 'rsl_rl', 'safetensors', 'tensordict', 'torch', 'viser', 'warp',
    'websockets',
}  # fmt: skip
START_EVERY_EXECUTABLE = """
from importlib.metadata import distribution
from importlib import import_module
for point in distribution('g1-policy-node').entry_points:
    print(point.name, import_module(point.module).__file__, callable(point.load()))
"""


def repository_files() -> list[str]:
    """Everything that a clone would have: tracked, or new and not ignored."""
    listed = subprocess.run(
        ['git', 'ls-files', '--cached', '--others', '--exclude-standard', '-z'],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split('\0') if name and (ROOT / name).is_file()]


def in_workspace(workspace: Path, command: str) -> str:
    """Run a line of bash as a ROS user does: in the sourced workspace, from somewhere else."""
    done = subprocess.run(
        ['bash', '-c', f'. {workspace}/install/setup.bash && {command}'],
        cwd='/',
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope='module', params=['plain', 'symlink'])
def workspace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A colcon workspace, built, that holds a copy of this repository."""
    top: Path = tmp_path_factory.mktemp(f'ws_{request.param}')
    for name in repository_files():
        copy = top / 'src' / PACKAGE / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    options = ['--symlink-install'] if request.param == 'symlink' else []
    colcon = Path(sys.executable).with_name('colcon')
    done = subprocess.run(
        [colcon if colcon.exists() else 'colcon', 'build', *options],
        cwd=top,
        env=os.environ | {'COLCON_HOME': str(top / 'colcon')},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return top


def test_every_file_is_where_ros_looks(workspace: Path) -> None:
    share = workspace / 'install' / PACKAGE / 'share'
    source = workspace / 'src' / PACKAGE
    for folder in ('launch', 'config', 'policies'):
        files = [path for path in (source / folder).rglob('*') if path.is_file()]
        assert files, folder
        for path in files:
            found = share / PACKAGE / path.relative_to(source)
            assert found.read_bytes() == path.read_bytes()
    assert (share / PACKAGE / 'package.xml').is_file()
    assert (share / 'ament_index' / 'resource_index' / 'packages' / PACKAGE).is_file()


def test_every_executable_is_where_ros_looks_and_loads(workspace: Path) -> None:
    folder = workspace / 'install' / PACKAGE / 'lib' / PACKAGE
    assert {path.name for path in folder.iterdir() if os.access(path, os.X_OK)} == EXECUTABLES
    loaded = in_workspace(workspace, f'{sys.executable} -c "{START_EVERY_EXECUTABLE}"')
    rows = [line.split() for line in loaded.splitlines()]
    assert {name for name, _, _ in rows} == EXECUTABLES
    for name, file, usable in rows:
        assert Path(file).is_relative_to(workspace), f'{name} comes from {file}'
        assert usable == 'True'


def test_the_command_line_starts_from_the_install_space(workspace: Path) -> None:
    folder = workspace / 'install' / PACKAGE / 'lib' / PACKAGE
    assert 'walk' in in_workspace(workspace, f'{folder}/g1-policy --help')


def test_the_data_belong_to_the_code_that_asks(workspace: Path) -> None:
    code = (
        f'from {PACKAGE}.paths import data_root as mine; '
        'from ament_index_python import get_package_share_directory as ros; '
        f"print(mine().resolve(), ros('{PACKAGE}'))"
    )
    mine, ros = in_workspace(workspace, f'{sys.executable} -c "{code}"').split()
    assert Path(ros) == workspace / 'install' / PACKAGE / 'share' / PACKAGE
    source = workspace / 'src' / PACKAGE
    assert Path(mine) == (source if 'symlink' in workspace.name else Path(ros))


def test_data_are_found_in_the_source_tree_and_a_miss_is_named() -> None:
    assert data_root() == ROOT
    assert find_data('config') == ROOT / 'config'
    with pytest.raises(UserError, match=r'config/absent\.yaml: not among the files'):
        find_data('config/absent.yaml')


def test_one_version_everywhere() -> None:
    manifest = ElementTree.parse(ROOT / 'package.xml').findtext('version')
    setup = re.search(r"version='([^']+)'", (ROOT / 'setup.py').read_text())
    changes = re.search(r'^(\d+\.\d+\.\d+) \(', (ROOT / 'CHANGELOG.rst').read_text(), re.M)
    assert setup and changes
    assert manifest == setup[1] == changes[1] == g1_policy_node.__version__


def test_the_manifest_names_exactly_what_is_imported() -> None:
    imported: set[str] = set()
    for path in [*(ROOT / PACKAGE).rglob('*.py'), *(ROOT / 'launch').glob('*.py')]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or '').split('.')[0])
    foreign = imported - sys.stdlib_module_names - {PACKAGE} - NO_KEY
    keys = {DEPENDENCY.get(name, name) for name in foreign}
    named = {item.text for item in ElementTree.parse(ROOT / 'package.xml').iter('exec_depend')}
    assert named - {'ros2launch'} == keys
