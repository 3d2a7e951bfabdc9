"""The black box: the last ten seconds before every HOLD and DAMP, written off the tick."""

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from g1_policy_node.router import Tick
from g1_policy_node.types import ImuSample, Inputs, JointSample, Mode, Stamps

SECONDS = 10
MAX_TRIPS = 100
"""Files of a folder at most: a fault that comes and goes must not fill the disk."""
MAX_WAITING = 10
"""Trips that may wait for a disk that does not answer."""
CLOSE_S = 2.0
TRIPS = frozenset({Mode.HOLD, Mode.DAMP})
TIMES = ('scheduled', 'woken', 'taken', 'observed', 'acted', 'checked', 'published')


REQUEST, ERROR = 'request', 'error'
"""Layers of trips that no check asked for: a service or transition, and an error in a tick."""


class Row(NamedTuple):
    """One tick: its slot, the tick clock in ns, TIMES in monotonic ns, and what came and went."""

    slot: int
    now: int
    times: tuple[int, ...]
    inputs: Inputs
    tick: Tick


class Trip(NamedTuple):
    """One HOLD or DAMP: the layer that asked for it, and the rows before.

    `layer` is a fault's name, REQUEST or ERROR.
    """

    mode: Mode
    layer: str
    reason: str
    at_utc: str
    rows: list[Row]


class BlackBox:
    """Remembers every tick and writes a trip's last SECONDS to `folder`, on a thread of its own.

    `facts` is asked, off the tick, for what identifies the policy and for the counters. A file
    that cannot be written is told to `log`, once per trip, and the robot goes on.
    """

    def __init__(
        self,
        folder: Path,
        period_s: float,
        facts: Callable[[], Mapping[str, Any]],
        log: Callable[[str], None],
    ) -> None:
        self._folder, self._facts, self._log = folder, facts, log
        self._rows: deque[Row] = deque(maxlen=round(SECONDS / period_s))
        self._mode = Mode.INACTIVE
        self._trips: SimpleQueue[Trip | None] = SimpleQueue()
        self.trips = 0
        self._skipped = 0
        self._thread = threading.Thread(target=self._write_all, name='black box', daemon=True)
        self._thread.start()

    def add(self, row: Row) -> None:
        """Remember a tick: a reference, nothing is copied."""
        self._rows.append(row)

    def watch(self, mode: Mode, reason: str, failed: bool) -> None:
        """Note the mode after a tick, which may have `failed`; HOLD or DAMP anew is a trip."""
        before, self._mode = self._mode, mode
        if mode is before or mode not in TRIPS:
            return
        self.trips += 1
        if self._trips.qsize() >= MAX_WAITING:
            self._skipped += 1
            return
        rows = list(self._rows)
        fault = rows[-1].tick.fault if rows else None
        layer = ERROR if failed else fault.name if fault and fault.reason in reason else REQUEST
        utc = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
        self._trips.put(Trip(mode, layer, reason, utc, rows))

    def close(self) -> None:
        """Write what is waiting, and end the thread; a disk that hangs must not hang us."""
        self._trips.put(None)
        self._thread.join(CLOSE_S)

    def _write_all(self) -> None:
        last, full = 0, False
        while trip := self._trips.get():
            if skipped := self._skipped:
                self._skipped = 0
                self._log(f'black box: the disk was busy, {skipped} trips were not kept')
            try:
                numbers = _numbers(self._folder)
                if len(numbers) >= MAX_TRIPS:
                    if not full:
                        self._log(f'black box: {self._folder} is full at {MAX_TRIPS} trips')
                    full = True
                    continue
                last, full = max([last, *numbers]) + 1, False
                path = write_trip(self._folder, last, trip, self._facts())
            except OSError as error:
                self._log(f'black box: {trip.mode.value} cannot be written: {error}')
            else:
                self._log(f'black box: {path}')


def _numbers(folder: Path) -> list[int]:
    """Return the numbers in the names of a folder's trips, an earlier process's too."""
    found = (re.match(r'trip-(\d+)-', path.name) for path in folder.glob('trip-*.npz'))
    return [int(match[1]) for match in found if match]


def write_trip(folder: Path, number: int, trip: Trip, facts: Mapping[str, Any]) -> Path:
    """Write a trip as an npz of its own, whole or not at all; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f'trip-{number:03}-{trip.mode.value}-{trip.layer}.npz'
    about = {
        **facts,
        'mode': trip.mode.value,
        'layer': trip.layer,
        'reason': trip.reason,
        'at_utc': trip.at_utc,
        'ticks': len(trip.rows),
    }
    partial = path.with_suffix('.partial')
    try:
        with partial.open('wb') as file:
            np.savez(file, allow_pickle=False, about=json.dumps(about), **columns(trip.rows))
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    return partial.replace(path)


def columns(rows: list[Row]) -> dict[str, np.ndarray[Any, Any]]:
    """Return a trip's rows as arrays; what a tick did not reach is NaN in its row.

    Samples are as they came: the fields of joint_states are one after another, with the length
    of each row, since a wrong length may be the very fault.
    """
    joints = [row.inputs.joints for row in rows]
    imu = [row.inputs.imu for row in rows]
    ticks = [row.tick for row in rows]
    names = {sample.names: i for i, sample in enumerate(joints) if sample}
    layouts = {layout: i for i, layout in enumerate(names)}
    return {
        'slot': np.array([row.slot for row in rows], dtype=np.int64),
        'now': np.array([row.now for row in rows], dtype=np.int64),
        'times': _table((row.times for row in rows), len(TIMES)),
        'mode': np.array([tick.mode.value for tick in ticks], dtype='U8'),
        'verdict': np.array([tick.verdict.name for tick in ticks], dtype='U8'),
        'layer': np.array([t.fault.name if t.fault else '' for t in ticks], dtype='U32'),
        'gait': np.array([tick.gait for tick in ticks], dtype=np.int64),
        'command': _table(tick.command for tick in ticks),
        'observation': _table(tick.observation for tick in ticks),
        'action': _table(tick.action for tick in ticks),
        'target': _table(tick.target for tick in ticks),
        'joint_layouts': np.array([json.dumps(layout) for layout in layouts], dtype=str),
        'joint_layout': np.array([layouts[s.names] if s else -1 for s in joints], dtype=np.int64),
        **_ragged('joint_position', [s.position if s else None for s in joints]),
        **_ragged('joint_velocity', [s.velocity if s else None for s in joints]),
        'joint_stamps': _stamps(joints),
        'imu_quat_xyzw': _table((s.quat_xyzw if s else None for s in imu), 4),
        'imu_ang_vel': _table((s.ang_vel if s else None for s in imu), 3),
        'imu_lin_acc': _table((s.lin_acc if s else None for s in imu), 3),
        'imu_frame': np.array([s.frame_id if s else '' for s in imu], dtype=str),
        'imu_stamps': _stamps(imu),
    }


def _table(values: Iterable[Any], width: int = 0) -> np.ndarray[Any, Any]:
    rows = list(values)
    width = width or max((len(row) for row in rows if row is not None), default=0)
    empty = np.full(width, np.nan)
    full = np.array([empty if row is None else row for row in rows], dtype=np.float64)
    return full.reshape(len(rows), width)


def _ragged(name: str, values: list[Any]) -> dict[str, np.ndarray[Any, Any]]:
    there = [value for value in values if value is not None]
    return {
        name: np.concatenate(there) if there else np.empty(0),
        f'{name}_length': np.array([-1 if v is None else len(v) for v in values], dtype=np.int64),
    }


def _stamps(samples: list[JointSample | None] | list[ImuSample | None]) -> np.ndarray[Any, Any]:
    """Return the fields of Stamps of each sample (T, 5), -1 where there is none."""
    none = (-1,) * len(Stamps._fields)
    return np.array([s.stamps if s else none for s in samples], dtype=np.int64).reshape(-1, 5)
