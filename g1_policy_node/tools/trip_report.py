"""`g1-policy report TRIP.npz`: which layer tripped, why, and what came before."""

import json
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from g1_policy_node.arrays import read_arrays
from g1_policy_node.black_box import TIMES
from g1_policy_node.types import Stamps, UserError

ROWS = 12
MAX_TRIP_BYTES = 100_000_000
"""Ten seconds take 2 MB."""
_ABOUT = {
    **dict.fromkeys(('mode', 'layer', 'reason', 'at_utc', 'policy', 'device'), str),
    'ticks': int,
    'counters': dict,
}
_COLUMNS: dict[str, tuple[str, tuple[int, ...]]] = {
    'now': ('i', ()),
    **dict.fromkeys(('mode', 'layer', 'verdict'), ('U', ())),
    'times': ('f', (len(TIMES),)),
    **dict.fromkeys(('joint_stamps', 'imu_stamps'), ('i', (len(Stamps._fields),))),
}
"""What is shown of a trip: kind and shape of a row."""


def show_trip(path: Path, console: Console) -> None:
    """Print a black box file; UserError if it is none."""
    trip = load_trip(path)
    about = trip['about']
    head = f'{about["mode"]} by layer {about["layer"]}, {about["at_utc"]}'
    console.print(head, style='bold', markup=False)
    console.print(f'{about["reason"]}', markup=False, highlight=False, soft_wrap=True)
    console.print(_table(trip))
    counted = {name: n for name, n in about['counters'].items() if n}
    lines = [
        f'{about["ticks"]} ticks before it; policy {about["policy"]} on {about["device"]}',
        'counted: ' + (', '.join(f'{k} {v}' for k, v in sorted(counted.items())) or 'nothing'),
        str(path),
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def load_trip(path: Path) -> dict[str, Any]:
    """Return the arrays of a trip by name, and `about` as a dict; UserError if it is none."""
    trip: dict[str, Any] = dict(read_arrays(path, MAX_TRIP_BYTES))
    try:
        trip['about'] = about = json.loads(str(trip['about']))
        wrong = [f'about.{n}' for n, kind in _ABOUT.items() if not isinstance(about[n], kind)]
        rows = len(trip['now'])
        for name, (kinds, shape) in _COLUMNS.items():
            array = trip[name]
            if array.dtype.kind not in kinds or array.shape != (rows, *shape):
                wrong.append(name)
        if wrong:
            raise ValueError(f'{", ".join(wrong)} not as written')
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise UserError(f'{path}: not a file of the black box ({error!s:.200})') from None
    return trip


def list_trips(run_dir: Path, zero: int) -> list[dict[str, Any]]:
    """Return a run's trips in order: file, mode, layer, reason, and s from `zero`.

    `zero`: ns of the tick clock. Of a file that cannot be read only the reason is known.
    """
    found = []
    for path in sorted(run_dir.glob('trips/*.npz')):
        entry: dict[str, Any] = dict.fromkeys(('seconds', 'mode', 'layer'))
        entry['file'] = f'{path.parent.name}/{path.name}'
        try:
            trip = load_trip(path)
        except UserError as error:
            entry['reason'] = str(error)
        else:
            entry |= {name: trip['about'][name] for name in ('mode', 'layer', 'reason')}
            if len(trip['now']):
                entry['seconds'] = float((trip['now'][-1] - zero) * 1e-9)
        found.append(entry)
    return found


def _table(trip: dict[str, Any]) -> Table:
    """The last ROWS ticks, time counted from the trip."""
    table = Table(
        's', 'mode', 'layer', 'verdict', 'joint age ms', 'imu age ms', 'tick ms', box=SIMPLE
    )
    now = trip['now']
    for i in range(max(0, len(now) - ROWS), len(now)):
        ages = [
            '-' if stamps[i][2] < 0 else f'{(now[i] - stamps[i][2]) * 1e-6:.1f}'
            for stamps in (trip['joint_stamps'], trip['imu_stamps'])
        ]
        woken, published = trip['times'][i][1], trip['times'][i][6]
        spent = f'{(published - woken) * 1e-6:.2f}' if published else '-'
        table.add_row(
            f'{(now[i] - now[-1]) * 1e-9:.2f}',
            *(escape(str(trip[name][i])) or '-' for name in ('mode', 'layer', 'verdict')),
            *ages,
            spent,
        )
    return table
