"""`g1-policy tape compare`: the same observations on every device, and which one to use."""

import itertools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from g1_policy_node.actor import ACTION_TOLERANCE, load_actor
from g1_policy_node.bundle import Bundle
from g1_policy_node.devices import check_device_name
from g1_policy_node.prepared import ACT_BUDGET, versions
from g1_policy_node.run_folder import beginning, create_run_folder, write_json
from g1_policy_node.tools.manifest import manifest
from g1_policy_node.tools.parts import Parts
from g1_policy_node.tools.tape import machine, measure
from g1_policy_node.tools.tape.measure import Variant
from g1_policy_node.tools.tape.offline import Observations, check_policy, observations
from g1_policy_node.tools.tape.page import write_page
from g1_policy_node.tools.tape.tape import Tape, observation_hash
from g1_policy_node.tools.tape.verdict import crossover, one_robot, paired, sentence
from g1_policy_node.types import UserError

BLOCK = 25
"""Rows per turn: half a second at the walk's period."""

Progress = Callable[[str], None]


class Request(NamedTuple):
    """What is to be compared: `ticks` rows at the walk's period, all of the tape if it is less."""

    devices: tuple[str, ...]
    ticks: int
    run_dir: str


def compare(tape: Tape, bundle: Bundle, request: Request, say: Progress) -> dict[str, Any]:
    """Measure, write the run's folder, and return the summary. UserError for a missing device."""
    devices = tuple(dict.fromkeys(map(check_device_name, request.devices)))
    say('preparing the devices')
    variants = measure.router_variants(bundle, devices)
    held = observations(tape, bundle, load_actor(bundle.contract.network, bundle.weights, 'cpu'))
    rows = np.ascontiguousarray(held.rows[: request.ticks])
    if len(rows) < 2 * BLOCK:
        raise UserError(f'{tape.bag.path}: {len(rows)} observations; a comparison needs 50')
    plan = _plan(request)
    spent, at_period, while_paced = _paced(variants, rows, bundle.contract.step_dt, say)
    say('tight loop and parts')
    tight = {v.name: measure.figures(measure.tight(v.actor, rows)) for v in variants}
    parts = {v.name: measure.parts(v, rows) for v in variants}
    say('batches')
    cells = [cell for device in devices for cell in measure.batches(bundle, device, rows)]
    summary = {
        'kind': 'compare',
        **_conclusion(devices, variants, spent, at_period, cells, bundle.contract.step_dt),
        'devices': list(devices),
        'tape': str(tape.bag.path),
        'observations_sha256': observation_hash(rows),
        'ticks': len(rows),
        'reconstructed': held.reconstructed,
        'policy_differs': check_policy(tape, bundle),
        'at_period_us': at_period,
        'tight_us': tight,
        'parts_us': parts,
        'batches': cells,
        'actions': _differences(variants, held, len(rows)),
        'machine': {**while_paced, 'after': machine.state()},
        'not_measured': _not_measured(devices, _uneven(parts)),
        'weights_sha256': bundle.weights_sha256,
        'contract_sha256': bundle.contract_sha256,
    }
    _write(Path(plan['run_dir']), plan, bundle, summary, spent)
    return {**summary, 'run_dir': plan['run_dir']}


def _paced(
    variants: Sequence[Variant], rows: measure.Rows, period: float, say: Progress
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the seconds and their figures by variant at `period`, and the machine's state."""
    seconds = len(rows) * period * len(variants)
    say(f'{len(variants)} ways, {len(rows)} rows each at {1 / period:g} Hz: {seconds:.0f} s')
    before, during, used = machine.state(), [], machine.used()
    spent = measure.paced(variants, rows, period, BLOCK, lambda: during.append(os.getloadavg()[0]))
    state = {
        'before': before,
        'others_during': machine.busiest(used, machine.used()),
        'load_during': spread_of(during),
        'at_its_end': machine.state(),
    }
    return spent, {name: measure.figures(taken) for name, taken in spent.items()}, state


def _conclusion(
    devices: Sequence[str],
    variants: Sequence[Variant],
    spent: dict[str, Any],
    at_period: dict[str, Any],
    cells: Sequence[dict[str, Any]],
    period: float,
) -> dict[str, Any]:
    routers = [variant.name for variant in variants if variant.path != 'eager']
    pairs = [paired(a, b, spent, BLOCK) for a, b in itertools.combinations(routers, 2)]
    budget = period * ACT_BUDGET * 1e6
    chosen, reason = one_robot(pairs, {name: at_period[name] for name in routers}, budget)
    batch = crossover(cells)
    return {
        'sentence': sentence(devices, chosen, reason, batch),
        'device_for_one_robot': chosen,
        'cuda_from_batch': batch[0],
        'budget_us': budget,
        'paired': [{**pair._asdict(), 'resolved': pair.resolved} for pair in pairs],
    }


def spread_of(loads: Sequence[float]) -> dict[str, float]:
    """Return the least, median and largest one-minute load average of a measurement."""
    return {'min': min(loads), 'p50': float(np.median(loads)), 'max': max(loads)}


def _differences(variants: Sequence[Variant], held: Observations, count: int) -> dict[str, Any]:
    """Return largest and mean action difference, to the recording and between the variants."""
    rows = held.rows[:count]
    given = {variant.name: measure.actions(variant.actor, rows) for variant in variants}
    rest: list[tuple[str, str]] = list(itertools.combinations(given, 2))
    if held.actions is not None:
        given['recorded'] = held.actions[:count]
        rest = [*(('recorded', variant.name) for variant in variants), *rest]
    pairs = []
    for one, other in rest:
        apart = np.abs(given[one] - given[other])
        pairs.append({'one': one, 'other': other, 'max': apart.max(), 'mean': apart.mean()})
    worst = max((pair['max'] for pair in pairs), default=None)
    return {
        'tolerance': ACTION_TOLERANCE,
        'pairs': pairs,
        'worst': worst,
        'within': None if worst is None else bool(worst <= ACTION_TOLERANCE),
    }


def _uneven(parts: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return the variants whose parts do not add up to the whole, with their share of it."""
    shares = {name: measure.parts_share(figures) for name, figures in parts.items()}
    return {name: s for name, s in shares.items() if abs(s - 1.0) > measure.PARTS_TOLERANCE}


def _not_measured(devices: Sequence[str], uneven: dict[str, float]) -> list[str]:
    missing = [
        f'the parts of {name}: they add up to {share:.0%} of a whole pass'
        for name, share in uneven.items()
    ]
    if not any(device.startswith('cuda') for device in devices):
        missing.append('cuda: no CUDA device was asked for (--devices cpu,cuda:0)')
    if not measure.has_torch():
        missing.append('batches, threads and torch eager: torch is not installed')
    if machine.gpus() is None:
        missing.append('GPU clocks, throttling and other processes: no nvidia-smi here')
    return missing


def _plan(request: Request) -> dict[str, Any]:
    return {
        **beginning(sys.argv),
        'options': {'devices': list(request.devices), 'ticks': request.ticks},
        'run_dir': str(create_run_folder(request.run_dir, 'compare')),
    }


def _write(
    run_dir: Path,
    plan: dict[str, Any],
    bundle: Bundle,
    summary: dict[str, Any],
    spent: dict[str, Any],
) -> None:
    node = {
        'versions': versions(),
        'device': summary['devices'],
        'dtype': 'float32',
        'threads': list(measure.thread_counts()),
        'policy': str(bundle.path),
        'weights_sha256': bundle.weights_sha256,
        'contract_sha256': bundle.contract_sha256,
    }
    made = manifest(Parts(plan, node, None, None, None, None, None, ()))
    write_json(run_dir / 'summary.json', summary)
    write_json(run_dir / 'manifest.json', made)
    np.savez(run_dir / 'paced.npz', allow_pickle=False, **spent)
    write_page(run_dir / 'report.html', summary, made, spent)
