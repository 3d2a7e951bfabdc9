"""A live run as a block of text for a terminal of 80 columns."""

import textwrap
from collections.abc import Mapping

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from g1_policy_node.diagnostics import PERCENTS
from g1_policy_node.modes import MEANINGS
from g1_policy_node.tools.monitor import Snapshot, Velocity
from g1_policy_node.types import Mode

_STYLES = {'RUN': 'bold green', 'WAITING': 'yellow', 'HOLD': 'bold yellow', 'DAMP': 'bold red'}
_ROWS = (
    'lateness',
    'sensor_age',
    'observe',
    'act',
    'check',
    'publish',
    'sensor_to_command',
)
_UNITS = ('vx m/s', 'vy m/s', 'wz rad/s')
_DASH = '-'
_WIDTH, _BESIDE = 79, 29
"""Columns of the whole, and of what is beside the stages."""


def dashboard(snapshot: Snapshot, floor: tuple[int, int] | None) -> RenderableType:
    """Return everything a person watches; `floor` is its slots and misses so far.

    What was not heard is a dash.
    """
    tables = Table.grid(padding=(0, 1))
    beside = Group(_velocities(snapshot), _meaning(snapshot.mode))
    tables.add_row(_stages(snapshot.figures), beside)
    return Group(
        _headline(snapshot), tables, _slots(snapshot.figures, floor), *_below(snapshot.figures)
    )


def _headline(snapshot: Snapshot) -> Text:
    """Return mode and reason as two lines, whatever their length, so that the rest stays put."""
    mode = snapshot.mode or 'no mode heard yet'
    line = f'{mode}: {snapshot.reason}' if snapshot.reason else mode
    said = textwrap.wrap(line, _WIDTH, max_lines=2, placeholder=' …')
    text = Text('\n'.join([*said, ''][:2]))
    text.stylize(_STYLES.get(mode, 'bold'), 0, len(mode))
    return text


def _meaning(mode: str) -> Text:
    """Return what the mode means, for who has not seen it before."""
    meaning = f'{mode}: {MEANINGS[Mode(mode)]}' if mode else ''
    lines = textwrap.wrap(meaning, _BESIDE)
    return Text('\n'.join(f' {line}' for line in lines), style='dim')


def _stages(figures: Mapping[str, str]) -> Table:
    table = Table('ms, last 5 s', box=SIMPLE, pad_edge=False)
    for percent in PERCENTS:
        table.add_column(f'p{percent}', justify='right', min_width=6)
    for stage in _ROWS:
        table.add_row(stage, *(_ms(figures, f'{stage}_ms.p{p}') for p in PERCENTS))
    return table


def _ms(figures: Mapping[str, str], name: str) -> str:
    return f'{float(figures[name]):.2f}' if name in figures else _DASH


def _velocities(snapshot: Snapshot) -> Table:
    table = Table('', box=SIMPLE, pad_edge=False)
    table.add_column('command', justify='right')
    table.add_column('measured', justify='right', min_width=8)
    rows = zip(_UNITS, _three(snapshot.command), _three(snapshot.velocity), strict=True)
    for unit, command, measured in rows:
        table.add_row(unit, command, measured)
    return table


def _three(velocity: Velocity | None) -> tuple[str, ...]:
    if velocity is None:
        return (_DASH,) * 3
    # Adding zero makes -0.0 a 0.0.
    return tuple(f'{round(value, 2) + 0.0:+.2f}' for value in velocity)


def _slots(figures: Mapping[str, str], floor: tuple[int, int] | None) -> Text:
    rate, misses = figures.get('rate_hz', _DASH), figures.get('deadline_misses', _DASH)
    beside = f'{floor[1]} of {floor[0]}' if floor else _DASH
    missed = f'missed {misses} of {figures.get("slots", _DASH)} slots'
    floors = f'floor (only sleeps): {beside}'
    return Text(f'{rate} Hz   {missed}   {floors}', no_wrap=True, overflow='ellipsis')


def _below(figures: Mapping[str, str]) -> list[Text]:
    """Return the safety counters that have counted something, the device and the hashes."""
    counts = {
        key.removeprefix('count.'): value
        for key, value in figures.items()
        if key.startswith('count.') and value != '0'
    }
    safety = '  '.join(f'{name} {count}' for name, count in counts.items()) or 'nothing to report'
    hashes = '  '.join(
        f'{name} {figures.get(f"{name}_sha256", _DASH)[:16]}' for name in ('weights', 'contract')
    )
    return [
        Text(f'safety: {safety if figures else _DASH}', overflow='fold'),
        Text(f'device {figures.get("device", _DASH)}   {hashes}', style='dim', no_wrap=True),
        Text('Ctrl-C ends the walk', style='dim'),
    ]
