"""The machine during a measurement: load, and the GPU's clocks, throttling and other users."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

_QUERY = (
    'index',
    'name',
    'driver_version',
    'pstate',
    'clocks.sm',
    'clocks.mem',
    'clocks_throttle_reasons.active',
    'persistence_mode',
    'temperature.gpu',
    'power.draw',
    'utilization.gpu',
    'memory.used',
)


def state() -> dict[str, Any]:
    """Return load averages, running tasks and, where there is nvidia-smi, the GPUs' state."""
    return {'load': list(os.getloadavg()), 'running': _running(), 'gpus': gpus(), 'users': users()}


def gpus() -> list[dict[str, str]] | None:
    """Return what nvidia-smi says of each GPU; None without nvidia-smi."""
    lines = _ask(f'--query-gpu={",".join(_QUERY)}')
    if lines is None:
        return None
    return [dict(zip(_QUERY, line.split(', '), strict=False)) for line in lines]


def users() -> list[str] | None:
    """Return the other processes on the GPUs, as `pid, name, memory`; None if unknown."""
    lines = _ask('--query-compute-apps=pid,process_name,used_memory')
    mine = str(os.getpid())
    return None if lines is None else [line for line in lines if line.split(',')[0] != mine]


def _ask(query: str) -> list[str] | None:
    if shutil.which('nvidia-smi') is None:
        return None
    try:
        done = subprocess.run(
            ['nvidia-smi', query, '--format=csv,noheader'],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return [line for line in done.stdout.splitlines() if line.strip()]


def _running() -> int | None:
    """Return how many tasks are running or ready, ourselves included, from /proc/loadavg."""
    path = Path('/proc/loadavg')
    return int(path.read_text().split()[3].split('/')[0]) if path.exists() else None
