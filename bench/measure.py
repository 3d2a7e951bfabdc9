"""A session's parts to its figures: one number each, by name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.arms import FLOOR, is_ours, link
from bench.session import Session
from g1_policy_node.types import UserError

PERIOD_NS = 20_000_000
PAIRING_SLACK_NS = 100_000
"""How far clock readings of two processes may disagree when a command is matched to its step."""

Ticks = NDArray[np.int64]


class Parts:
    """What a session left: ticks of every robot, its commands, and the collections."""

    def __init__(self, session: Session) -> None:
        self.session = session
        with np.load(session.folder / 'source.npz') as source:
            self.source = {name: source[name] for name in source.files}
        self.robots = session.condition.robots
        if is_ours(session.arm):
            for i in range(self.robots):
                _check_it_ran(session.folder / f'node{i}' / 'node.json')
        self.ticks = [_in(self._ticks(i), session.window, 1) for i in range(self.robots)]

    def _ticks(self, robot: int) -> Ticks:
        """Return scheduled, woken, published (n, 3) of a robot, monotonic ns."""
        folder = self.session.folder / f'node{robot}'
        if self.session.arm == FLOOR:
            return _floor_ticks(self.session)
        if (folder / 'ticks.npy').exists():
            return np.load(folder / 'ticks.npy')
        with np.load(folder / 'timing.npz') as t:
            return np.stack([t['scheduled'], t['woken'], t['published']], axis=1)

    def sensor_to_action(self) -> NDArray[np.float64]:
        """Return us from a JointState's stamp to the arrival of the command made from it."""
        low, high = (t + int(self.source['offset']) for t in self.session.window)
        spans = []
        for i in range(self.robots):
            commands = self.source[f'commands{i}']
            if link(self.session.arm, self.session.condition) == 'step':
                pairs = match_steps(commands, self.source[f'steps{i}'], int(self.source['offset']))
            else:
                pairs = commands
            pairs = pairs[(pairs[:, 1] >= low) & (pairs[:, 1] <= high)]
            spans.append((pairs[:, 1] - pairs[:, 0]) * 1e-3)
        return np.concatenate(spans)

    def lateness(self) -> NDArray[np.float64]:
        """Return us from each slot's start to the tick."""
        return np.concatenate([(t[:, 1] - t[:, 0]) * 1e-3 for t in self.ticks])

    def in_node(self) -> NDArray[np.float64]:
        """Return us from the start of each tick to after its command was given to DDS."""
        spans = [(t[:, 2] - t[:, 1])[t[:, 2] > 0] * 1e-3 for t in self.ticks]
        return np.concatenate(spans)

    def collections(self) -> NDArray[np.int64]:
        """Return the garbage collections inside the window: start, duration ns, generation."""
        rows = [
            np.load(self.session.folder / f'node{i}' / 'collections.npy')
            for i in range(self.robots)
        ]
        return _in(np.concatenate(rows), self.session.window, 0)

    def ready(self) -> float:
        """Return seconds from exec until the last robot's node waited for sensors."""
        folder = self.session.folder
        last = max(_ready_ns(folder / f'node{i}') for i in range(self.robots))
        return (last + int(self.source['offset']) - self.session.started) * 1e-9

    def first_action(self) -> float:
        """Return seconds from exec to the arrival of the first command of the policy."""
        stamps = []
        for i in range(self.robots):
            commands = self.source[f'commands{i}']
            if link(self.session.arm, self.session.condition) == 'step':
                offset = int(self.source['offset'])
                commands = match_steps(commands, self.source[f'steps{i}'], offset)
            stamps.append(int(commands[0, 1]))
        return (max(stamps) - self.session.started) * 1e-9


def _ready_ns(node: Path) -> int:
    """Return when a node first waited for sensors, everything loaded; monotonic ns."""
    if (node / 'ready').exists():
        return int((node / 'ready').read_text())
    changes = json.loads((node / 'node.json').read_text())['transitions']
    return int(next(c['tick_ns'] for c in changes if c['mode'] == 'WAITING'))


def _check_it_ran(node: Path) -> None:
    """Refuse a session in which the router damped: it then did less than it is measured for."""
    changes = json.loads(node.read_text())['transitions']
    damped = [change['reason'] for change in changes if change['mode'] == 'DAMP']
    if damped:
        raise UserError(f'the router damped: {damped[0]}')


def match_steps(
    commands: NDArray[np.int64], steps: NDArray[np.float64], offset: int
) -> NDArray[np.int64]:
    """Return (sensor stamp, command received) in system ns, for each step with its command.

    `commands` (n, 2): header stamp and reception, system ns. `steps` (m, 3): sensor stamp
    (system s), checked and published (monotonic s). The router stamps a command between the
    last two. `offset` is system minus monotonic time, ns.
    """
    if not len(commands) or not len(steps):
        return np.empty((0, 2), np.int64)
    stamps = commands[:, 0] - offset
    order = np.argsort(stamps)
    low = np.rint(steps[:, 1] * 1e9).astype(np.int64) - PAIRING_SLACK_NS
    high = np.rint(steps[:, 2] * 1e9).astype(np.int64) + PAIRING_SLACK_NS
    place = np.searchsorted(stamps[order], low)
    found = place < len(order)
    index = order[np.minimum(place, len(order) - 1)]
    found &= stamps[index] <= high
    sensors = np.rint(steps[found, 0] * 1e9).astype(np.int64)
    return np.stack([sensors, commands[index[found], 1]], axis=1)


def slots_lost(ticks: Ticks) -> int:
    """Return the slots between the first and the last command in which there was none."""
    done = ticks[ticks[:, 2] > 0]
    if not len(done):
        return 0
    slots = np.unique((done[:, 2] - done[0, 0]) // PERIOD_NS)
    return int(slots[-1] - slots[0] + 1 - len(slots))


def figures(session: Session) -> Mapping[str, float]:
    """Return every figure that this session can give; times in us unless named otherwise."""
    parts = Parts(session)
    seconds = (session.window[1] - session.window[0]) * 1e-9
    out: dict[str, float] = {
        'source_hz': _rate(parts.source['published'], session.window),
        **_percentiles('sensor_to_action', parts.sensor_to_action(), (50, 95, 99)),
        'lost_slots': float(sum(slots_lost(ticks) for ticks in parts.ticks)),
        **_percentiles('lateness', parts.lateness(), (50, 99.9)),
        'ticks': float(sum(len(ticks) for ticks in parts.ticks)),
    }
    if session.arm == FLOOR:
        return out | {'echo_cpu': 100 * session.cpu_s / seconds}
    collections = parts.collections()
    out |= {
        'cpu': 100 * session.cpu_s / seconds,
        **_percentiles('in_node', parts.in_node(), (50, 99)),
        'ready': parts.ready(),
        'first_action': parts.first_action(),
        'rss': session.peak_kb / 1024,
        'rss_slope': rss_slope(session.rss),
        'collections': float(len(collections)),
        'full_collections': float(np.count_nonzero(collections[:, 2] == 2)),
        'longest_collection': float(collections[:, 1].max(initial=0) * 1e-3),
    }
    if session.condition.swaps:
        out |= {'swaps_refused': float(parts.source['refused']), 'swap_gap': longest_gap(parts)}
    return out


def longest_gap(parts: Parts) -> float:
    """Return by how many ms the longest time between two commands exceeds the period."""
    gaps = [np.diff(t[t[:, 2] > 0, 2]).max(initial=0) for t in parts.ticks]
    return float((max(gaps) - PERIOD_NS) * 1e-6)


def rss_slope(rss: list[tuple[float, int]]) -> float:
    """Return the slope of resident memory over the second half of the samples, kB/min."""
    half = np.array(rss[len(rss) // 2 :], dtype=float)
    if len(half) < 3:
        return float('nan')
    return float(np.polyfit(half[:, 0] / 60.0, half[:, 1], 1)[0])


def samples(session: Session) -> dict[str, list[float]]:
    """Return the samples that are pooled over the pairs and drawn."""
    parts = Parts(session)
    drawn = {'sensor_to_action': parts.sensor_to_action(), 'lateness': parts.lateness()}
    if session.arm != FLOOR:
        drawn['in_node'] = parts.in_node()
    return {name: values.tolist() for name, values in drawn.items()}


def _floor_ticks(session: Session) -> Ticks:
    """Return the bare sleeper's ticks: slot k of its own grid, nothing done in it."""
    with np.load(session.folder / 'floor.npz') as parts:
        late = parts['lateness_ns'].astype(np.int64)
    count = min(len(late), int((session.window[1] - session.window[0]) // PERIOD_NS))
    late = late[len(late) - count :] if count else late[:0]
    # It notes lateness alone; a wake that is late by periods has skipped as many slots.
    slots = np.cumsum(1 + np.concatenate(([0], late[:-1] // PERIOD_NS)))
    scheduled = session.window[0] + (slots - 1) * PERIOD_NS
    return np.stack([scheduled, scheduled + late, scheduled + late], axis=1)


def _in(rows: NDArray[np.int64], window: tuple[int, int], column: int) -> NDArray[np.int64]:
    return rows[(rows[:, column] >= window[0]) & (rows[:, column] <= window[1])]


def _rate(times: NDArray[Any], window: tuple[int, int]) -> float:
    inside = np.count_nonzero((times >= window[0]) & (times <= window[1]))
    return float(inside / ((window[1] - window[0]) * 1e-9))


def _percentiles(
    name: str, values: NDArray[np.float64], wanted: tuple[float, ...]
) -> dict[str, float]:
    if not len(values):
        return {}
    return {
        f'{name}.p{p:g}': float(v)
        for p, v in zip(wanted, np.percentile(values, wanted), strict=True)
    }
