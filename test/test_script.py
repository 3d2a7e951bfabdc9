from pathlib import Path

import pytest

from g1_policy_node.script import Player, constant, load_script
from g1_policy_node.types import UserError

SECOND = 1_000_000_000
START = 77 * SECOND


def written(folder: Path, text: str) -> Path:
    path = folder / 'script.yaml'
    path.write_text(text)
    return path


def running(player: Player) -> Player:
    player.hear('RUN: requested')
    player.velocity(START)
    return player


def test_each_step_holds_until_the_next(tmp_path: Path) -> None:
    script = load_script(
        written(tmp_path, '- {t: 0, vx: 0.5}\n- {t: 2, vy: 0.1}\n- {t: 3.5, wz: -1}\n')
    )
    assert script.velocity(0.0) == (0.5, 0.0, 0.0)
    assert script.velocity(1.999) == (0.5, 0.0, 0.0)
    assert script.velocity(2.0) == (0.0, 0.1, 0.0)
    assert script.velocity(1e6) == (0.0, 0.0, -1.0)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('[]', 'the first step must be at t: 0'),
        ('- {t: 1, vx: 0.5}', 'the first step must be at t: 0'),
        ('- {t: 0}\n- {t: 2}\n- {t: 2}', 't: 2 comes after t: 2'),
        ('- {t: 0, vz: 1}', 'unknown vz'),
        ('- {vx: 1}', 'missing t'),
        ('- {t: 0, vx: fast}', "expected float, got 'fast'"),
        ('- {t: 0, vx: .nan}', 'not finite'),
        ('vx: 0.5', 'expected a list'),
    ],
)
def test_a_script_that_is_none_is_refused_with_the_reason(
    tmp_path: Path, text: str, expected: str
) -> None:
    with pytest.raises(UserError, match=expected):
        load_script(written(tmp_path, text))


def test_the_command_is_zero_until_run() -> None:
    player = Player(constant(0.5, 0.0, 0.2), 0.0)
    assert player.velocity(START) == (0.0, 0.0, 0.0)
    player.hear('READY: waits for ~/run')
    assert player.velocity(START) == (0.0, 0.0, 0.0)
    assert running(player).velocity(START) == (0.5, 0.0, 0.2)


def test_run_counts_from_the_first_velocity_asked_for_in_it() -> None:
    player = Player(constant(0.5, 0.0, 0.0), 5.0)
    player.hear('RUN: auto_run')
    player.velocity(START)
    assert player.run_seconds == 0.0
    player.velocity(START + SECOND)
    assert player.run_seconds == 1.0


def test_it_is_over_exactly_after_its_seconds_of_run() -> None:
    player = running(Player(constant(0.5, 0.0, 0.0), 2.0))
    player.velocity(START + 2 * SECOND - 1)
    assert player.exit_code is None
    assert not player.completed
    player.velocity(START + 2 * SECOND)
    assert (player.exit_code, player.run_seconds, player.completed) == (0, 2.0, True)


def test_without_a_duration_only_a_stop_ends_it_and_that_is_its_end() -> None:
    player = running(Player(constant(0.5, 0.0, 0.0), 0.0))
    player.velocity(START + 100_000 * SECOND)
    assert player.exit_code is None
    assert player.completed


def test_damp_after_run_ends_it_at_once_with_the_routers_reason() -> None:
    player = running(Player(constant(0.5, 0.0, 0.0), 20.0))
    player.hear('HOLD: joint_states is stale')
    player.hear('DAMP: joint_states is stale')
    assert (player.exit_code, player.ended) == (1, 'DAMP: joint_states is stale')
    assert not player.completed


def test_damp_before_run_does_not_end_it() -> None:
    player = Player(constant(0.5, 0.0, 0.0), 20.0)
    player.hear('DAMP: e-stop requested')
    assert player.exit_code is None


def test_a_hold_does_not_stop_the_clock_but_a_restarted_router_does() -> None:
    player = running(Player(constant(0.5, 0.0, 0.0), 5.0))
    player.hear('HOLD: one sample late')
    player.hear('RUN: cause gone')
    player.velocity(START + 3 * SECOND)
    assert player.run_seconds == 3.0
    player.hear('INACTIVE: not configured')
    player.hear('RUN: auto_run')
    player.velocity(START + 10 * SECOND)
    player.velocity(START + 11 * SECOND)
    assert player.run_seconds == 1.0


def test_time_that_jumps_back_does_not_run_the_script_backwards() -> None:
    player = running(Player(constant(0.5, 0.0, 0.0), 5.0))
    assert player.velocity(START - SECOND) == (0.5, 0.0, 0.0)
    assert player.run_seconds == 0.0
