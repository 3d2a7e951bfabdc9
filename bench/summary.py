"""Values of pairs to ratios with their range, and to summary.json."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.arms import FLOOR, OURS
from bench.plan import FIGURES, LATENESS_OVER_FLOOR, Figure

Values = Mapping[str, Sequence[float | None]]
"""By arm: one value a pair, None where the session failed."""


def describe(name: str, values: Values) -> dict[str, Any]:
    """Return a figure as summary.json has it: arms, pairs, ratios with their range, and goal."""
    figure = FIGURES[name]
    ratios = {
        arm: described
        for arm in values
        if arm != OURS and (described := _ratio(figure, values, arm)) is not None
    }
    out: dict[str, Any] = {
        'title': figure.title,
        'unit': figure.unit,
        'digits': figure.digits,
        'pairs': max((len(v) for v in values.values()), default=0),
        'arms': {arm: _spread(v) for arm, v in values.items() if _present(v)},
        'ratios': ratios,
    }
    if figure.goal and figure.against in ratios:
        out['goal'] = {'against': figure.against, 'at_least': figure.goal}
        out['goal']['met'] = verdict(ratios[figure.against], figure.goal)
    if name == 'lateness.p50' and FLOOR in ratios:
        over = 1 / ratios[FLOOR]['median']
        out['floor_goal'] = {'at_most': LATENESS_OVER_FLOOR, 'is': over}
        out['floor_goal']['met'] = 'yes' if over <= LATENESS_OVER_FLOOR else 'no'
    if name in ('lost_slots', 'full_collections'):
        out['total'] = {arm: float(np.sum(_present(v))) for arm, v in values.items()}
    return out


def verdict(ratio: Mapping[str, Any], goal: float) -> str:
    """Return yes, no, or 'not resolved' where the pairs disagree on who is better."""
    low, high = ratio['range']
    if low < 1.0 < high:
        return 'not resolved'
    return 'yes' if ratio['median'] >= goal else 'no'


def _ratio(figure: Figure, values: Values, arm: str) -> dict[str, Any] | None:
    """Return how many times better ours is than `arm`, pair by pair; None without a pair."""
    pairs = []
    for ours, other in zip(values.get(OURS, ()), values[arm], strict=False):
        if ours is None or other is None:
            continue
        above, below = (ours, other) if figure.higher_is_better else (other, ours)
        if below > 0 and above > 0 and math.isfinite(above / below):
            pairs.append(above / below)
    if not pairs:
        return None
    return {'median': float(np.median(pairs)), 'range': [min(pairs), max(pairs)], 'each': pairs}


def _spread(values: Sequence[float | None]) -> dict[str, Any]:
    there = _present(values)
    return {
        'median': float(np.median(there)),
        'range': [min(there), max(there)],
        'each': list(values),
    }


def _present(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def pooled(samples: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Any]:
    """Return the percentiles over every pair together: by figure, then by arm, in us."""
    out: dict[str, Any] = {}
    for name, arms in samples.items():
        for arm, values in arms.items():
            if len(values):
                wanted = (50.0, 95.0, 99.0, 99.9, 100.0)
                found = np.percentile(np.asarray(values), wanted)
                entry = {f'p{p:g}': float(v) for p, v in zip(wanted, found, strict=True)}
                out.setdefault(name, {})[arm] = {'n': len(values), **entry}
    return out
