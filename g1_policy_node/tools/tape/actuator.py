"""Actuator response: how long a joint's position lags behind its target, from a tape."""

from typing import Any

import numpy as np

from g1_policy_node.tools.tape.tape import Series, Tape, read_series, targets
from g1_policy_node.tools.tape.topics import JOINTS
from g1_policy_node.types import Array

GROUPS = ('hip', 'knee', 'ankle', 'waist', 'shoulder', 'elbow', 'wrist')
STEP_NS = 1_000_000
MAX_LAG_MS = 200
MIN_MOTION_RAD = 0.02
"""Standard deviation below which a joint says nothing about its lag."""

MIN_CORRELATION = 0.5


def response(tape: Tape) -> dict[str, Any]:
    """Return by joint group the median lag in ms and correlation; None where nothing moved.

    Times are receive times of one recorder, so transport to it cancels out. The target is held
    between commands, as the driver holds it.
    """
    lags = joint_lags(targets(tape), read_series(tape, JOINTS))
    groups: dict[str, Any] = {}
    for group in GROUPS:
        found = [lag for name, lag in lags.items() if group in name and lag is not None]
        groups[group] = found and {
            'lag_ms': float(np.median([lag for lag, _ in found])),
            'correlation': float(np.median([peak for _, peak in found])),
            'joints': len(found),
        }
        groups[group] = groups[group] or None
    legs = [groups[g]['lag_ms'] for g in ('hip', 'knee', 'ankle') if groups[g]]
    return {'groups': groups, 'legs_ms': float(np.median(legs)) if legs else None}


def joint_lags(target: Series, measured: Series) -> dict[str, tuple[float, float] | None]:
    """Return lag in ms and correlation of every joint that both series have."""
    start = max(target.received[0], measured.received[0])
    end = min(target.received[-1], measured.received[-1])
    grid = np.arange(start, end, STEP_NS)
    if len(grid) <= 4 * MAX_LAG_MS:
        return {}
    held = np.searchsorted(target.received, grid, side='right') - 1
    lags = {}
    for i, name in enumerate(target.names):
        if name not in measured.names:
            continue
        column = measured.value[:, measured.names.index(name)]
        position = np.interp(grid, measured.received, column)
        lags[name] = lag_ms(target.value[held, i], position)
    return lags


def lag_ms(target: Array, position: Array) -> tuple[float, float] | None:
    """Return the lag (ms) of best correlation, and it; None if unmoved or never alike.

    Both are sampled every ms.
    """
    if min(target.std(), position.std()) < MIN_MOTION_RAD:
        return None
    count = len(target) - MAX_LAG_MS
    still = target[:count]
    scores = np.array(
        [np.corrcoef(still, position[lag : lag + count])[0, 1] for lag in range(MAX_LAG_MS)]
    )
    best = int(np.argmax(scores))
    if scores[best] < MIN_CORRELATION or best == MAX_LAG_MS - 1:
        return None
    return float(best), float(scores[best])
