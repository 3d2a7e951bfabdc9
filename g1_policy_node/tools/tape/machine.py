"""The machine during a measurement: load, and the GPU's clocks, throttling and other users."""

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

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


LISTED = 8
SHARE = 0.01
"""Of a core: processes below it are not named."""


class Used(NamedTuple):
    """Processor seconds of every process so far, by (pid, name), at monotonic `at` s."""

    at: float
    seconds: dict[tuple[int, str], float]


def used() -> Used:
    """Return what /proc says of every process; nothing where there is no /proc."""
    tick = os.sysconf('SC_CLK_TCK')
    seconds = {}
    for file in Path('/proc').glob('[0-9]*/stat'):
        try:
            text = file.read_text()
        except OSError:  # it has ended
            continue
        name, _, rest = text.partition('(')[2].rpartition(')')
        fields = rest.split()
        seconds[int(file.parent.name), name] = (int(fields[11]) + int(fields[12])) / tick
    return Used(time.monotonic(), seconds)


def busiest(before: Used, after: Used) -> list[dict[str, Any]]:
    """Return the other processes that used a processor in between, in cores, busiest first."""
    wall = after.at - before.at
    spent = {
        who: (seconds - before.seconds.get(who, 0.0)) / wall
        for who, seconds in after.seconds.items()
        if who[0] != os.getpid()
    }
    named = sorted(spent, key=lambda who: -spent[who])[:LISTED]
    return [
        {'pid': pid, 'name': name, 'cores': round(spent[pid, name], 3)}
        for pid, name in named
        if spent[pid, name] >= SHARE
    ]


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
