"""Every tick reaches the disk within a second, whatever becomes of the process or the disk."""

import errno
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from g1_policy_node import journal, timing
from g1_policy_node.journal import HEADER, RECORD, Journal, read_rows
from g1_policy_node.timing import INT_COLUMNS, Recorder


class Ticks(Recorder):
    def go_on(self, count: int) -> None:
        for slot in range(self.rows, self.rows + count):
            self.add((slot,) * len(INT_COLUMNS), np.full(3, slot * 0.5))


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def kept(ticks: Ticks, tmp_path: Path, monkeypatch, log):
    """Return a journal whose thread sleeps: the test appends by itself."""
    monkeypatch.setattr(journal, 'EVERY_S', 3600.0)
    kept = Journal(ticks, tmp_path / 'run' / 'timing-x.rows', log.append)
    yield kept
    kept.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def slots(path: Path) -> list[int]:
    with np.load(path, allow_pickle=False) as saved:
        assert set(saved.files) == set(RECORD.names)
        np.testing.assert_array_equal(saved['command'][:, 2], saved['slot'] * 0.5)
        return saved['slot'].tolist()


def test_rows_are_on_disk_before_the_process_ends(ticks, tmp_path, monkeypatch, log) -> None:
    monkeypatch.setattr(journal, 'EVERY_S', 0.001)
    path = tmp_path / 'timing-x.rows'
    running = Journal(ticks, path, log.append)
    ticks.go_on(5)
    until(lambda: running._kept == 5)
    assert read_rows(path)['slot'].tolist() == [0, 1, 2, 3, 4]
    running.close()
    assert path.exists()  # nothing saved them elsewhere


def test_half_a_row_at_the_end_is_left_out(ticks, kept, tmp_path: Path) -> None:
    ticks.go_on(3)
    kept._append()
    path = tmp_path / 'run' / 'timing-x.rows'
    path.write_bytes(path.read_bytes()[:-1])
    assert read_rows(path)['slot'].tolist() == [0, 1]
    path.write_bytes(HEADER)
    assert len(read_rows(path)) == 0


@pytest.mark.parametrize('raw', [b'', b'PK broken', HEADER[:-2], b'x' * 1000])
def test_what_is_no_journal_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / 'x.rows').write_bytes(raw)
    with pytest.raises(ValueError, match='not a journal of ticks'):
        read_rows(tmp_path / 'x.rows')


def test_timing_npz_has_what_is_on_disk_and_what_is_not_yet(ticks, kept, tmp_path, monkeypatch):
    target = tmp_path / 'run' / 'timing.npz'
    for count in (4, 3):
        ticks.go_on(count)
        kept._append()
        ticks.go_on(2)
        kept.save(target)
        assert slots(target) == list(range(ticks.rows))
    assert sorted(p.name for p in target.parent.iterdir()) == ['timing-x.rows', 'timing.npz']
    kept.close()
    assert [p.name for p in target.parent.iterdir()] == ['timing.npz']


def test_more_rows_than_memory_keeps_are_whole_on_disk(tmp_path, monkeypatch, log) -> None:
    monkeypatch.setattr(timing, 'ROWS', 8)
    monkeypatch.setattr(journal, 'EVERY_S', 3600.0)
    ticks = Ticks()
    kept = Journal(ticks, tmp_path / 'x.rows', log.append)
    for _ in range(6):
        ticks.go_on(7)
        kept._append()
    kept.save(tmp_path / 'timing.npz')
    assert slots(tmp_path / 'timing.npz') == list(range(42))
    kept.close()


def test_a_full_disk_is_told_once_and_loses_nothing_once_there_is_room(
    ticks, tmp_path, monkeypatch, log
) -> None:
    monkeypatch.setattr(journal, 'EVERY_S', 0.001)
    path, tries, full = tmp_path / 'x.rows', [], [True]
    opened = Path.open

    class Full:
        """Takes a part of what it is given, as a disk that has just filled up."""

        def __init__(self, file) -> None:
            self.file = file
            self.seek = file.seek

        def __enter__(self) -> 'Full':
            return self

        def __exit__(self, *_) -> None:
            self.file.close()

        def write(self, data: bytes) -> int:
            tries.append(len(data))
            if len(tries) % 2:
                raise OSError(errno.ENOSPC, 'No space left on device')
            return self.file.write(data[: len(data) // 2])

    monkeypatch.setattr(
        Path,
        'open',
        lambda p, *a, **k: Full(opened(p, *a, **k)) if full[0] else opened(p, *a, **k),
    )
    running = Journal(ticks, path, log.append)
    ticks.go_on(5)
    until(lambda: len(tries) >= 4)
    full[0] = False
    ticks.go_on(2)
    until(lambda: running._kept == 7)
    assert read_rows(path)['slot'].tolist() == list(range(7))
    assert len(log) == 1
    assert 'No space left on device' in log[0]
    running.close()


def test_a_folder_that_cannot_be_written_is_an_error_to_save(ticks, tmp_path, log) -> None:
    (tmp_path / 'run').write_text('a file, not a folder')
    kept = Journal(ticks, tmp_path / 'run' / 'x.rows', log.append)
    ticks.go_on(1)
    with pytest.raises(OSError, match=r'exists|directory'):
        kept.save(tmp_path / 'run' / 'timing.npz')
    kept._stopping.set()
    kept.join()
