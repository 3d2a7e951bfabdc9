"""`g1-policy report`: merges a run's parts and shows the figures."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from g1_policy_node import __version__
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.paths import data_root
from g1_policy_node.run_folder import RUNS
from g1_policy_node.tools.claims import Identity, Run, judge, load_claims, read_runs
from g1_policy_node.tools.manifest import manifest
from g1_policy_node.tools.parts import NO_PARTS
from g1_policy_node.tools.summary import STAGES, merge_run
from g1_policy_node.tools.trip_report import show_trip
from g1_policy_node.types import UserError

Summary = dict[str, Any]


def report(arguments: argparse.Namespace, console: Console | None = None) -> int:
    """Merge and show each run, the newest if none is named; 1 if one was not accepted.

    A file of the black box (a run's trips/*.npz) is shown by itself.
    """
    console = console or Console()
    if getattr(arguments, 'claims', False):
        return show_claims(arguments.runs, console)
    summaries = []
    for run_dir in arguments.runs or [newest_run(RUNS)]:
        if run_dir.suffix == '.npz':
            show_trip(run_dir, console)
            continue
        summaries.append(merge_run(run_dir))
        show(summaries[-1], run_dir, console)
    return 0 if all(summary['accepted'] for summary in summaries) else 1


def show_claims(folders: Sequence[Path], console: Console) -> int:
    """Print the claims table of this host from `folders` of runs; 1 if one is not accepted."""
    committed = data_root() / 'docs' / 'evidence'
    runs = read_runs(folders or [committed, RUNS])
    bundle = load_bundle(resolve_bundle('g1_walk'))
    host = Run('', {}, manifest(NO_PARTS)).host
    identity = Identity(host, bundle.weights_sha256, bundle.contract_sha256)
    rows = [judge(claim, runs, identity) for claim in load_claims()]
    table = Table('claim', 'configured', 'executed', 'observed', 'accepted', 'run', box=SIMPLE)
    for row in rows:
        table.add_row(*row[:6])
    console.print(f'evidence of {host}, version {__version__}', highlight=False)
    console.print(table)
    for text in sorted({text for row in rows for text in row.refused}):
        console.print(f'does not count: {text}', highlight=False, soft_wrap=True)
    return 0 if all(row.accepted == 'yes' for row in rows) else 1


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
            value = _number(criterion['value'], 4)
            limit = _number(criterion['limit'], 4)
            console.print(f'not met: {criterion["name"]} {value}, limit {limit}', highlight=False)
    for trip in sorted(run_dir.glob('trips/*.npz')):
        console.print(f'trip: {trip}', markup=False, highlight=False, soft_wrap=True)
    console.print('accepted' if summary['accepted'] else 'not accepted', style='bold', end='  ')
    console.print(str(run_dir), markup=False, highlight=False, soft_wrap=True)


def _walk_table(summary: Summary) -> Table:
    walk = summary['walk']
    table = Table('', 'vx m/s', 'vy m/s', 'wz rad/s', box=SIMPLE)
    for label, name in (
        ('command', 'command'),
        ('mean', 'mean_velocity'),
        ('rms error', 'rmse_velocity'),
    ):
        table.add_row(label, *(_number(value, 3) for value in walk.get(name) or [None] * 3))
    return table


def _walk_lines(summary: Summary) -> list[str]:
    walk = summary['walk']
    missed = f'{_number(summary["deadline_misses"])} of {_number(summary["slots"])} slots missed'
    floor = f'floor: {_number(summary["floor_misses"])} of {_number(summary["floor_slots"])}'
    return [
        f'{_number(walk.get("run_seconds"), 1)} s of RUN, {_number(walk.get("distance_m"), 2)} m, '
        f'drift {_number(walk.get("drift_m"), 2)} m, fell: {_number(walk["fell"])}',
        f'{_number(summary["rate_hz"], 2)} Hz on {_number(summary["device"])}, {missed} ({floor})',
    ]


def _latency_table(summary: Summary) -> Table:
    table = Table('ms in RUN', 'p50', 'p95', 'p99', 'max', box=SIMPLE)
    for stage in STAGES:
        figures = summary['latency_ms'][stage] or {}
        table.add_row(stage, *(_number(figures.get(p), 3) for p in ('p50', 'p95', 'p99', 'max')))
    return table


def _number(value: object, digits: int = 0) -> str:
    """Return a figure for people; a dash where it is not known."""
    if value is None:
        return '-'
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return f'{value:.{digits}f}' if isinstance(value, float) else str(value)
