"""Merges the parts of a run into summary.json, manifest.json and report.html, and judges it."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from g1_policy_node.run_folder import finite, write_json
from g1_policy_node.tools.curves import curves, first_run
from g1_policy_node.tools.end_to_end import end_to_end
from g1_policy_node.tools.film import Film
from g1_policy_node.tools.manifest import manifest
from g1_policy_node.tools.motion import walk_figures
from g1_policy_node.tools.page import NOT_RENDERED, write_page
from g1_policy_node.tools.parts import Part, Parts, read_parts
from g1_policy_node.tools.spread import spread
from g1_policy_node.tools.trip_report import list_trips
from g1_policy_node.types import Array, Mode, UserError

VX_ERROR_LIMIT = 0.12
"""m/s between the mean and the commanded forward velocity."""

MISSED_LIMIT = 0.005
"""Share of the slots, or three times the floor's where that is more."""

STAGES = ('sensor_age', 'observe', 'act', 'check', 'publish', 'transport', 'sensor_to_command')

_MODES = list(Mode)


class Criterion(NamedTuple):
    """One limit that a run is held to; `value` None where it was not measured."""

    name: str
    value: float | bool | None
    limit: float | bool | None
    met: bool


def merge_run(
    run_dir: Path, render: Callable[[Parts], Film] = lambda _: NOT_RENDERED
) -> dict[str, Any]:
    """Write summary.json, manifest.json and report.html from a run's parts; return the summary.

    `render` makes the report's pictures of the robot, which takes some seconds.
    """
    if not run_dir.is_dir():
        raise UserError(f'{run_dir}: no such folder')
    parts = read_parts(run_dir)
    summary: dict[str, Any] = finite(summarize(parts))
    # A tape is in real time, in which lock-step's motion has no meaning.
    if not summary['lockstep']:
        summary['end_to_end'] = end_to_end(run_dir / 'tape', summary['latency_ms'])
    made_with = finite(manifest(parts))
    write_json(run_dir / 'summary.json', summary)
    write_json(run_dir / 'manifest.json', made_with)
    drawn = curves(parts, stage_samples(parts.timing, parts.track))
    drawn['trips'] = list_trips(run_dir, first_run(parts))
    write_page(run_dir, summary, made_with, drawn, render(parts))
    return summary


def summarize(parts: Parts) -> dict[str, Any]:
    """Return the figures of a run, None for what is not known, and whether it is accepted."""
    node, floor, sim = parts.node or {}, parts.floor or {}, parts.simulator or {}
    until = (parts.command or {}).get('last_tick_ns')
    walk = walk_figures(parts.track, parts.timing, until) if parts.track else {}
    walk['fell'] = fell(parts)
    met = criteria(parts, walk)
    return {
        'accepted': all(criterion.met for criterion in met) and not parts.missing,
        'criteria': [criterion._asdict() for criterion in met],
        'missing': list(parts.missing),
        'ended': (parts.command or {}).get('ended'),
        'ticks': node.get('ticks'),
        'slots': node.get('slots'),
        'rate_hz': None if parts.timing is None else rate(parts.timing),
        'deadline_misses': node.get('deadline_misses'),
        'longest_gap_ms': node.get('longest_gap_ms'),
        'floor_slots': floor.get('slots'),
        'floor_misses': floor.get('misses'),
        'floor_lateness_us': floor.get('lateness_us'),
        'device': node.get('device'),
        'switches': len(node['switches']) if 'switches' in node else None,
        'device_failures': node.get('device_failures'),
        'golden_difference': node.get('golden_difference'),
        'weights_sha256': node.get('weights_sha256'),
        'contract_sha256': node.get('contract_sha256'),
        'lockstep': sim.get('lockstep'),
        'real_time_factor': sim.get('real_time_factor'),
        'latency_ms': latency(stage_samples(parts.timing, parts.track)),
        'walk': walk,
        'counters': node.get('counters'),
        'commands': sim.get('commands'),
        'transitions': node.get('transitions'),
    }


def criteria(parts: Parts, walk: Part) -> list[Criterion]:
    """Return what a walk is held to, with the figures it reached."""
    error = None
    if walk.get('mean_velocity') and walk.get('command'):
        error = abs(walk['mean_velocity'][0] - walk['command'][0])
    missed = _share(parts.node, 'deadline_misses')
    floor = _share(parts.floor, 'misses')
    allowed = max(MISSED_LIMIT, 3 * (floor or 0.0))
    held = [
        Criterion('fell', walk['fell'], False, walk['fell'] is False),
        _at_most('vx_error', error, VX_ERROR_LIMIT),
        _at_most('missed_share', missed, allowed),
    ]
    if parts.command is not None:
        seconds, duration = parts.command['run_seconds'], parts.command['duration']
        held.append(Criterion('run_seconds', seconds, duration, parts.command['completed']))
    return held


def fell(parts: Parts) -> bool | None:
    """Return whether the robot fell while the policy had it, or was let go of by the node.

    What it does after the node has been told to stop is no part of the walk.
    """
    if parts.simulator is None or parts.track is None or parts.node is None:
        return None
    modes = [transition['mode'] for transition in parts.node['transitions']]
    let_go = any(a in ('RUN', 'HOLD') and b == 'DAMP' for a, b in pairwise(modes))
    running = np.flatnonzero(parts.track['running'])
    if not len(running):
        return None
    if not parts.simulator['fell']:
        return False
    return let_go or bool(parts.simulator['fell_at_s'] <= parts.track['time'][running[-1]])


def rate(timing: Part) -> float | None:
    """Return commands per second of the tick clock while in RUN."""
    ticks = timing['tick_ns'][_in_run(timing) & (timing['published'] > 0)]
    if len(ticks) < 2 or ticks[-1] <= ticks[0]:
        return None
    return float((len(ticks) - 1) / ((ticks[-1] - ticks[0]) / 1e9))


def latency(samples: Mapping[str, Array]) -> dict[str, Any]:
    """Return p50, p95, p99 and max in ms of each stage; None of one without samples."""
    return {stage: spread(samples[stage]) if stage in samples else None for stage in STAGES}


def stage_samples(timing: Part | None, track: Part | None) -> dict[str, Array]:
    """Return how long each stage took (n,) in ms, over the ticks in RUN.

    A stage that a tick did not reach is left out. `sensor_to_command` is the age of the joints at
    the tick plus the time from there to the published command.
    """
    samples: dict[str, Array] = {}
    if timing is not None:
        rows = {name: column[_in_run(timing)] for name, column in timing.items()}
        seen = rows['joint_age'] >= 0
        samples['sensor_age'] = rows['joint_age'][seen] / 1e6
        for name, begin, end in (
            ('observe', 'woken', 'observed'),
            ('act', 'observed', 'acted'),
            ('check', 'acted', 'checked'),
            ('publish', 'checked', 'published'),
        ):
            reached = (rows[begin] > 0) & (rows[end] > 0)
            samples[name] = (rows[end] - rows[begin])[reached] / 1e6
        whole = seen & (rows['woken'] > 0) & (rows['published'] > 0)
        total = rows['joint_age'] + rows['published'] - rows['woken']
        samples['sensor_to_command'] = total[whole] / 1e6
    if track is not None:
        samples['transport'] = track['transport_ns'] / 1e6
    return samples


def _at_most(name: str, value: float | None, limit: float) -> Criterion:
    return Criterion(name, value, limit, value is not None and value <= limit)


def _in_run(timing: Part) -> Any:
    return timing['mode'] == _MODES.index(Mode.RUN)


def _share(part: Part | None, misses: str) -> float | None:
    return part[misses] / part['slots'] if part and part['slots'] else None
