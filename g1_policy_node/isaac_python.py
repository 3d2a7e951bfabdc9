"""Which Python has Isaac Lab: training and isaac_sim run in it, whatever Python starts them."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from g1_policy_node.paths import PACKAGE, data_root
from g1_policy_node.types import UserError

MADE_BY = '.venv-train/bin/python'
"""What `make train-env` makes, in the source tree."""

_ASK = "import importlib.util, sys; sys.exit(importlib.util.find_spec('isaaclab') is None)"


def isaac_python(given: str = '') -> str:
    """Return the Python to run what needs Isaac Lab: `given`, this one, or .venv-train's.

    UserError in one line where that is none.
    """
    if given:
        if not _has_isaac_lab(Path(given)):
            raise UserError(f'isaac_python: {given} is no Python that has Isaac Lab')
        return os.path.abspath(given)
    if importlib.util.find_spec('isaaclab') is not None:
        return sys.executable
    for folder in (data_root(), Path.cwd()):
        python = folder / MADE_BY
        if _has_isaac_lab(python):
            return str(python)
    raise UserError(
        'no Python with Isaac Lab: make train-env, or name one as isaac_python (looked for '
        f'{MADE_BY} in {data_root()} and {Path.cwd()})'
    )


def python_environment(python: str) -> Mapping[str, str]:
    """Return what to change in the environment of a process of `python`: nothing for this one.

    Another Python has a ROS of its own, from wheels; this one's must not leak into it. A source
    tree is put on its path, so that both run the same code.
    """
    if python == sys.executable:
        return {}
    tree = Path(__file__).resolve().parents[1]
    prefix = str(Path(python).parents[1])
    return {
        'VIRTUAL_ENV': prefix,
        'AMENT_PREFIX_PATH': prefix,
        'RMW_IMPLEMENTATION': 'rmw_fastrtps_cpp',
        'PYTHONPATH': str(tree) if (tree / 'package.xml').is_file() else '',
        'PYTHONHOME': '',
        'LD_LIBRARY_PATH': '',
        # The wheels' start-up file looks for their libraries where this is not set.
        '_ROS_WHEELS_BOOTSTRAP_COMPLETE': '',
    }


def train_command(given: str, arguments: list[str]) -> tuple[list[str], Mapping[str, str]]:
    """Return the argv that trains, and what to change in its environment."""
    python = isaac_python(given)
    command = [python, '-m', f'{PACKAGE}.cli', 'train', *arguments]
    return command, python_environment(python)


def _has_isaac_lab(python: Path) -> bool:
    """Ask it, in the environment it would run in."""
    try:
        asked = subprocess.run(
            [str(python), '-c', _ASK], env={**os.environ, **python_environment(str(python))}
        )
    except OSError:
        return False
    return asked.returncode == 0
