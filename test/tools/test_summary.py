from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_parts import MS, READY_TICKS, RUN_TICKS, merged, parts, transitions

from g1_policy_node.cli import run
from g1_policy_node.tools.summary import merge_run
from g1_policy_node.types import UserError


def unmet(summary: Any) -> list[str]:
    return [criterion['name'] for criterion in summary['criteria'] if not criterion['met']]


def test_a_good_walk_is_accepted_and_all_its_criteria_are_shown(tmp_path: Path) -> None:
    summary = merged(tmp_path)
    assert summary['accepted'] is True
    assert summary['missing'] == []
    shown = {c['name']: (c['value'], c['limit']) for c in summary['criteria']}
    assert shown == {
        'fell': (False, False),
        'vx_error': (pytest.approx(0.05), 0.12),
        'missed_share': (2 / 451, pytest.approx(0.006)),
        'run_seconds': (8.0, 8.0),
    }


def test_the_figures_are_those_of_the_motion(tmp_path: Path) -> None:
    walk = merged(tmp_path)['walk']
    assert walk['command'] == [0.5, 0.0, 0.1]
    assert walk['mean_velocity'] == pytest.approx([0.55, 0.02, 0.07])
    assert walk['rmse_velocity'] == pytest.approx([0.05, 0.02, 0.03])
    assert walk['drift_m'] == pytest.approx(0.02 * 5.0)
    assert walk['distance_m'] == pytest.approx(np.hypot(0.55, 0.02) * 8.0)
    assert walk['fell'] is False


def test_latencies_are_those_of_their_stages_in_ms(tmp_path: Path) -> None:
    latency = merged(tmp_path)['latency_ms']
    p50 = {stage: figures['p50'] for stage, figures in latency.items()}
    assert p50 == pytest.approx(
        {
            'sensor_age': 4.0,
            'observe': 1.0,
            'act': 0.5,
            'check': 0.2,
            'publish': 0.3,
            'transport': 0.3,
            'sensor_to_command': 4.0 + 2.0,
        }
    )
    assert latency['transport']['max'] == pytest.approx(0.4)


def test_only_ticks_in_run_and_stages_that_were_reached_count(tmp_path: Path) -> None:
    def spoil(given: dict[str, Any]) -> None:
        rows = given['timing.npz']
        rows['observed'][:READY_TICKS] += 500 * MS
        rows['published'][-1] = 0
        rows['joint_age'][-2] = -1

    latency = merged(tmp_path, spoil)['latency_ms']
    assert latency['observe']['max'] == pytest.approx(1.0)
    assert latency['publish']['max'] == pytest.approx(0.3)
    assert latency['sensor_age']['p50'] == latency['sensor_age']['max'] == pytest.approx(4.0)
    assert latency['sensor_to_command']['max'] == pytest.approx(6.0)


def test_the_rate_is_that_of_the_commands_and_a_skipped_slot_lowers_it(tmp_path: Path) -> None:
    assert merged(tmp_path)['rate_hz'] == pytest.approx(50.0)

    def skip(given: dict[str, Any]) -> None:
        keep = np.ones(READY_TICKS + RUN_TICKS, bool)
        keep[100:140] = False
        given['timing.npz'] = {n: c[keep] for n, c in given['timing.npz'].items()}

    assert merged(tmp_path, skip)['rate_hz'] == pytest.approx(50.0 * 360 / 400)


def test_motion_after_the_command_ended_is_left_out(tmp_path: Path) -> None:
    def stop_early(given: dict[str, Any]) -> None:
        given['cmd.json']['last_tick_ns'] = int(given['sim.npz']['tick_ns'][300])
        given['sim.npz']['lin_vel'][301:] = 0.0

    walk = merged(tmp_path, stop_early)['walk']
    assert walk['run_seconds'] == pytest.approx(6.0)
    assert walk['mean_velocity'][0] == pytest.approx(0.55)


def test_a_script_is_compared_with_the_command_of_each_moment(tmp_path: Path) -> None:
    def change(given: dict[str, Any]) -> None:
        given['timing.npz']['command'][READY_TICKS + 250 :, 0] = 0.6
        given['sim.npz']['lin_vel'][250:, 0] = 0.65

    walk = merged(tmp_path, change)['walk']
    assert walk['command'][0] == pytest.approx((100 * 0.5 + 151 * 0.6) / 251)
    assert walk['rmse_velocity'][0] == pytest.approx(0.05)


def too_slow(given: dict[str, Any]) -> None:
    given['sim.npz']['lin_vel'][:, 0] = 0.37


def too_late(given: dict[str, Any]) -> None:
    given['node.json']['deadline_misses'] = 3


def fallen(given: dict[str, Any]) -> None:
    given['sim.json'].update(fell=True, fell_at_s=9.0)


def let_go(given: dict[str, Any]) -> None:
    given['sim.json'].update(fell=True, fell_at_s=12.5)
    given['node.json']['transitions'] = transitions('RUN', 'HOLD', 'DAMP')


def cut_short(given: dict[str, Any]) -> None:
    given['cmd.json'].update(completed=False, run_seconds=4.0)


@pytest.mark.parametrize(
    ('change', 'criterion'),
    [
        (too_slow, 'vx_error'),
        (too_late, 'missed_share'),
        (fallen, 'fell'),
        (let_go, 'fell'),
        (cut_short, 'run_seconds'),
    ],
)
def test_each_criterion_alone_can_refuse_a_walk(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], criterion: str
) -> None:
    summary = merged(tmp_path, change)
    assert summary['accepted'] is False
    assert unmet(summary) == [criterion]


def test_more_misses_are_allowed_where_the_floor_missed_more(tmp_path: Path) -> None:
    def busy(given: dict[str, Any]) -> None:
        too_late(given)
        given['floor.json']['misses'] = 2

    assert merged(tmp_path, busy)['accepted'] is True


def test_falling_after_the_router_was_told_to_stop_is_no_part_of_the_walk(tmp_path: Path) -> None:
    def later(given: dict[str, Any]) -> None:
        given['sim.json'].update(fell=True, fell_at_s=12.5)

    assert merged(tmp_path, later)['accepted'] is True


@pytest.mark.parametrize('name', [name for name in parts() if name != 'bringup.json'])
def test_a_missing_part_is_named_never_guessed_and_not_accepted(tmp_path: Path, name: str) -> None:
    summary = merged(tmp_path, lambda given: given.pop(name))
    assert summary['missing'] == [name]
    assert summary['accepted'] is False


def test_without_the_ground_truth_there_are_no_figures_of_the_walk(tmp_path: Path) -> None:
    def no_simulator(given: dict[str, Any]) -> None:
        del given['sim.json'], given['sim.npz']
        given['bringup.json']['processes'].remove('mujoco_sim')

    summary = merged(tmp_path, no_simulator)
    assert summary['walk'] == {'fell': None}
    assert summary['latency_ms']['transport'] is None
    assert summary['missing'] == []
    assert unmet(summary) == ['fell', 'vx_error']


def test_a_broken_part_counts_as_missing_with_the_reason(tmp_path: Path) -> None:
    merged(tmp_path)
    (tmp_path / 'timing.npz').write_bytes(b'PK broken')
    (tmp_path / 'floor.json').write_text('{')
    missing = merge_run(tmp_path)['missing']
    assert [line.split(' (cannot be read: ')[0] for line in missing] == [
        'timing.npz',
        'floor.json',
    ]


@pytest.mark.parametrize('text', ['[1]', '5', 'null', '[' * 100_000, '\udcff'])
@pytest.mark.parametrize('name', ['bringup.json', 'node.json', 'sim.json', 'cmd.json'])
def test_a_part_that_is_no_map_counts_as_missing(tmp_path: Path, name: str, text: str) -> None:
    merged(tmp_path)
    (tmp_path / name).write_text(text, errors='surrogateescape')
    summary = merge_run(tmp_path)
    assert any(line.startswith(f'{name} (cannot be read: ') for line in summary['missing'])
    assert not summary['accepted']


def test_a_part_that_lies_about_its_shape_is_refused_by_the_report(tmp_path: Path, capsys) -> None:
    def other(given: dict[str, Any]) -> None:
        given['timing.npz'] = {name: np.zeros((2, 2)) for name in given['timing.npz']}

    with pytest.raises((ValueError, IndexError, TypeError)):
        merged(tmp_path, other)
    assert run(['report', str(tmp_path)]) == 2
    assert 'a part is not as it was written' in capsys.readouterr().err


def test_a_run_shorter_than_the_settling_time_has_no_mean(tmp_path: Path) -> None:
    def short(given: dict[str, Any]) -> None:
        given['sim.npz']['running'][100:] = False

    summary = merged(tmp_path, short)
    assert summary['walk']['mean_velocity'] is None
    assert summary['walk']['distance_m'] == pytest.approx(np.hypot(0.55, 0.02) * 99 * 0.02)
    assert unmet(summary) == ['vx_error']


def test_a_run_that_ended_before_the_first_row_is_summed_up_too(tmp_path: Path) -> None:
    def nothing(given: dict[str, Any]) -> None:
        for name in ('timing.npz', 'sim.npz'):
            given[name] = {column: np.array([]) for column in given[name]}
        given['node.json'].update(ticks=0, slots=0, deadline_misses=0)

    summary = merged(tmp_path, nothing)
    assert summary['walk']['run_seconds'] == 0.0
    assert summary['rate_hz'] is None
    assert summary['latency_ms']['act'] is None
    assert unmet(summary) == ['fell', 'vx_error', 'missed_share']


def test_a_robot_that_flew_apart_is_null_in_the_summary_and_not_accepted(tmp_path: Path) -> None:
    def explode(given: dict[str, Any]) -> None:
        given['sim.npz']['lin_vel'][-1] = np.nan

    summary = merged(tmp_path, explode)
    assert summary['walk']['mean_velocity'][:2] == [None, None]
    assert unmet(summary) == ['vx_error']


def test_a_folder_that_is_not_there_is_a_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match='no such folder'):
        merge_run(tmp_path / 'nowhere')


def test_the_table_of_a_merged_run_names_what_was_not_met(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    from g1_policy_node.tools.report import show

    merged(tmp_path, too_slow)
    show(merge_run(tmp_path), tmp_path, Console())
    shown = capsys.readouterr().out
    assert 'not met: vx_error 0.1300, limit 0.1200' in shown
    assert f'not accepted  {tmp_path}' in shown
