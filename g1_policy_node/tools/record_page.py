"""Reports of what is no walk: a training, a rehearsal.

Such a folder has its figures already: they are shown as they are, and never written again.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from g1_policy_node.run_folder import PLAN
from g1_policy_node.tools.page import NAME, render, write_html
from g1_policy_node.tools.parts import FILES
from g1_policy_node.types import UserError

REHEARSAL, SUMMARY, MANIFEST = 'rehearsal.json', 'summary.json', 'manifest.json'
_PARTS = {PLAN, *(name for names in FILES.values() for name in names)}

Figures = Mapping[str, Any]


class Record(NamedTuple):
    """What a page says: one sentence, whether it is good news, more sentences, and a table."""

    headline: str
    good: bool
    story: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def has_parts(run_dir: Path) -> bool:
    """Return whether processes of a walk left their parts here."""
    return any((run_dir / name).exists() for name in _PARTS)


def show_record(run_dir: Path, figures: Figures, console: Console) -> bool:
    """Write and tell what a run that is no walk did; return whether it ended well."""
    record = record_of(figures)
    if record is None:
        said = str(figures.get('sentence') or figures.get('kind') or 'a run')
        console.print(said, style='bold', markup=False, highlight=False, soft_wrap=True)
    else:
        _write(run_dir, figures, record)
        console.print(record.headline, style='bold')
        for line in record.story:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        table = Table(*record.columns, box=SIMPLE)
        for row in record.rows:
            table.add_row(*row)
        console.print(table)
    _say_where(run_dir, console)
    return record is None or record.good


def record_of(figures: Figures) -> Record | None:
    """Return what a rehearsal or a training did, in words; None for another kind."""
    if 'trials' in figures:
        return _rehearsal(figures)
    return _training(figures) if figures.get('kind') == 'train' else None


def _rehearsal(figures: Figures) -> Record:
    trials, good = figures['trials'], bool(figures['accepted'])
    right = sum(bool(trial['right']) for trial in trials)
    return Record(
        f'{right} of {len(trials)} kills ended as they should.',
        good,
        (
            "The real robot's processes ran against a simulated robot, and each was killed while "
            'it walked.',
            f'The motors have to damp within {figures["limit_s"]:g} s; without a source of '
            'commands the robot has to stand.',
        ),
        ('killed', 'walked at', 'then', 'as it should be'),
        tuple(_trial(trial) for trial in trials),
    )


def _trial(trial: Figures) -> tuple[str, ...]:
    speed = '-' if trial['speed'] is None else f'{trial["speed"]:.2f} m/s'
    damped = trial['damped_s']
    then = 'did not damp' if damped is None else f'damped after {damped * 1e3:.0f} ms'
    if damped is None and trial['right']:
        then = 'stands'
    return trial['victim'], speed, trial['problem'] or then, 'yes' if trial['right'] else 'no'


def _training(figures: Figures) -> Record:
    done = figures.get('status') == 'done'
    steps, seconds = figures.get('environment_steps'), figures.get('wall_time_s')
    how = ''
    if steps and seconds:
        how = f': {steps / 1e6:.1f} million steps in {seconds / 60:.1f} minutes'
    ended = 'The training finished' if done else f'The training ended as {figures.get("status")}'
    shown = tuple(
        (name, f'{value:.6g}' if isinstance(value, float) else str(value))
        for name, value in figures.items()
        if name not in ('kind', 'status')
    )
    return Record(
        f'{ended}{how}.',
        done,
        ('Whether the policy walks is for walks with it to say, not for its training.',),
        ('figure', 'value'),
        shown,
    )


def read_figures(run_dir: Path) -> Figures:
    """Return the figures that a run left; UserError if there are none."""
    for name in (REHEARSAL, SUMMARY):
        if (run_dir / name).is_file():
            figures: Figures = json.loads((run_dir / name).read_text())
            return figures
    raise UserError(f'{run_dir}: no run, neither its parts nor {SUMMARY} are there')


def read_manifest(run_dir: Path) -> Figures:
    """Return the manifest that a run left, empty if there is none."""
    path = run_dir / MANIFEST
    manifest: Figures = json.loads(path.read_text()) if path.is_file() else {}
    return manifest


def _write(run_dir: Path, figures: Figures, record: Record) -> None:
    manifest = read_manifest(run_dir) or {'command_line': figures.get('command_line')}
    pictures = [path.read_bytes() for path in sorted(run_dir.glob('*.png'))]
    html = render(
        'record.html',
        name=run_dir.name,
        record=record,
        pictures=pictures,
        manifest_text=json.dumps(manifest, indent=2),
        figures_text=json.dumps(figures, indent=2),
    )
    write_html(run_dir, html)


def _say_where(run_dir: Path, console: Console) -> None:
    for path in (run_dir / NAME, *sorted(run_dir.glob('*/bringup.json'))):
        if path.name == PLAN:
            line = f'its walk: g1-policy report {path.parent}'
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        elif path.is_file():
            console.print(str(path), markup=False, highlight=False, soft_wrap=True)
