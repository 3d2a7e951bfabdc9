"""The arms: what is started for each, and with what."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from g1_policy_node.bringup import ONE_THREAD

OURS, STOCK, HONEST, FLOOR = 'ours', 'stock', 'honest_stock', 'floor'
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    'follow_arrivals off': {'follow_arrivals': False},
    'prewarm 1 ms': {'prewarm': 0.001},
    'fifo_priority 50': {'fifo_priority': 50},
    'cpus 1': {'cpus': '1'},
    'lock_memory': {'lock_memory': True},
}
"""Arms that are ours with other parameters than it ships with."""
TITLES = {
    OURS: 'ours',
    STOCK: 'stock',
    HONEST: 'honest stock',
    FLOOR: 'floor',
    **{name: f'ours, {name}' for name in OPTIONS},
}
NODES = (OURS, STOCK, HONEST)
_MODULES = {STOCK: 'bench.stock_node', HONEST: 'bench.honest_stock_node'}


class Process(NamedTuple):
    """A process to start, and what is added to its environment."""

    argv: list[str]
    environment: Mapping[str, str]


class Condition(NamedTuple):
    """What every arm of a comparison is put under."""

    rate: float = 1000.0
    actor: bool = True
    robots: int = 1
    swaps: bool = False

    @property
    def namespaces(self) -> list[str]:
        """One namespace a robot; a single robot has none."""
        return [''] if self.robots == 1 else [f'robot{i}' for i in range(self.robots)]


def is_ours(arm: str) -> bool:
    """Whether the arm is the router, with whatever options."""
    return arm == OURS or arm in OPTIONS


def link(arm: str, condition: Condition) -> str:
    """Say how a command names its sensor sample: through `~/step`, or by its own stamp."""
    return 'step' if is_ours(arm) and condition.actor else 'stamp'


def processes(arm: str, condition: Condition, folder: Path) -> list[Process]:
    """Return the processes of an arm, those of the robots first."""
    made = [
        _node(arm, condition, folder / f'node{i}', namespace)
        for i, namespace in enumerate(condition.namespaces)
    ]
    if arm == FLOOR:
        line = [sys.executable, '-m', 'g1_policy_node.tools.floor', str(folder)]
        made.append(Process(line, {}))
    return made


def _node(arm: str, condition: Condition, folder: Path, namespace: str) -> Process:
    folder.mkdir(parents=True)
    environment = {
        **ONE_THREAD,
        'BENCH_FOLDER': str(folder),
        'BENCH_ACTOR': '1' if condition.actor else '0',
        'BENCH_RATE': str(round(condition.rate)),
        'BENCH_STAND_IN': '1' if condition.swaps else '0',
    }
    python = sys.executable
    if arm == FLOOR:
        return Process([python, '-m', 'bench.echo_node'], environment)
    ros = ['--ros-args', '-r', f'__ns:=/{namespace}'] if namespace else ['--ros-args']
    if arm in _MODULES:
        return Process([python, '-m', _MODULES[arm], *ros], environment)
    parameters = {
        'auto_run': condition.actor,
        'devices': ['cpu', 'cuda:0'] if condition.swaps else ['cpu'],
        'run_dir': str(folder),
        **OPTIONS.get(arm, {}),
    }
    path = folder / 'parameters.yaml'
    path.write_text(yaml.safe_dump({'/**/g1_policy': {'ros__parameters': parameters}}))
    line = [python, '-m', 'bench.our_node', *ros, '--params-file', str(path)]
    return Process(line, environment)
