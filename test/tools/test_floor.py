import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from g1_policy_node.tools.floor import PERIOD_NS, live_counts, measure, read_live

MS = 1_000_000


class FakeMachine:
    """A clock that only sleeping moves; wake `i` comes `delays[i]` ns late."""

    def __init__(self, delays: list[int]) -> None:
        self.time = 5_000 * MS
        self.delays = list(delays)

    def now(self) -> int:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += round(seconds * 1e9) + self.delays.pop(0)

    def finished(self) -> bool:
        return not self.delays


@pytest.mark.parametrize(
    ('delays', 'slots', 'misses'),
    [
        ([0, 0, 0], 3, 0),
        ([19 * MS, 0, 0], 3, 0),
        ([20 * MS, 0, 0], 4, 1),
        ([0, 65 * MS, 0], 6, 3),
    ],
)
def test_a_slot_slept_through_is_missed_and_not_made_up_for(
    delays: list[int], slots: int, misses: int
) -> None:
    machine = FakeMachine(delays)
    lateness, counted, missed = measure(machine.finished, machine.now, machine.sleep)
    assert (counted, missed) == (slots, misses)
    assert lateness.tolist() == pytest.approx(delays, abs=1)


def test_lateness_does_not_move_the_grid() -> None:
    machine = FakeMachine([3 * MS] * 100)
    measure(machine.finished, machine.now, machine.sleep)
    assert machine.time - 5_000 * MS == pytest.approx(100 * PERIOD_NS + 3 * MS, abs=200)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_it_writes_its_parts_when_told_to_stop(tmp_path: Path, number: int) -> None:
    command = [sys.executable, '-m', 'g1_policy_node.tools.floor', str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_for_handler(process.pid)
        time.sleep(0.4)
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, '')
    figures = json.loads((tmp_path / 'floor.json').read_text())
    lateness = np.load(tmp_path / 'floor.npz')['lateness_ns']
    assert figures['slots'] == len(lateness) + figures['misses'] > 10
    assert figures['lateness_us']['max'] == pytest.approx(lateness.max() / 1e3)


def wait_for_handler(pid: int) -> None:
    """Until the process catches SIGTERM, by its mask in /proc; pytest's own time limit applies."""
    status = Path(f'/proc/{pid}/status')
    while not int(status.read_text().split('SigCgt:')[1].split()[0], 16) >> 14 & 1:
        time.sleep(0.01)


def test_without_a_folder_it_says_so_in_one_line() -> None:
    command = [sys.executable, '-m', 'g1_policy_node.tools.floor', '/nowhere']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == 'floor: needs one argument, the folder of a run\n'


def test_its_counts_can_be_read_while_it_measures(tmp_path: Path) -> None:
    assert read_live(tmp_path) is None
    machine, tell, seen = FakeMachine([0, 65 * MS, 0]), live_counts(tmp_path), []

    def told(slots: int, misses: int) -> None:
        tell(slots, misses)
        seen.append(read_live(tmp_path))

    measure(machine.finished, machine.now, machine.sleep, told)
    assert seen == [(1, 0), (5, 3), (6, 3)]
