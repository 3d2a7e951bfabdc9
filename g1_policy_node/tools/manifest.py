"""Where and with what a run was made. What cannot be found out is null, never a guess."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from g1_policy_node.tools.parts import Parts

PACKAGES = (
    'g1_policy_node',
    'numpy',
    'mujoco',
    'cyclonedds',
    'torch',
    'rclpy',
    'ros-jazzy-rmw-fastrtps-cpp',
)
HERE = Path(__file__).resolve()
_LINK = re.compile(r'NV\d+|PIX|PXB|PHB|NODE|SYS')


def manifest(parts: Parts) -> dict[str, Any]:
    """Return the manifest of a run on this machine, from its parts and from the system."""
    plan, node, sim = parts.plan or {}, parts.node or {}, parts.simulator or {}
    gpu, driver = gpu_and_driver()
    return {
        'command_line': plan.get('command_line'),
        'started_utc': plan.get('started_utc'),
        'options': plan.get('options'),
        'git': git_state(HERE),
        'versions': {
            'python': platform.python_version(),
            **{name: version(name) for name in PACKAGES},
            **(node.get('versions') or {}),
        },
        'simulator': {'name': sim.get('simulator'), 'version': sim.get('version')},
        'host': platform.node(),
        'system': platform.platform(),
        'cpu': {'model': cpu_model(), 'cores': os.cpu_count(), 'usable': usable_cores()},
        'gpu': gpu,
        'driver': driver,
        'cuda': (node.get('versions') or {}).get('cuda'),
        'device': node.get('device'),
        'dtype': node.get('dtype'),
        'threads': node.get('threads'),
        'background_load': plan.get('load_before'),
        'policy': node.get('policy'),
        'weights_sha256': node.get('weights_sha256'),
        'contract_sha256': node.get('contract_sha256'),
    }


def version(package: str) -> str | None:
    """Return the version of an installed distribution; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def git_state(file: Path) -> dict[str, Any] | None:
    """Return commit and dirtiness of the repository that tracks `file`; None if none does."""
    folder = str(file.parent)
    # An installed copy may lie inside another project's repository.
    if _output(['git', '-C', folder, 'ls-files', '--error-unmatch', file.name]) is None:
        return None
    commit = _output(['git', '-C', folder, 'rev-parse', 'HEAD'])
    changes = _output(['git', '-C', folder, 'status', '--porcelain', '--untracked-files=no'])
    return {'commit': commit, 'dirty': None if changes is None else bool(changes)}


def cpu_model() -> str | None:
    """Return the processor's name, from Linux's /proc/cpuinfo."""
    path = Path('/proc/cpuinfo')
    text = path.read_text() if path.exists() else ''
    found = re.search(r'^model name\s*:\s*(.+)$', text, re.MULTILINE)
    return found.group(1) if found else None


def usable_cores() -> int | None:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if sys.platform == 'linux' else None


def gpu_and_driver() -> tuple[list[str] | None, str | None]:
    """Return the NVIDIA GPUs' names and the driver's version; None of either if there is none."""
    if shutil.which('nvidia-smi') is None:
        return None, None
    text = _output(['nvidia-smi', '--query-gpu=name,driver_version', '--format=csv,noheader'])
    rows = [line.rpartition(', ') for line in (text or '').splitlines() if ', ' in line]
    return ([name for name, _, _ in rows], rows[0][2]) if rows else (None, None)


def gpu_link() -> str | None:
    """Return how the first two GPUs are linked, as `nvidia-smi topo -m` says: NV18, PIX, SYS ...

    None where there are not two.
    """
    if shutil.which('nvidia-smi') is None:
        return None
    for line in (_output(['nvidia-smi', 'topo', '-m']) or '').splitlines():
        cells = line.split()
        if cells[:2] == ['GPU0', 'X'] and len(cells) > 2 and _LINK.fullmatch(cells[2]):
            return cells[2]
    return None


def _output(command: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
