"""The parts of a run with known figures: one second of READY, eight of RUN."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from g1_policy_node.tools.summary import merge_run
from g1_policy_node.types import Mode

MS = 1_000_000
TICK = 20 * MS
T0 = 9_000_000 * MS
RUN, READY = list(Mode).index(Mode.RUN), list(Mode).index(Mode.READY)
HEADING = np.radians(30)
FORWARD = np.array([np.cos(HEADING), np.sin(HEADING)])
LEFT = np.array([-np.sin(HEADING), np.cos(HEADING)])
READY_TICKS, RUN_TICKS = 50, 401


JOINTS = ('left_hip_pitch_joint', 'left_knee_joint')


def transitions(*modes: str) -> list[dict[str, Any]]:
    """READY at the first tick, each mode after it as long as its part of the run lasts."""
    times = {'READY': 0, 'RUN': READY_TICKS, 'HOLD': 300, 'DAMP': 310}
    end = READY_TICKS + RUN_TICKS
    return [
        {'tick_ns': T0 + TICK * times.get(mode, end), 'mode': mode, 'reason': f'why {mode}'}
        for mode in modes
    ]


def timing() -> dict[str, Any]:
    """One second of READY and eight of RUN; every stage takes the same time in every tick."""
    n = READY_TICKS + RUN_TICKS
    scheduled = T0 + TICK * np.arange(n)
    stages = {'woken': 100_000, 'observed': 1_100_000, 'acted': 1_600_000, 'checked': 1_800_000}
    return {
        'slot': np.arange(n),
        'tick_ns': scheduled,
        'scheduled': scheduled,
        **{name: scheduled + offset for name, offset in stages.items()},
        'published': scheduled + 2_100_000,
        'joint_age': np.full(n, 4 * MS),
        'mode': np.array([READY] * READY_TICKS + [RUN] * RUN_TICKS, np.int8),
        'command': np.tile([0.5, 0.0, 0.1], (n, 1)),
    }


def track() -> dict[str, Any]:
    """Eight seconds at 0.55 m/s along a heading of 30 degrees, sliding left at 0.02 m/s."""
    t = 0.02 * np.arange(RUN_TICKS)
    position = t[:, None] * (0.55 * FORWARD + 0.02 * LEFT)
    z, w = np.sin(HEADING / 2), np.cos(HEADING / 2)
    return {
        'time': 3.0 + t,
        'tick_ns': T0 + TICK * (READY_TICKS + np.arange(RUN_TICKS)),
        'position': np.column_stack([position, np.full(RUN_TICKS, 0.78)]),
        'quat_xyzw': np.tile([0, 0, z, w], (RUN_TICKS, 1)),
        'lin_vel': np.tile([0.55, 0.02, 0.0], (RUN_TICKS, 1)),
        'ang_vel': np.tile([0.0, 0.0, 0.07], (RUN_TICKS, 1)),
        'running': np.ones(RUN_TICKS, bool),
        'joint_pos': np.column_stack([0.1 * np.sin(t), 0.5 + 0.2 * np.cos(t)]),
        'target': np.column_stack([0.1 * np.sin(t), 0.6 + 0.2 * np.cos(t)]),
        'transport_ns': np.array([200_000, 400_000]),
    }


def parts() -> dict[str, Any]:
    return {
        'bringup.json': {'processes': ['mujoco_sim', 'policy_node', 'cmd_source', 'floor']},
        'node.json': {
            'ticks': 451,
            'slots': 451,
            'deadline_misses': 2,
            'device': 'cpu',
            'weights_sha256': 'w',
            'contract_sha256': 'c',
            'transitions': transitions('READY', 'RUN', 'INACTIVE'),
        },
        'timing.npz': timing(),
        'sim.json': {
            'simulator': 'mujoco',
            'fell': False,
            'fell_at_s': None,
            'lockstep': False,
            'joint_names': list(JOINTS),
        },
        'sim.npz': track(),
        'cmd.json': {
            'duration': 8.0,
            'run_seconds': 8.0,
            'completed': True,
            'ended': 'done',
            'last_tick_ns': None,
        },
        'floor.json': {'slots': 500, 'misses': 1, 'lateness_us': None},
        'floor.npz': {'lateness_ns': np.zeros(500, np.int64)},
    }


def merged(folder: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> Any:
    """The summary, as read back from summary.json, of a good walk with one `change`."""
    given = parts()
    change(given)
    for name, part in given.items():
        if name.endswith('.npz'):
            np.savez(folder / name, **part)
        else:
            (folder / name).write_text(json.dumps(part))
    merge_run(folder)
    return json.loads((folder / 'summary.json').read_text())
