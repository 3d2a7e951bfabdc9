"""`g1-policy report TRIP.npz`: which layer tripped, why, and what came before."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from g1_policy_node.types import UserError

ROWS = 12


def show_trip(path: Path, console: Console) -> None:
    """Print a black box file; UserError if it is none."""
    trip = load_trip(path)
    about = trip['about']
    console.print(f'{about["mode"]} by layer {about["layer"]}, {about["at_utc"]}', style='bold')
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
    """Return the arrays of a trip by name, and `about` as a dict; nothing is unpickled."""
    try:
        with np.load(path, allow_pickle=False) as file:
            trip: dict[str, Any] = {name: file[name] for name in file.files}
        trip['about'] = json.loads(str(trip['about']))
        if not {'mode', 'layer', 'reason', 'counters'} <= set(trip['about']):
            raise ValueError('not all of it is there')
    except OSError as error:
        raise UserError(f'{path}: {error.strerror or error}') from None
    except (KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f'{path}: not a file of the black box ({error})') from None
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
            str(trip['mode'][i]),
            str(trip['layer'][i]) or '-',
            str(trip['verdict'][i]),
            *ages,
            spent,
        )
    return table
