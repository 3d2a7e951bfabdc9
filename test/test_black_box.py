"""Every trip is written once, off the tick, and can be read."""

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from samples import DEFAULT, MS, imu, inputs, joints

from g1_policy_node.black_box import ERROR, MAX_TRIPS, REQUEST, BlackBox, Row, columns
from g1_policy_node.router import Tick
from g1_policy_node.tools.trip_report import load_trip, show_trip
from g1_policy_node.types import Fault, Inputs, Mode, UserError, Verdict

TICK = 20 * MS
STALE = Fault('stale', 'joint_states is stale')


def row(slot: int, fault: Fault | None = None, samples: Inputs | None = None) -> Row:
    tick = Tick(Mode.HOLD if fault else Mode.RUN, np.array([0.5, 0, 0]), slot, fault=fault)
    if not fault:
        tick.observation, tick.action = np.full(73, slot, np.float32), np.full(29, float(slot))
        tick.target = DEFAULT
    tick.verdict = Verdict.HOLD if fault else Verdict.PASS
    return Row(slot, slot * TICK, (1,) * 7, samples or inputs(slot * TICK), tick)


class Box(BlackBox):
    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        facts = {'policy': 'p', 'device': 'cpu', 'counters': {'stale': 3, 'tilt': 0}}
        super().__init__(folder, 0.02, lambda: facts, self.lines.append)


def trips(folder: Path) -> list[Path]:
    return sorted(folder.glob('*.npz'))


def test_a_trip_is_written_once_with_its_layer_reason_and_the_last_ten_seconds(tmp_path) -> None:
    box = Box(tmp_path)
    for slot in range(700):
        box.add(row(slot))
        box.watch(Mode.RUN, 'auto_run', False)
    for slot in range(700, 705):
        box.add(row(slot, STALE))
        box.watch(Mode.HOLD, STALE.reason, False)
    box.close()
    (path,) = trips(tmp_path)
    assert path.name == 'trip-001-HOLD-stale.npz'
    trip = load_trip(path)
    assert trip['about']['reason'] == STALE.reason
    assert trip['slot'].tolist() == list(range(201, 701))
    np.testing.assert_array_equal(trip['observation'][:-1, 0], np.arange(201, 700))
    assert np.all(np.isnan(trip['observation'][-1]))
    assert trip['layer'][-1] == 'stale'
    assert trip['joint_position'].shape == (500 * 29,)


def test_a_damp_after_a_hold_is_a_trip_of_its_own_and_a_return_to_run_is_none(tmp_path) -> None:
    box = Box(tmp_path)
    box.add(row(1, STALE))
    for mode in (Mode.RUN, Mode.HOLD, Mode.RUN, Mode.HOLD, Mode.DAMP, Mode.WAITING):
        box.watch(mode, f'held for too long: {STALE.reason}', False)
    box.close()
    assert [p.name.split('-')[2] for p in trips(tmp_path)] == ['HOLD', 'HOLD', 'DAMP']


@pytest.mark.parametrize(('failed', 'layer'), [(False, REQUEST), (True, ERROR)])
def test_a_request_and_an_error_are_layers_too(tmp_path, failed: bool, layer: str) -> None:
    box = Box(tmp_path)
    box.add(row(1))
    box.watch(Mode.DAMP, 'e-stop requested', failed)
    box.close()
    assert load_trip(trips(tmp_path)[0])['about']['layer'] == layer


def test_samples_are_written_as_they_came_also_of_a_wrong_length(tmp_path: Path) -> None:
    box = Box(tmp_path)
    odd = joints(0, names=('a', 'b'), position=np.array([1.0, np.nan, 3.0]))
    box.add(row(1, STALE, Inputs(odd, None, None, None)))
    box.add(row(2, STALE, Inputs(None, imu(0), None, None)))
    box.watch(Mode.HOLD, STALE.reason, False)
    box.close()
    trip = load_trip(trips(tmp_path)[0])
    assert trip['joint_position_length'].tolist() == [3, -1]
    np.testing.assert_array_equal(trip['joint_position'], [1.0, np.nan, 3.0])
    assert json.loads(str(trip['joint_layouts'][0])) == ['a', 'b']


def test_a_folder_that_cannot_be_written_is_told_and_nothing_else_happens(tmp_path) -> None:
    (tmp_path / 'file').write_text('')
    box = Box(tmp_path / 'file' / 'trips')
    box.add(row(1))
    box.watch(Mode.DAMP, 'tilted', False)
    box.close()
    assert len(box.lines) == 1
    assert 'cannot be written' in box.lines[0]


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path: Path, monkeypatch) -> None:
    def full(file, **_):
        file.write(b'some')
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(np, 'savez', full)
    box = Box(tmp_path)
    box.add(row(1))
    box.watch(Mode.DAMP, 'tilted', False)
    box.close()
    assert 'No space left' in box.lines[0]
    assert not list(tmp_path.iterdir())


def test_a_fault_that_comes_and_goes_does_not_fill_the_disk(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.add(row(1, STALE))
    for number in range(MAX_TRIPS + 20):
        box.watch(Mode.RUN, '', False)
        box.watch(Mode.HOLD, STALE.reason, False)
        while box._trips.qsize() and number < MAX_TRIPS:
            time.sleep(0.001)
    box.close()
    assert len(trips(tmp_path)) == MAX_TRIPS
    assert box.trips == MAX_TRIPS + 20
    assert sum(f'is full at {MAX_TRIPS} trips' in line for line in box.lines) == 1


def test_a_restarted_process_keeps_the_trips_of_the_one_before(tmp_path: Path) -> None:
    for _ in range(2):
        box = Box(tmp_path)
        box.add(row(1, STALE))
        box.watch(Mode.HOLD, STALE.reason, False)
        box.close()
    assert [p.name[:8] for p in trips(tmp_path)] == ['trip-001', 'trip-002']


def test_a_disk_that_hangs_does_not_hang_the_tick(tmp_path: Path, monkeypatch) -> None:
    stuck, free = threading.Event(), threading.Event()

    def hang(*_, **__):
        stuck.set()
        free.wait(10)

    monkeypatch.setattr(np, 'savez', hang)
    box = Box(tmp_path)
    box.add(row(1))
    box.watch(Mode.DAMP, 'tilted', False)
    assert stuck.wait(10)
    for slot in range(2, 50):
        box.add(row(slot))
        box.watch(Mode.HOLD if slot % 2 else Mode.RUN, 'x', False)
    free.set()
    box.close()
    assert any('the disk was busy, 14 trips were not kept' in line for line in box.lines)


def test_the_report_says_which_layer_tripped_and_why(tmp_path: Path, capsys) -> None:
    box = Box(tmp_path)
    box.add(row(1))
    box.add(row(2, STALE))
    box.watch(Mode.HOLD, STALE.reason, False)
    box.close()
    show_trip(trips(tmp_path)[0], Console(width=100))
    shown = capsys.readouterr().out
    assert 'HOLD by layer stale' in shown
    assert STALE.reason in shown
    assert 'counted: stale 3' in shown


@pytest.mark.parametrize('content', [b'', b'PK', b'nonsense' * 100])
def test_a_file_that_is_no_trip_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / 'trip.npz'
    path.write_bytes(content)
    with pytest.raises(UserError, match=r'trip\.npz: not an npz file of plain arrays'):
        load_trip(path)


ABOUT = {
    **dict.fromkeys(('mode', 'layer', 'reason', 'at_utc', 'policy', 'device'), 'x'),
    'ticks': 1,
    'counters': {},
}
COLUMNS = columns([row(1, STALE)])


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        ({'about': '[1, 2]'}, 'list indices'),
        ({'about': '[' * 100_000}, 'recursion'),
        ({'about': json.dumps({'mode': 'HOLD'})}, 'layer'),
        ({'about': json.dumps({**ABOUT, 'counters': [1]})}, 'about.counters not as written'),
        ({'about': json.dumps({**ABOUT, 'mode': 5})}, 'about.mode not as written'),
        ({'now': np.zeros(3, np.int64)}, 'mode, layer, verdict, times'),
        ({'now': np.int64(3)}, 'unsized'),
        ({'times': np.zeros((1, 7), 'U3')}, 'times not as written'),
        ({'joint_stamps': np.zeros((1, 2), np.int64)}, 'joint_stamps not as written'),
        ({'verdict': None}, 'verdict'),
    ],
)
def test_a_trip_of_other_hands_is_refused_in_one_line(tmp_path: Path, change, says: str) -> None:
    path = tmp_path / 'trip.npz'
    given = {'about': json.dumps(ABOUT), **COLUMNS, **change}
    np.savez(path, **{name: value for name, value in given.items() if value is not None})
    with pytest.raises(UserError, match=r'trip\.npz: not a file of the black box') as refused:
        load_trip(path)
    assert says in str(refused.value)
    assert '\n' not in str(refused.value)


def test_words_in_a_trip_are_shown_as_they_are(tmp_path: Path, capsys) -> None:
    path = tmp_path / 'trip.npz'
    about = {**ABOUT, 'mode': '[/red]', 'reason': '[bold]', 'policy': '[/]'}
    np.savez(path, about=json.dumps(about), **{**COLUMNS, 'layer': np.array(['[/x]'])})
    show_trip(path, Console(width=100))
    shown = capsys.readouterr().out
    assert all(word in shown for word in ('[/red]', '[bold]', '[/]', '[/x]'))


def test_a_trip_before_the_first_tick_is_whole_too(tmp_path: Path) -> None:
    box = Box(tmp_path)
    box.watch(Mode.DAMP, 'e-stop requested', False)
    box.close()
    assert len(load_trip(trips(tmp_path)[0])['now']) == 0


def test_a_pickle_in_a_trip_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / 'trip.npz'
    np.savez(path, about=np.array([print], dtype=object))
    with pytest.raises(UserError, match='not an npz file of plain arrays'):
        load_trip(path)
