import json
import os
import time
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from bench.__main__ import Bench, planned_s, turns
from bench.arms import FLOOR, HONEST, OURS, STOCK, Condition
from bench.measure import match_steps, slots_lost
from bench.plan import FIGURES, Experiment, experiments
from bench.session import _cpu_s
from bench.summary import describe, verdict
from bench.table import IN_README, MARKS, PAGES, between_marks, markdown
from g1_policy_node.paths import find_data
from g1_policy_node.types import UserError

MS = 1_000_000


def test_arms_take_turns_forth_and_back() -> None:
    experiment = Experiment('x', ('a', 'b'), (1,), 1.0)
    assert ''.join(arm for _, _, arm in turns(experiment, 3)) == 'abbaab'


def test_a_ratio_is_taken_within_a_pair() -> None:
    figure = describe('cpu', {OURS: [5.0, 10.0], STOCK: [50.0, 70.0], HONEST: [10.0, None]})
    assert figure['ratios'][STOCK] == {'median': 8.5, 'range': [7.0, 10.0], 'each': [10.0, 7.0]}
    assert figure['ratios'][HONEST]['each'] == [2.0]
    assert figure['goal'] == {'against': STOCK, 'at_least': 6.0, 'met': 'yes'}


def test_more_is_better_for_rows_a_second() -> None:
    assert describe('replay', {OURS: [30.0], STOCK: [10.0]})['ratios'][STOCK]['median'] == 3.0


def test_pairs_that_disagree_on_who_is_better_resolve_nothing() -> None:
    assert verdict({'median': 3.0, 'range': [0.9, 9.0]}, 1.3) == 'not resolved'
    assert verdict({'median': 1.2, 'range': [1.1, 1.4]}, 1.3) == 'no'
    assert verdict({'median': 1.4, 'range': [1.1, 1.6]}, 1.3) == 'yes'


def test_lateness_is_held_against_the_floor_too() -> None:
    figure = describe('lateness.p50', {OURS: [110.0], STOCK: [300.0], FLOOR: [100.0]})
    assert figure['floor_goal']['is'] == pytest.approx(1.1)
    assert figure['floor_goal']['met'] == 'yes'


def test_lost_slots_are_counted_on_the_grid_and_not_by_commands() -> None:
    starts = np.array([0, 1, 2, 5, 6]) * 20 * MS
    ticks = np.stack([starts, starts + 1, starts + 2 * MS], axis=1)
    assert slots_lost(ticks) == 2
    ticks[1, 2] = 0  # A tick that published nothing.
    assert slots_lost(ticks) == 3


def test_a_step_is_matched_to_the_command_stamped_within_it() -> None:
    offset, second = 1000 * 10**9, 10**9
    commands = np.array([[offset + 1 * second, 111], [offset + 2 * second, 222]])
    steps = np.array([[900.0, 1.9999, 2.0001], [800.0, 2.9, 2.91], [700.0, 0.9999, 1.0001]])
    assert match_steps(commands, steps, offset).tolist() == [
        [900 * second, 222],
        [700 * second, 111],
    ]


def test_the_cpu_clock_of_another_process_is_the_kernels_own_account() -> None:
    assert _cpu_s(os.getpid()) == pytest.approx(time.process_time(), abs=0.5)


@pytest.mark.parametrize('only', ['lateness', 'tick', 'swap', 'rates', 'no_actor', 'history'])
def test_only_takes_experiments_and_figures(only: str) -> None:
    assert any(e.is_wanted([only]) for e in experiments(0, 10))


def test_every_figure_is_given_by_one_experiment() -> None:
    given = [name for e in experiments(10, 10) for name in e.figures()]
    assert sorted(given) == sorted(FIGURES)
    assert set(IN_README) <= set(FIGURES)


def test_a_run_takes_no_more_than_half_an_hour() -> None:
    assert sum(planned_s(e, 5, 8.0) for e in experiments(10, 8.0)) <= 30 * 60


def test_a_session_that_fails_takes_no_other_along(tmp_path, monkeypatch) -> None:
    def run(arm: str, *_: object) -> None:
        raise UserError(f'{arm} fell') if arm == STOCK else RuntimeError('a bug')

    monkeypatch.setattr('bench.__main__.run_session', run)
    bench = Bench(tmp_path, Namespace(pairs=1, seconds=1.0))
    bench.run([Experiment('no_actor', (OURS, STOCK), (Condition(),), 1.0)])
    assert bench.failures == [
        'no_actor, ours, pass 1: a bug',
        'no_actor, stock, pass 1: stock fell',
    ]
    saved = json.loads((tmp_path / 'summary.json').read_text())
    assert saved['failures'] == bench.failures


def test_an_option_that_the_host_refuses_is_told_once_and_is_no_failure(
    tmp_path, monkeypatch
) -> None:
    asked = []

    def run(arm: str, _: object, folder: Path, *__: object) -> None:
        asked.append(arm)
        folder.mkdir(parents=True)
        (folder / 'arm0.log').write_text('[ERROR] not configured: lock_memory: no (ulimit -l)')
        raise UserError('a process ended (2)')

    monkeypatch.setattr('bench.__main__.run_session', run)
    bench = Bench(tmp_path, Namespace(pairs=3, seconds=1.0))
    bench.run([Experiment('options', ('lock_memory',), (Condition(),), 1.0)])
    assert (asked, bench.failures) == (['lock_memory'], [])
    assert bench.refused == {'lock_memory': 'lock_memory: no (ulimit -l)'}


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(UserError, match='no place for the table'):
        between_marks('text', 'table')
    text = f'a\n{MARKS[0]}\nold\n{MARKS[1]}\nb'
    assert between_marks(text, 'new') == f'a\n{MARKS[0]}\nnew\n{MARKS[1]}\nb'


@pytest.mark.parametrize(('page', 'names'), PAGES.items())
def test_the_documented_figures_are_those_of_the_kept_run(page: str, names) -> None:
    kept = find_data('docs') / 'performance.json'
    table = markdown(json.loads(kept.read_text()), names) if kept.exists() else 'No run yet.'
    text = find_data(page).read_text()
    assert between_marks(text, table) == text
