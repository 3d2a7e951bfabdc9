"""A run's figures as text and as the tables of docs/performance.md and README.md."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.arms import FLOOR, HONEST, OPTIONS, OURS, STOCK, TITLES
from g1_policy_node.paths import data_root
from g1_policy_node.types import UserError

IN_README = (
    'no_actor.cpu',
    'cpu',
    'sensor_to_action.p50',
    'sensor_to_action.p99',
    'in_node.p50',
    'lateness.p50',
    'lost_slots',
    'ready',
    'first_action',
    'rss',
    'longest_collection',
    'swap.swap_gap',
    'replay',
)
MARKS = ('<!-- bench: made by `python -m bench --write-docs RUN` -->', '<!-- /bench -->')
PAGES = {'docs/performance.md': None, 'README.md': IN_README, 'README.ko.md': IN_README}
"""The pages with a table, and the figures in it (None: all)."""
COLUMNS = (OURS, STOCK, HONEST, FLOOR)
OPTIONS_CAPTION = 'How many times better ours is as it ships than with one thing changed'
Summary = Mapping[str, Any]


def number(figure: Summary, arm: str) -> str:
    """Return an arm's median with its unit's digits; empty where it was not measured."""
    there = figure['arms'].get(arm)
    if not there:
        return ''
    digits = figure['digits']
    if 'total' in figure:
        return f'{figure["total"][arm]:.0f}'
    return f'{there["median"]:.{digits}f}'


def ratio(figure: Summary, arm: str) -> str:
    """Return how many times better ours is than `arm`: median (lowest to highest pair)."""
    there = figure['ratios'].get(arm)
    if not there:
        return ''
    low, high = map(_times, there['range'])
    return f'{_times(there["median"])}x ({low} to {high})'


def _times(value: float) -> str:
    return f'{value:.0f}' if value >= 10 else f'{value:.1f}' if value >= 2 else f'{value:.2f}'


def goal(figure: Summary) -> str:
    """Return the goal and whether it is met; empty where there is none."""
    parts = []
    if wanted := figure.get('goal'):
        parts.append(f'{wanted["at_least"]:g}x: {wanted["met"]}')
    if floor := figure.get('floor_goal'):
        parts.append(f'{floor["is"]:.2f} of at most {floor["at_most"]:g} floors: {floor["met"]}')
    return '; '.join(parts)


def rows(summary: Summary, names: Sequence[str] | None = None) -> list[list[str]]:
    """Return a row for each figure: title, arms, ratios to both stock nodes, goal."""
    figures = summary['figures']
    shown = names or [name for name in figures if not name.startswith('options.')]
    chosen = [name for name in shown if name in figures]
    return [
        [
            f'{figures[n]["title"]}, {figures[n]["unit"]}',
            *(number(figures[n], arm) for arm in COLUMNS),
            ratio(figures[n], STOCK),
            ratio(figures[n], HONEST),
            goal(figures[n]),
        ]
        for n in chosen
    ]


HEADER = ['', *(TITLES[arm] for arm in COLUMNS), 'stock / ours', 'honest stock / ours', 'goal']


def option_rows(summary: Summary) -> list[list[str]]:
    """Return the options' table, its header first: how many times better ours is without it.

    Empty where options were not measured.
    """
    figures = {n: f for n, f in summary['figures'].items() if n.startswith('options.')}
    if not figures:
        return []
    refused = summary.get('refused', {})
    lines = [['ours, other than it ships', *(figure['title'] for figure in figures.values())]]
    for arm in OPTIONS:
        cells = [ratio(figure, arm) for figure in figures.values()]
        if arm in refused:
            cells = [f'refused by this host: {refused[arm]}', *cells[1:]]
        if any(cells):
            lines.append([arm, *cells])
    return lines


def text_table(summary: Summary) -> str:
    """Return both tables for a terminal, columns aligned."""
    tables = [compact([HEADER, *rows(summary)]), option_rows(summary)]
    return '\n\n'.join(_aligned(table) for table in tables if table)


def compact(lines: list[list[str]]) -> list[list[str]]:
    """Leave out the columns that are empty below the header."""
    kept = [i for i in range(len(lines[0])) if i == 0 or any(line[i] for line in lines[1:])]
    return [[line[i] for i in kept] for line in lines]


def _aligned(lines: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return '\n'.join(
        '  '.join(f'{cell:<{width}}' for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _pipes(lines: list[list[str]]) -> str:
    made = ['| ' + ' | '.join(line) + ' |' for line in lines]
    return '\n'.join([made[0], '|---' * len(lines[0]) + '|', *made[1:]])


def markdown(summary: Summary, names: Sequence[str] | None = None) -> str:
    """Return the table in Markdown, with what it was measured on."""
    parts = [_pipes(compact([HEADER, *rows(summary, names)]))]
    if names is None and (options := option_rows(summary)):
        parts.append(f'{OPTIONS_CAPTION}:\n\n{_pipes(options)}')
    m = summary['machine']
    commit = (m.get('git_commit') or 'unknown')[:10]
    parts.append(
        f'{m["cpu"]}, {m["cores"]} cores, Python {m["python"]}, commit {commit}, '
        f'{summary["pairs"]} pairs of {summary["seconds"]:g} s, '
        f'load before {m["load_before"][0]:.1f}.'
    )
    return '\n\n'.join(parts)


def between_marks(text: str, table: str) -> str:
    """Return `text` with what stands between MARKS replaced; UserError without the marks."""
    start, end = text.find(MARKS[0]), text.find(MARKS[1])
    if start < 0 or end < start:
        raise UserError(f'no place for the table: {MARKS[0]} ... {MARKS[1]} is missing')
    return f'{text[:start]}{MARKS[0]}\n{table}\n{text[end:]}'


def read_summary(run: Path) -> dict[str, Any]:
    """Read a run's summary.json."""
    try:
        summary: dict[str, Any] = json.loads((run / 'summary.json').read_text())
    except (OSError, ValueError) as error:
        raise UserError(f'{run}: no readable summary.json ({error})') from None
    return summary


def write_docs(run: Path) -> None:
    """Put the run's tables into docs/performance.md and README.md, and keep its summary."""
    summary = read_summary(run)
    root = data_root()
    for name, figures in PAGES.items():
        path = root / name
        path.write_text(between_marks(path.read_text(), markdown(summary, figures)))
    slim = {key: value for key, value in summary.items() if key != 'failures'}
    text = json.dumps(slim, indent=1) + '\n'
    (root / 'docs' / 'performance.json').write_text(text)
