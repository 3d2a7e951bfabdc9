"""Times actors on an observation tape: total and parts, at both cadences, for one row or many.

A pass begins with the observation on the host and ends with the action on the host: the clock
stops only once CUDA has been waited for.
"""

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.actor import Actor, NumpyActor
from g1_policy_node.bundle import Bundle
from g1_policy_node.tools.spread import spread
from g1_policy_node.types import UserError

WARM_UP = 50
BATCHES = (1, 4, 16, 64, 256, 4096)
TIGHT_CALLS = 2000
BATCH_SECONDS = 0.5
PARTS_TOLERANCE = 0.05
"""Share by which the parts of a pass may miss the whole; above it they are not accepted."""

RESOLVED_P999 = 1000
"""Calls below which a p99.9 would only be the maximum."""

Rows = NDArray[np.float32]


class Variant(NamedTuple):
    """A way to run the network: `path` is 'numpy', 'eager' or 'graph'; `actor` takes a row."""

    device: str
    path: str
    actor: Actor

    @property
    def name(self) -> str:
        """Return how tables call it."""
        return f'{self.device} {self.path}'


def router_variants(bundle: Bundle, devices: Sequence[str]) -> list[Variant]:
    """Return each device's own path first, then torch eager where torch is installed."""
    network, weights = bundle.contract.network, bundle.weights
    chosen = []
    for device in devices:
        if device == 'cpu':
            chosen.append(Variant(device, 'numpy', NumpyActor(network, weights)))
        else:
            chosen.append(Variant(device, 'graph', torch_actor(bundle, device, 'graph')))
    if has_torch():
        chosen += [Variant(d, 'eager', torch_actor(bundle, d, 'eager')) for d in devices]
    return chosen


def has_torch() -> bool:
    """Tell whether torch can be imported."""
    try:
        import g1_policy_node.torch_actor  # noqa: F401
    except UserError:
        return False
    return True


def torch_actor(bundle: Bundle, device: str, path: str, batch: int = 1) -> Any:
    """Return a torch actor for `batch` rows, eager or as a graph."""
    from g1_policy_node.torch_actor import GraphActor, TorchActor

    kind = GraphActor if path == 'graph' else TorchActor
    return kind(bundle.contract.network, bundle.weights, device, batch)


def figures(seconds: NDArray[np.float64]) -> dict[str, Any]:
    """Return the percentiles in us; p99.9 is None of too few calls."""
    us = seconds * 1e6
    resolved = len(us) >= RESOLVED_P999
    p999 = float(np.percentile(us, 99.9)) if resolved else None
    return {**(spread(us) or {}), 'p99.9': p999, 'mean': float(us.mean()), 'calls': len(us)}


def tight(actor: Actor, rows: Rows, calls: int = TIGHT_CALLS) -> NDArray[np.float64]:
    """Return the seconds of each of `calls` passes, one right after the other, once warm."""
    for i in range(min(WARM_UP, calls)):
        actor(rows[i % len(rows)])
    spent = np.empty(calls)
    for i in range(calls):
        row = rows[i % len(rows)]
        began = time.perf_counter_ns()
        actor(row)
        spent[i] = time.perf_counter_ns() - began
    return spent * 1e-9


def paced(
    variants: Sequence[Variant],
    rows: Rows,
    period: float,
    block: int,
    sample: Callable[[], None] = lambda: None,
) -> dict[str, NDArray[np.float64]]:
    """Return by variant the seconds of a pass over each row, one call every `period` s.

    The variants take turns by blocks of rows and in changing order, so that a busy spell of the
    machine meets them all; every variant sees every row. `sample` is called between blocks.
    """
    spent = {variant.name: np.empty(len(rows)) for variant in variants}
    for number, start in enumerate(range(0, len(rows), block)):
        turn = number % len(variants)
        for variant in (*variants[turn:], *variants[:turn]):
            for i in range(WARM_UP // 10):
                variant.actor(rows[i])
            due = time.perf_counter()
            for i in range(start, min(start + block, len(rows))):
                due += period
                time.sleep(max(0.0, due - time.perf_counter()))
                began = time.perf_counter_ns()
                variant.actor(rows[i])
                spent[variant.name][i] = (time.perf_counter_ns() - began) * 1e-9
            sample()
    return spent


def actions(actor: Actor, rows: Rows) -> NDArray[np.float64]:
    """Return the actions (T, N) of every row."""
    return np.array([actor(row).astype(np.float64) for row in rows])


def batches(bundle: Bundle, device: str, rows: Rows) -> Iterator[dict[str, Any]]:
    """Yield the figures of a tight loop of each batch size, path and number of threads."""
    if not has_torch():
        return
    import torch

    paths = ('eager',) if device == 'cpu' else ('eager', 'graph')
    # Threads do nothing for a pass that runs on a GPU.
    counts = thread_counts() if device == 'cpu' else (1,)
    for size in BATCHES:
        many = np.resize(rows, (size, rows.shape[1]))
        for path in paths:
            actor = torch_actor(bundle, device, path, size)
            for threads in counts:
                torch.set_num_threads(threads)
                seconds = _for_a_while(actor, many)
                torch.set_num_threads(1)
                yield {
                    'device': device,
                    'path': path,
                    'batch': size,
                    'threads': threads,
                    'total_us': figures(seconds),
                }


def thread_counts() -> tuple[int, ...]:
    """Return 1, 2 and all of the cores that this process may use."""
    cores = len(os.sched_getaffinity(0))
    return tuple(sorted({1, min(2, cores), cores}))


def _for_a_while(actor: Actor, many: Rows) -> NDArray[np.float64]:
    actor(many)
    began = time.perf_counter()
    actor(many)
    once = time.perf_counter() - began
    calls = max(10, min(TIGHT_CALLS, round(BATCH_SECONDS / once)))
    return tight(actor, many[None], calls)


def parts(variant: Variant, rows: Rows, calls: int = 500) -> dict[str, Any]:
    """Return p50 in us of whole passes and, from passes in between, of their parts.

    `wall_us` are by the host's clock, one after the other, and have to add up to `total`: writing
    the observation, then on the cpu each stage, on CUDA the launch and the wait for the action.
    `device_us` are the stages on CUDA by its events; None on the cpu.
    """
    if variant.path == 'numpy':
        whole = float(np.median(tight(variant.actor, rows, calls)) * 1e6)
        return {'total': whole, 'wall_us': {'forward': whole}, 'device_us': None}
    import torch

    actor: Any = variant.actor
    on_cuda = variant.device != 'cpu'
    steps = {'start': actor.start, 'wait': actor.wait} if on_cuda else actor.stages
    spans = np.empty((calls + WARM_UP, 2 + len(steps)))
    for i, span in enumerate(spans):
        row = rows[i % len(rows)]
        marks = [time.perf_counter_ns()]
        actor(row)
        marks.append(time.perf_counter_ns())
        with torch.inference_mode():  # part of a pass, as the actor enters it too
            actor.write(row)
            marks.append(time.perf_counter_ns())
            for step in steps.values():
                step()
                marks.append(time.perf_counter_ns())
        span[:] = [marks[1] - marks[0], *np.diff(marks[1:])]
    total, *wall = (float(ns) / 1e3 for ns in np.median(spans[WARM_UP:], axis=0))
    return {
        'total': total,
        'wall_us': dict(zip(('write', *steps), wall, strict=True)),
        'device_us': _device_parts(variant, rows, calls) if on_cuda else None,
    }


def parts_share(figures: Mapping[str, Any]) -> float:
    """Return what the parts by the host's clock add up to, as a share of the whole pass."""
    return float(sum(figures['wall_us'].values()) / figures['total'])


def _device_parts(variant: Variant, rows: Rows, calls: int) -> dict[str, float]:
    """Return p50 in us of each stage by CUDA events; of a graph, as three graphs of their own."""
    import torch

    from g1_policy_node.torch_actor import capture

    actor: Any = variant.actor
    stages = dict(actor.stages)
    if variant.path == 'graph':
        stages = {name: capture(actor, stage).replay for name, stage in stages.items()}
    event: Any = torch.cuda.Event
    marks = [event(enable_timing=True) for _ in range(len(stages) + 1)]
    rows_of: list[list[float]] = []
    with torch.inference_mode(), torch.cuda.stream(actor.stream):
        for i in range(calls + WARM_UP):
            actor.write(rows[i % len(rows)])
            marks[0].record()
            for mark, stage in zip(marks[1:], stages.values(), strict=True):
                stage()
                mark.record()
            actor.stream.synchronize()
            rows_of.append([a.elapsed_time(b) * 1e3 for a, b in itertools.pairwise(marks)])
    medians = np.median(np.array(rows_of[WARM_UP:]), axis=0)
    return dict(zip(stages, (float(m) for m in medians), strict=True))
