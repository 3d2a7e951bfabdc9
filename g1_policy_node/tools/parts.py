"""Reads the parts that the processes of a run left in its folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from g1_policy_node.arrays import read_arrays
from g1_policy_node.journal import SUFFIX, read_rows
from g1_policy_node.run_folder import PLAN
from g1_policy_node.schema import read_small_file
from g1_policy_node.types import UserError

MAX_ARRAY_BYTES, MAX_JSON_BYTES = 2_000_000_000, 50_000_000
"""Of one part: a simulator's truth takes 0.2 GB an hour."""

FILES: Mapping[str, tuple[str, ...]] = {
    'policy_node': ('node.json', 'timing.npz'),
    'unitree_bridge': ('bridge.json',),
    'mujoco_sim': ('sim.json', 'sim.npz'),
    'isaac_sim': ('sim.json', 'sim.npz'),
    'cmd_source': ('cmd.json',),
    'tape_recorder': ('tape.json',),
    'floor': ('floor.json', 'floor.npz'),
}
"""What each process leaves, by executable."""

Part = Mapping[str, Any]


class Parts(NamedTuple):
    """The parts of a run; None where a part is absent. `missing` names those that should be there.

    `timing` one row per tick, `track` the simulator's ground truth at 50 Hz: arrays by name.
    """

    plan: Part | None
    node: Part | None
    timing: Part | None
    command: Part | None
    simulator: Part | None
    track: Part | None
    floor: Part | None
    missing: tuple[str, ...]


NO_PARTS = Parts(None, None, None, None, None, None, None, ())


def read_parts(run_dir: Path) -> Parts:
    """Read what is there. A part that cannot be read counts as missing, with the reason."""
    missing: list[str] = []
    plan = _read(run_dir / PLAN, missing)
    started = plan['processes'] if plan else [name for name in FILES if name != 'tape_recorder']
    parts = {
        name: _read(run_dir / name, missing if executable in started else [])
        for executable, names in FILES.items()
        for name in names
    }
    return Parts(
        plan=plan,
        node=parts['node.json'],
        timing=parts['timing.npz'] or _read_journal(run_dir, missing),
        command=parts['cmd.json'],
        simulator=parts['sim.json'],
        track=parts['sim.npz'],
        floor=parts['floor.json'],
        missing=tuple(missing),
    )


def _read_journal(run_dir: Path, missing: list[str]) -> Part | None:
    """Return the ticks that a killed node left; timing.npz still counts as missing."""
    for path in sorted(run_dir.glob(f'timing-*{SUFFIX}'), reverse=True):
        try:
            rows = read_rows(path)
        except (OSError, ValueError) as error:
            missing.append(f'{path.name} (cannot be read: {error})')
        else:
            return {name: rows[name] for name in rows.dtype.names or ()}
    return None


def _read(path: Path, missing: list[str]) -> Part | None:
    if not path.exists():
        missing.append(path.name)
        return None
    try:
        if path.suffix == '.npz':
            return read_arrays(path, MAX_ARRAY_BYTES)
        part = json.loads(read_small_file(path, MAX_JSON_BYTES))
        if isinstance(part, dict):
            return part
        raise ValueError('not a map')
    except (UserError, ValueError, RecursionError) as error:
        missing.append(f'{path.name} (cannot be read: {error})')
        return None
