"""Random faults, one after another: memory flat, no unsafe command, every trip explained."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from faults.injector import FAULTS
from faults.line import Measurement
from faults.watch import MAX_MB_PER_MINUTE, mb_per_minute, unexplained

from g1_policy_node.tools.trip_report import load_trip

WARM_UP_S = 120.0
"""After it memory must be flat: it has every kind of fault, and the black box is full."""
TELL_S = 10.0


class Soak:
    """What was seen so far."""

    def __init__(self, line: Measurement, folder: Path) -> None:
        self.line = line
        self.trips_folder = folder / 'trips'
        self.began = time.monotonic()
        self.faults: Counter[str] = Counter()
        self.trips: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.memory: list[tuple[float, float]] = []  # minutes, MB

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began

    def episode(self, name: str, seed: int) -> None:
        """Do one fault."""
        ok, _, _ = self.line.episode(name, seed)
        self.faults[name] += 1
        if not ok:
            told = [text for _, text in self.line.line.told[-3:]]
            self.wrong.append(f'{name}: not {FAULTS[name].outcome}, but {told}')
        self.take_trips()
        self.memory.append((self.spent / 60, self.line.rss_mb()))

    def take_trips(self) -> None:
        """Explain every trip that is written, and remove it: the black box keeps a hundred."""
        for path in sorted(self.trips_folder.glob('*.npz')):
            trip = load_trip(path)
            layer, at = trip['about']['layer'], int(trip['now'][-1])
            self.trips[layer] += 1
            if why := unexplained(layer, at, self.line.episodes):
                self.wrong.append(f'{why} ({trip["about"]["reason"]})')
            path.unlink()

    def slope(self) -> float | None:
        """MB a minute after the warm-up; None where as much time again was not seen."""
        late = [pair for pair in self.memory if pair[0] >= WARM_UP_S / 60]
        enough = self.spent >= 2 * WARM_UP_S and len(late) > 1
        return round(mb_per_minute(*zip(*late, strict=True)), 3) if enough else None

    def told(self, seconds: float) -> str:
        trips, watch = self.trips.total(), self.line.line.watch
        return (
            f'{self.spent:4.0f} of {seconds:g} s: {self.faults.total()} faults, {trips} trips, '
            f'{len(self.wrong)} not explained or expected, {watch.commands} commands, '
            f'{len(watch.unsafe)} unsafe, {self.memory[-1][1]:.1f} MB'
        )


def soak(line: Measurement, folder: Path, seconds: float) -> dict[str, Any]:
    """Do random faults for `seconds`: every one of them, in another order each time."""
    rng = np.random.default_rng(0)
    seen, told = Soak(line, folder), 0.0
    waiting: list[str] = []
    while seen.spent < seconds:
        waiting = waiting or [str(name) for name in rng.permutation(list(FAULTS))]
        seen.episode(waiting.pop(), int(rng.integers(1 << 30)))
        if seen.spent - told >= TELL_S:
            told = seen.spent
            print(seen.told(seconds), flush=True)
    line.recover()
    time.sleep(1.0)  # the last trip may still be on its way to the disk
    seen.take_trips()
    slope = seen.slope()
    if slope is not None and slope > MAX_MB_PER_MINUTE:
        flat = f'memory grows by {slope:.2f} MB a minute, more than {MAX_MB_PER_MINUTE:.2f}'
        seen.wrong.append(flat)
    return {
        'soak_seconds': seconds,
        'faults_injected': dict(sorted(seen.faults.items())),
        'trips': dict(sorted(seen.trips.items())),
        'memory_mb': [round(m, 1) for _, m in seen.memory[:: max(1, len(seen.memory) // 20)]],
        'memory_mb_per_minute': slope,
        'memory_limit_mb_per_minute': round(MAX_MB_PER_MINUTE, 3),
        'soak_problems': seen.wrong,
    }
