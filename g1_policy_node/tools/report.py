"""`g1-policy report`: merges a run's parts and shows the figures."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.progress import track
from rich.table import Table

from g1_policy_node.run_folder import RUNS
from g1_policy_node.tools.curves import curves
from g1_policy_node.tools.film import film
from g1_policy_node.tools.page import NAME, number, write_page
from g1_policy_node.tools.parts import NO_PARTS
from g1_policy_node.tools.record_page import (
    has_parts,
    read_figures,
    read_manifest,
    show_record,
)
from g1_policy_node.tools.summary import STAGES, merge_run
from g1_policy_node.tools.trip_report import show_trip
from g1_policy_node.types import UserError

Summary = dict[str, Any]


def report(arguments: argparse.Namespace, console: Console | None = None) -> int:
    """Merge and show each run, the newest if none is named; 1 if one was not accepted.

    A file of the black box (a run's trips/*.npz) is shown by itself, and a folder without parts
    of a walk, such as a training's, as it is: its figures are not made again.
    """
    console = console or Console()
    accepted = []
    for run_dir in arguments.runs or [newest_run(RUNS)]:
        if run_dir.suffix == '.npz':
            show_trip(run_dir, console)
            continue
        if not run_dir.is_dir():
            raise UserError(f'{run_dir}: no such folder')
        if not has_parts(run_dir):
            accepted.append(_show_kept(run_dir, console))
            continue
        summary = _merged(run_dir, console)
        show(summary, run_dir, console)
        accepted.append(summary['accepted'])
    return 0 if all(accepted) else 1


def _show_kept(run_dir: Path, console: Console) -> bool:
    """Show a folder that has figures but not the parts they were made of."""
    figures = read_figures(run_dir)
    if figures.get('kind') == 'evaluation':
        from g1_policy_node.tools.evaluation.table import show_kept as show_evaluation

        return show_evaluation(figures, run_dir, console)
    if 'walk' not in figures:
        return show_record(run_dir, figures, console)
    write_page(run_dir, figures, read_manifest(run_dir), curves(NO_PARTS, {}))
    show(dict(figures), run_dir, console)
    return bool(figures['accepted'])


def _merged(run_dir: Path, console: Console) -> Summary:
    """Merge a run; UserError where its parts, perhaps of other hands, are not what they seem."""
    try:
        return merge_run(run_dir, lambda parts: film(parts, _progress(console)))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        said = ' '.join(f'{type(error).__name__}: {error}'.split())
        raise UserError(f'{run_dir}: a part is not as it was written ({said:.200})') from error


def _progress(console: Console) -> Callable[[Sequence[int]], Iterable[int]]:
    return lambda rows: track(rows, 'rendering', console=console, transient=True)


def newest_run(folder: Path) -> Path:
    """Return the run in `folder` that started last, by name; UserError if there is none."""
    runs = sorted(path for path in folder.glob('*') if path.is_dir())
    if not runs:
        raise UserError(f'report: no run in {folder.resolve()}')
    return runs[-1]


def show(summary: Summary, run_dir: Path, console: Console) -> None:
    """Print the figures, and what kept the run from being accepted."""
    console.print(_walk_table(summary))
    for line in _walk_lines(summary):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(_latency_table(summary))
    whole = summary.get('end_to_end')
    if whole and whole.get('total_ms') is not None:
        shown = ' + '.join(f'{name} {value:.1f}' for name, value in whole['parts_ms'].items())
        console.print(
            f'end to end {whole["total_ms"]:.1f} ms (medians): {shown}',
            highlight=False,
            soft_wrap=True,
        )
    if not summary['accepted'] and summary['ended']:
        console.print(f'ended: {summary["ended"]}', markup=False, highlight=False)
    for name in summary['missing']:
        console.print(f'missing: {name}', markup=False)
    for criterion in summary['criteria']:
        if not criterion['met']:
            value = number(criterion['value'], 4)
            limit = number(criterion['limit'], 4)
            console.print(f'not met: {criterion["name"]} {value}, limit {limit}', highlight=False)
    for trip in sorted(run_dir.glob('trips/*.npz')):
        console.print(f'trip: {trip}', markup=False, highlight=False, soft_wrap=True)
    console.print('accepted' if summary['accepted'] else 'not accepted', style='bold', end='  ')
    console.print(str(run_dir / NAME), markup=False, highlight=False, soft_wrap=True)


def _walk_table(summary: Summary) -> Table:
    walk = summary['walk']
    table = Table('', 'vx m/s', 'vy m/s', 'wz rad/s', box=SIMPLE)
    for label, name in (
        ('command', 'command'),
        ('mean', 'mean_velocity'),
        ('rms error', 'rmse_velocity'),
    ):
        table.add_row(label, *(number(value, 3) for value in walk.get(name) or [None] * 3))
    return table


def _walk_lines(summary: Summary) -> list[str]:
    walk = summary['walk']
    missed = f'{number(summary["deadline_misses"])} of {number(summary["slots"])} slots missed'
    floor = f'floor: {number(summary["floor_misses"])} of {number(summary["floor_slots"])}'
    return [
        f'{number(walk.get("run_seconds"), 1)} s of RUN, {number(walk.get("distance_m"), 2)} m, '
        f'drift {number(walk.get("drift_m"), 2)} m, fell: {number(walk["fell"])}',
        f'{number(summary["rate_hz"], 2)} Hz on {number(summary["device"])}, {missed} ({floor})',
    ]


def _latency_table(summary: Summary) -> Table:
    table = Table('ms in RUN', 'p50', 'p95', 'p99', 'max', box=SIMPLE)
    for stage in STAGES:
        figures = summary['latency_ms'][stage] or {}
        table.add_row(stage, *(number(figures.get(p), 3) for p in ('p50', 'p95', 'p99', 'max')))
    return table
