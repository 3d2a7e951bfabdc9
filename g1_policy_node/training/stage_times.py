"""How long the stages of an iteration take on the device, and what measuring them costs."""

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

STAGES = ('environment', 'inference', 'update')
WARM_UP = 2
"""Iterations left out of the figures: kernels are compiled and graphs captured in them."""


class StageTimes:
    """Times every second iteration, so that the others tell what timing costs.

    With CUDA, events are recorded on the stream and read after the iteration: nothing waits in
    between. Where `enabled` is False nothing at all is recorded.
    """

    def __init__(self, device: str, enabled: bool) -> None:
        self._enabled = enabled
        self._cuda = torch.device(device).type == 'cuda'
        self._open: list[tuple[str, Any, Any]] = []
        self._timing = False
        self._seen = 0
        self._stages: dict[str, list[float]] = defaultdict(list)
        self._timed: list[float] = []
        self._untimed: list[float] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what runs inside as a part of stage `name`."""
        if not self._timing:
            yield
            return
        begin = self._mark()
        yield
        self._open.append((name, begin, self._mark()))

    @contextmanager
    def iteration(self) -> Iterator[None]:
        """Surround one iteration; an update ends by reading its losses, so this is its length."""
        self._timing = self._enabled and self._seen >= WARM_UP and self._seen % 2 == 0
        began = time.perf_counter()
        yield
        if self._timing:
            self._read_marks()
        if self._enabled and self._seen >= WARM_UP:
            lengths = self._timed if self._timing else self._untimed
            lengths.append((time.perf_counter() - began) * 1e3)
        self._seen += 1

    def report(self) -> dict[str, Any] | None:
        """Return ms per iteration by stage, and what timing adds; None where it was off."""
        if not self._timed or not self._untimed:
            return None
        timed, untimed = _spread(self._timed), _spread(self._untimed)
        return {
            'unit': 'ms per iteration',
            'clock': 'CUDA events' if self._cuda else 'perf_counter',
            'stages': {name: _spread(values) for name, values in self._stages.items()},
            'iteration_timed': timed,
            'iteration_untimed': untimed,
            'cost': {
                'mean': timed['mean'] - untimed['mean'],
                'standard_error': (timed['error'] ** 2 + untimed['error'] ** 2) ** 0.5,
            },
        }

    def _mark(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _read_marks(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()
        sums: dict[str, float] = defaultdict(float)
        for name, begin, end in self._open:
            sums[name] += begin.elapsed_time(end) if self._cuda else (end - begin) * 1e3
        for name, value in sums.items():
            self._stages[name].append(value)
        self._open.clear()


def _spread(values: list[float]) -> dict[str, float]:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {
        'mean': statistics.fmean(values),
        'median': statistics.median(values),
        'error': deviation / len(values) ** 0.5,
        'count': len(values),
    }
