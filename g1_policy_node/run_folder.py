"""The folder a run leaves behind: its name, its plan, and how its files are written."""

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from g1_policy_node.bringup import Options, ProcessSpec
from g1_policy_node.types import UserError

RUNS = Path('runs')
PLAN = 'bringup.json'
VIEW_URL = 'view.json'


def create_run_folder(run_dir: str, what: str) -> Path:
    """Make `run_dir`, or runs/<UTC time>-<what>; UserError if a run is in it already."""
    if run_dir:
        path = Path(run_dir).resolve()
        if (path / PLAN).exists():
            raise UserError(f'run_dir: {path} already holds a run')
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f'run_dir: {path} cannot be made ({error.strerror})') from None
        return path
    name = f'{time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())}-{what}'
    for suffix in ('', *(f'-{i}' for i in range(2, 100))):
        path = (RUNS / f'{name}{suffix}').resolve()
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(f'{path} cannot be made ({error.strerror})') from None
        return path
    raise UserError(f'{RUNS / name}: a hundred runs started in this second')


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write `data` so that a reader finds the whole file or none."""
    partial = path.with_name(f'{path.name}.partial')
    partial.write_text(json.dumps(finite(data), indent=2, allow_nan=False) + '\n')
    partial.replace(path)


def finite(data: Any) -> Any:
    """Return `data` with None for every number that is none, as JSON has no NaN."""
    if isinstance(data, Mapping):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def beginning(command: Sequence[str]) -> dict[str, Any]:
    """Return how a run begins: its command line, when, and how busy the machine is before it."""
    return {
        'command_line': list(command),
        'started_utc': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
        'load_before': list(os.getloadavg()),
    }


def write_plan(options: Options, specs: Sequence[ProcessSpec], command: Sequence[str]) -> None:
    """Write what this run is to be, and how busy the machine is before it starts."""
    plan = {
        **beginning(command),
        'options': asdict(options),
        'processes': [spec.executable for spec in specs],
    }
    write_json(Path(options.run_dir, PLAN), plan)
