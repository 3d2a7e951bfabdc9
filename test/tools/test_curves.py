import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_parts import JOINTS, MS, READY_TICKS, RUN_TICKS, T0, TICK, merged, timing

from g1_policy_node.timing import MissCounter
from g1_policy_node.tools import curves as subject
from g1_policy_node.tools.curves import curves, gait_mean, histogram, missed_slots, thin
from g1_policy_node.tools.parts import read_parts
from g1_policy_node.tools.summary import stage_samples
from g1_policy_node.types import Mode


def drawn(folder: Path, change: Callable[[dict[str, Any]], object] = lambda _: None) -> Any:
    merged(folder, change)
    parts = read_parts(folder)
    return curves(parts, stage_samples(parts.timing, parts.track))


def unpacked(columns: dict[str, str]) -> dict[str, np.ndarray]:
    return {n: np.frombuffer(base64.b64decode(c), '<f4') for n, c in columns.items()}


def test_time_counts_from_run_on(tmp_path: Path) -> None:
    shown = drawn(tmp_path)
    assert shown['span'] == pytest.approx([-1.0, 8.0])
    assert [(m['mode'], m['reason']) for m in shown['modes']] == [
        ('READY', 'why READY'),
        ('RUN', 'why RUN'),
        ('INACTIVE', 'why INACTIVE'),
    ]
    assert [m['begin'] for m in shown['modes']] == pytest.approx([-1.0, 0.0, 8.0])
    assert [m['end'] for m in shown['modes']] == pytest.approx([0.0, 8.0, 8.0])
    assert unpacked(shown['velocity']['measured'])['t'][0] == 0.0


def test_what_is_drawn_is_what_was_recorded(tmp_path: Path) -> None:
    shown = drawn(tmp_path)
    measured = unpacked(shown['velocity']['measured'])
    for axis, value in (('vx', 0.55), ('vy', 0.02), ('wz', 0.07)):
        np.testing.assert_allclose(measured[axis], value, rtol=1e-6)
    command = unpacked(shown['velocity']['command'])
    assert np.isnan(command['vx'][:READY_TICKS]).all(), 'nobody is asked to walk before RUN'
    np.testing.assert_allclose(command['vx'][READY_TICKS:], 0.5)
    assert shown['joints']['names'] == list(JOINTS)
    joints = unpacked(shown['joints']['columns'])
    np.testing.assert_allclose(joints['target 1'] - joints['measured 1'], 0.1, atol=1e-6)
    late = unpacked(shown['lateness']['columns'])['late']
    np.testing.assert_allclose(late, 0.1, rtol=1e-6)


def test_joints_without_names_are_numbered(tmp_path: Path) -> None:
    shown = drawn(tmp_path, lambda given: given['sim.json'].pop('joint_names'))
    assert shown['joints']['names'] == ['joint 0', 'joint 1']


@pytest.mark.parametrize('dropped', [[], [60], [60, 61, 300], list(range(100, 130))])
def test_the_missed_slots_are_those_without_a_row(dropped: list[int]) -> None:
    whole = timing()
    keep = ~np.isin(whole['slot'], dropped)
    missed, period = missed_slots({n: c[keep] for n, c in whole.items()}, simulated=False)
    assert period == TICK
    assert missed.tolist() == [T0 + TICK * slot for slot in dropped]


def test_a_command_that_comes_in_a_later_slot_leaves_its_own_missed() -> None:
    rows = timing()
    rows['published'][70] += 25 * MS
    keep = np.ones(len(rows['slot']), bool)
    keep[71] = False
    rows = {name: column[keep] for name, column in rows.items()}
    assert missed_slots(rows, simulated=False)[0].tolist() == [T0 + TICK * 70]
    assert missed_slots(rows, simulated=True)[0].tolist() == [T0 + TICK * 71]


def test_missed_slots_are_as_many_as_the_nodes_counter_counts() -> None:
    """Random gaps, late commands and pauses, counted by both."""
    random = np.random.default_rng(4)
    rows = timing()
    keep = random.random(len(rows['slot'])) > 0.1
    rows = {name: column[keep] for name, column in rows.items()}
    rows['mode'] = np.where(random.random(len(rows['slot'])) > 0.05, rows['mode'], 1)
    rows['published'] = np.where(rows['mode'] == 1, 0, rows['published'])
    counter = MissCounter()
    waiting = list(Mode).index(Mode.WAITING)
    assert waiting == 1
    for slot, mode, published in zip(rows['slot'], rows['mode'], rows['published'], strict=True):
        if published:
            counter.published(int(slot))
        if mode == waiting:
            counter.not_due()
    assert counter.misses > 0
    assert len(missed_slots(rows, simulated=False)[0]) == counter.misses


def test_simulated_time_has_no_lateness(tmp_path: Path) -> None:
    shown = drawn(tmp_path, lambda given: given['sim.json'].update(lockstep=True))
    assert shown['lateness']['simulated']
    assert shown['lateness']['columns'] is None


def test_no_peak_is_lost_where_a_long_run_is_thinned() -> None:
    rows = 90_000
    values = np.zeros(rows)
    values[[12_345, 80_001]] = 7.0, -3.0
    values[100:400] = np.nan
    thinned = thin({'t': np.arange(rows), 'y': values})
    assert len(thinned['t']) == len(thinned['y']) == subject.POINTS
    assert np.nanmax(thinned['y']) == 7.0
    assert np.nanmin(thinned['y']) == -3.0
    assert np.isnan(thinned['y']).any(), 'a gap stays a gap'
    assert (np.diff(thinned['t']) > 0).all()


def test_the_mean_over_a_gait_period_takes_the_sway_away() -> None:
    t = np.arange(200)
    mean = gait_mean(0.5 + np.sin(2 * np.pi * t / 40), 40)
    known = np.isfinite(mean)
    np.testing.assert_allclose(mean[known], 0.5, atol=1e-12)
    assert known.sum() == 200 - 39
    assert np.isnan(gait_mean(np.ones(5), 40)).all()


def test_a_histogram_is_shares_over_decades() -> None:
    found = histogram(np.array([0.1, 0.1, 0.1, 2.0]))
    assert found is not None
    assert found['from'] == -1
    assert found['share'][0] == 0.75
    assert sum(found['share']) == pytest.approx(1.0)
    assert histogram(np.zeros(0)) is None


@pytest.mark.parametrize('names', [['node.json'], ['timing.npz'], ['sim.npz', 'sim.json']])
def test_what_is_missing_is_none(tmp_path: Path, names: list[str]) -> None:
    def drop(given: dict[str, Any]) -> None:
        for name in names:
            del given[name]

    shown = drawn(tmp_path, drop)
    assert bool(shown['modes']) == ('node.json' not in names)
    assert (shown['lateness'] is None) == ('timing.npz' in names)
    for name in ('velocity', 'joints'):
        assert (shown[name] is None) == ('sim.npz' in names)


def test_an_empty_run_has_nothing_to_draw(tmp_path: Path) -> None:
    def nothing(given: dict[str, Any]) -> None:
        for name in ('timing.npz', 'sim.npz'):
            given[name] = {column: np.array([]) for column in given[name]}
        given['node.json']['transitions'] = []

    shown = drawn(tmp_path, nothing)
    assert shown['span'] == [0.0, 1.0]
    assert shown['velocity'] is shown['joints'] is shown['lateness'] is None
    assert len(timing()['slot']) == READY_TICKS + RUN_TICKS
