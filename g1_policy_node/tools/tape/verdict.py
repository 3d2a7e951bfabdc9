"""The one sentence of a comparison, or why there is none."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000


class Paired(NamedTuple):
    """Median of the per-row difference (other - first), us, with its 95 % interval."""

    first: str
    other: str
    median_us: float
    low_us: float
    high_us: float

    @property
    def resolved(self) -> bool:
        """Whether the interval leaves no doubt about the sign."""
        return self.low_us > 0 or self.high_us < 0


def paired(
    first: str, other: str, spent: Mapping[str, NDArray[np.float64]], block: int, seed: int = 0
) -> Paired:
    """Compare two variants row by row; the interval resamples blocks of rows.

    Rows next to each other share the machine's mood, so that single rows would feign certainty.
    """
    differences = (spent[other] - spent[first]) * 1e6
    blocks = [differences[i : i + block] for i in range(0, len(differences), block)]
    rng = np.random.default_rng(seed)
    medians = [
        np.median(np.concatenate([blocks[j] for j in rng.integers(len(blocks), size=len(blocks))]))
        for _ in range(RESAMPLES)
    ]
    low, high = np.percentile(medians, (2.5, 97.5))
    return Paired(first, other, float(np.median(differences)), float(low), float(high))


def one_robot(
    pairs: Sequence[Paired], spent: Mapping[str, Mapping[str, Any]], budget_us: float
) -> tuple[str | None, str]:
    """Return the device for one robot, None if the measurement does not decide, and the reason.

    `spent` are the figures by variant at the walk's period. The tail has to agree with the pairs.
    """
    tail = {name: _tail(figures) for name, figures in spent.items()}
    best = min(tail, key=lambda name: tail[name])
    device = best.split()[0]
    if tail[best] > budget_us:
        return None, f'none meets {budget_us / 1e3:g} ms: the best tail is {tail[best]:.0f} us'
    for pair in pairs:
        if best not in (pair.first, pair.other):
            continue
        other = pair.other if best == pair.first else pair.first
        ahead = pair.median_us > 0 if best == pair.first else pair.median_us < 0
        if not pair.resolved:
            return None, (
                f'{best} and {other} differ by {abs(pair.median_us):.0f} us, less than the spread '
                f'({pair.low_us:.0f} to {pair.high_us:.0f} us)'
            )
        if not ahead:
            return None, f'{best} has the shorter tail, {other} the shorter median'
    return device, f'{best}: {tail[best]:.0f} us at the tail'


def _tail(figures: Mapping[str, Any]) -> float:
    """Return p99.9 in us where it is resolved, else p99: the mean decides nothing at 50 Hz."""
    return float(figures['p99'] if figures['p99.9'] is None else figures['p99.9'])


def crossover(cells: Sequence[Mapping[str, Any]]) -> tuple[int | None, str | None]:
    """Return the batch size from which a CUDA device is faster in all sizes measured, and which.

    Faster means clearly: its p95 is below the cpu's median, at any number of threads.
    """
    sizes = sorted({cell['batch'] for cell in cells})
    found: tuple[int | None, str | None] = (None, None)
    for size in reversed(sizes):
        at = [cell for cell in cells if cell['batch'] == size]
        cuda = [cell for cell in at if cell['device'] != 'cpu']
        cpu = [cell['total_us']['p50'] for cell in at if cell['device'] == 'cpu']
        if not (cuda and cpu):
            break
        best = min(cuda, key=lambda cell: cell['total_us']['p95'])
        if best['total_us']['p95'] >= min(cpu):
            break
        found = size, str(best['device'])
    return found


def sentence(
    devices: Sequence[str], device: str | None, reason: str, batch: tuple[int | None, str | None]
) -> str:
    """Return the sentence a person can act on."""
    start = 'on this host, for one robot at 50 Hz: '
    said = start + (f'{device} ({reason})' if device else f'no conclusion, as {reason}')
    if len(devices) == 1:
        return f'{said}; only {devices[0]} was measured'
    size, faster = batch
    if faster is None:
        return f'{said}; no batch measured is clearly faster on CUDA'
    return f'{said}; from {size} robots per batch: {faster}'
