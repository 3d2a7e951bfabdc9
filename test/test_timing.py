"""Slots are on a fixed grid, a late one is counted once and skipped, and rows are kept whole."""

import numpy as np
import pytest

from g1_policy_node import timing
from g1_policy_node.timing import INT_COLUMNS, MissCounter, Recorder, SlotGrid


def test_a_miss_does_not_move_the_grid() -> None:
    grid = SlotGrid(20, 1000)
    assert [grid.at(t) for t in (1000, 1019, 1020, 1055)] == [0, 0, 1, 2]
    assert grid.start(grid.at(1055) + 1) == 1060


def test_a_command_in_every_slot_is_no_miss() -> None:
    misses = MissCounter()
    for slot in range(5, 15):
        misses.published(slot)
    assert (misses.slots, misses.misses, misses.longest_gap) == (10, 0, 0)


def test_each_slot_without_a_command_is_one_miss() -> None:
    misses = MissCounter()
    for slot in (0, 1, 4, 5, 7):
        misses.published(slot)
    assert (misses.slots, misses.misses, misses.longest_gap) == (8, 3, 2)


def test_slots_in_which_nothing_is_due_do_not_count() -> None:
    misses = MissCounter()
    misses.published(0)
    misses.not_due()
    misses.published(50)
    misses.published(51)
    assert (misses.slots, misses.misses) == (3, 0)


def test_two_commands_in_one_slot_are_one_slot() -> None:
    misses = MissCounter()
    for slot in (0, 0, 1):
        misses.published(slot)
    assert (misses.slots, misses.misses) == (2, 0)


def row(i: int) -> tuple[int, ...]:
    return tuple(i * 100 + c for c in range(len(INT_COLUMNS)))


@pytest.mark.parametrize('count', [0, 1, 7, 8, 9, 30])
@pytest.mark.parametrize('first', [0, 5, 23, -1, -5, -99])
def test_the_newest_rows_are_kept_and_can_be_had_from_any_on(monkeypatch, count, first) -> None:
    monkeypatch.setattr(timing, 'ROWS', 8)
    recorder = Recorder()
    for i in range(count):
        recorder.add(row(i), np.full(3, float(i)))
    columns = recorder.columns(first)
    expected = list(range(count))[first:][-8:]
    np.testing.assert_array_equal(columns['slot'], [i * 100 for i in expected])
    np.testing.assert_array_equal(columns['gait'], [row(i)[-1] for i in expected])
    np.testing.assert_array_equal(
        columns['command'], [[i] * 3 for i in expected] or np.empty((0, 3))
    )


def test_what_was_had_does_not_change_with_the_next_ticks(monkeypatch) -> None:
    monkeypatch.setattr(timing, 'ROWS', 2)
    recorder = Recorder()
    recorder.add(row(0), np.zeros(3))
    columns = recorder.columns(0)
    for i in range(1, 4):
        recorder.add(row(i), np.zeros(3))
    assert columns['slot'].tolist() == [0]
