"""The curves of a run's report: what report.js draws, thinned, with times in s from RUN on."""

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.tools.motion import GAIT_PERIOD, longest_stretch
from g1_policy_node.tools.parts import Part, Parts
from g1_policy_node.types import COMMANDING, Array, Mode

POINTS = 3000
"""Most points of a curve: more than a screen has columns, and a page of at most 2 MB."""

BINS_PER_DECADE = 16
SHORTEST_MS = 0.01
"""What is shorter is drawn as this."""

AXES = ('vx', 'vy', 'wz')

_MODES = list(Mode)
_COMMANDING = [index for index, mode in enumerate(_MODES) if mode in COMMANDING]
_WALKING = [_MODES.index(Mode.RUN), _MODES.index(Mode.HOLD)]


def curves(parts: Parts, samples: Mapping[str, Array]) -> dict[str, Any]:
    """Return everything the report draws, ready for JSON; None for what was not recorded.

    `samples` as summary.stage_samples returns them, ms by stage.
    """
    zero = first_run(parts)
    span = _span(parts, zero)
    return {
        'span': span,
        'modes': mode_spans(parts.node, zero, span),
        'velocity': _velocity(parts, zero),
        'joints': _joints(parts, zero),
        'latency': {name: histogram(values) for name, values in samples.items()},
        'lateness': _lateness(parts, zero),
    }


def first_run(parts: Parts) -> int:
    """Return when RUN began, ns on the tick clock; where it never did, the first tick."""
    for transition in (parts.node or {}).get('transitions') or []:
        if transition['mode'] == Mode.RUN.value:
            return int(transition['tick_ns'])
    if parts.timing is not None and len(parts.timing['tick_ns']):
        run = np.flatnonzero(np.isin(parts.timing['mode'], _WALKING))
        return int(parts.timing['tick_ns'][run[0] if len(run) else 0])
    if parts.track is not None and len(parts.track['tick_ns']):
        begin = longest_stretch(parts.track['running'].astype(bool)).start
        return int(parts.track['tick_ns'][begin])
    return 0


def mode_spans(node: Part | None, zero: int, span: list[float]) -> list[dict[str, Any]]:
    """Return the modes in order: mode, its first reason, and [begin, end] in s within `span`."""
    spans: list[dict[str, Any]] = []
    for transition in (node or {}).get('transitions') or []:
        begin = min(max((transition['tick_ns'] - zero) / 1e9, span[0]), span[1])
        if spans and spans[-1]['mode'] == transition['mode']:
            continue
        if spans:
            spans[-1]['end'] = begin
        entry = {'mode': transition['mode'], 'reason': transition['reason']}
        spans.append({**entry, 'begin': begin, 'end': span[1]})
    return spans


def missed_slots(timing: Part, simulated: bool) -> tuple[NDArray[np.int64], int]:
    """Return when each missed slot began (n,), ns on the tick clock, and a slot's length, ns.

    The rule of timing.MissCounter, replayed on the rows. Where time is `simulated` it stands
    still during a tick, so a command is published inside the tick's own slot.
    """
    slots, ticks = timing['slot'], timing['tick_ns']
    steps = np.diff(slots)
    if not (steps > 0).any():
        return np.zeros(0, np.int64), 0
    period = int(np.median(np.diff(ticks)[steps > 0] // steps[steps > 0]))
    late = np.zeros_like(slots) if simulated else timing['published'] - timing['scheduled']
    inside = slots + np.maximum(late // period, 0)
    missed: list[int] = []
    last: int | None = None
    commanding, published = np.isin(timing['mode'], _COMMANDING), timing['published'] > 0
    rows = zip(*(c.tolist() for c in (slots, ticks, inside, published, commanding)), strict=True)
    for slot, tick, came, commanded, due in rows:
        if commanded:
            gap = () if last is None else range(last + 1, came)
            missed += [tick + (skipped - slot) * period for skipped in gap]
            last = came
        if not due:
            last = None
    return np.array(missed, np.int64), period


def histogram(values: Array) -> dict[str, Any] | None:
    """Return the share of `values` (n,) per bin of equal width in log10, from 10**`from` on."""
    shown = values[np.isfinite(values)]
    if not len(shown):
        return None
    exponents = np.log10(np.maximum(shown, SHORTEST_MS))
    first = math.floor(exponents.min())
    index = np.floor((exponents - first) * BINS_PER_DECADE).astype(int)
    return {'from': first, 'per_decade': BINS_PER_DECADE, 'share': _shares(index)}


def _shares(index: NDArray[np.int64]) -> list[float]:
    counts = np.bincount(index)
    return [round(float(count), 5) for count in counts / counts.sum()]


def thin(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """Thin columns (T,) over the first one, time, to at most POINTS rows.

    Each bucket of rows leaves its smallest and largest value, so that no peak is lost.
    """
    named = {name: np.asarray(column, np.float32) for name, column in columns.items()}
    time, rows = next(iter(named)), len(next(iter(named.values())))
    if rows <= POINTS:
        return named
    size = -(-rows // (POINTS // 2))
    buckets = -(-rows // size)
    thinned = {}
    for name, column in named.items():
        part = np.pad(column, (0, buckets * size - rows), 'edge').reshape(buckets, size)
        if name == time:
            kept = part[:, [0, size // 2]]
        else:
            low = np.where(np.isnan(part), np.inf, part).argmin(1)
            high = np.where(np.isnan(part), -np.inf, part).argmax(1)
            kept = np.take_along_axis(part, np.sort([low, high], axis=0).T, 1)
        thinned[name] = kept.ravel()
    return thinned


def packed(columns: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Return thinned columns as base64 of little-endian float32, NaN where there is a gap."""
    return {
        name: base64.b64encode(column.astype('<f4').tobytes()).decode()
        for name, column in thin(columns).items()
    }


def gait_mean(values: Array, rows: int) -> Array:
    """Return the running mean of `values` (T,) over `rows` rows, NaN where those are not there."""
    mean = np.full(len(values), np.nan)
    if 0 < rows <= len(values):
        begin = rows // 2
        inner = np.convolve(values, np.full(rows, 1 / rows), 'valid')
        mean[begin : begin + len(inner)] = inner
    return mean


def _seconds(tick_ns: NDArray[np.int64], zero: int) -> Array:
    seconds: Array = (np.asarray(tick_ns, np.int64) - zero) / 1e9
    return seconds


def _span(parts: Parts, zero: int) -> list[float]:
    """Return where the time axis begins and ends, s."""
    ends = [
        _seconds(part['tick_ns'][[0, -1]], zero)
        for part in (parts.timing, parts.track)
        if part is not None and len(part['tick_ns'])
    ]
    if not ends:
        return [0.0, 1.0]
    begin, end = float(np.min(ends)), float(np.max(ends))
    return [begin, max(end, begin + 0.02)]


def _velocity(parts: Parts, zero: int) -> dict[str, Any] | None:
    if parts.track is None or not len(parts.track['tick_ns']):
        return None
    time = _seconds(parts.track['tick_ns'], zero)
    measured = np.column_stack([parts.track['lin_vel'][:, :2], parts.track['ang_vel'][:, 2]])
    rows = round(GAIT_PERIOD / float(np.median(np.diff(time)))) if len(time) > 1 else 0
    columns: dict[str, NDArray[Any]] = {'t': time}
    for axis, values in zip(AXES, measured.T, strict=True):
        columns |= {axis: values, f'{axis}_mean': gait_mean(values, rows)}
    command = None
    if parts.timing is not None and len(parts.timing['tick_ns']):
        walking = np.isin(parts.timing['mode'], _WALKING)
        asked = np.where(walking[:, None], parts.timing['command'], np.nan)
        named = dict(zip(AXES, asked.T, strict=True))
        command = packed({'t': _seconds(parts.timing['tick_ns'], zero), **named})
    return {'measured': packed(columns), 'command': command}


def _joints(parts: Parts, zero: int) -> dict[str, Any] | None:
    track = parts.track
    if track is None or not {'target', 'joint_pos'} <= track.keys() or track['target'].ndim != 2:
        return None
    count = track['target'].shape[1]
    names = (parts.simulator or {}).get('joint_names') or []
    if len(names) != count:
        names = [f'joint {i}' for i in range(count)]
    columns = {'t': _seconds(track['tick_ns'], zero)}
    columns |= {f'target {i}': track['target'][:, i] for i in range(count)}
    columns |= {f'measured {i}': track['joint_pos'][:, i] for i in range(count)}
    return {'names': list(names), 'columns': packed(columns)}


def _lateness(parts: Parts, zero: int) -> dict[str, Any] | None:
    timing = parts.timing
    if timing is None or not len(timing['tick_ns']):
        return None
    simulated = bool(
        (parts.node or {}).get('use_sim_time') or (parts.simulator or {}).get('lockstep')
    )
    due = np.isin(timing['mode'], _COMMANDING)
    late = np.where(due, (timing['woken'] - timing['scheduled']) / 1e6, np.nan)
    missed, period = missed_slots(timing, simulated)
    time = _seconds(timing['tick_ns'], zero)
    return {
        'simulated': simulated,
        'columns': None if simulated else packed({'t': time, 'late': late}),
        'missed': [round(float(t), 3) for t in _seconds(missed, zero)],
        'period_ms': period / 1e6,
    }
