import pytest

pytest.importorskip('rclpy')

from rich.console import Console

from g1_policy_node.tools.dashboard import dashboard
from g1_policy_node.tools.monitor import Snapshot
from g1_policy_node.types import Mode

FIGURES = {
    'rate_hz': '49.999',
    'deadline_misses': '7',
    'slots': '100523',
    'device': 'cuda:0',
    'weights_sha256': '0123456789abcdef' * 4,
    'contract_sha256': 'fedcba9876543210' * 4,
    'count.tilt': '0',
    'count.command_stale': '3',
    **{f'sensor_to_command_ms.p{p}': f'1{p}.123' for p in (50, 95, 99)},
}
RUN = Snapshot('RUN', 'requested', (0.534, -0.001, 0.02), (0.5, 0.0, -0.4), FIGURES)


def lines(snapshot: Snapshot, floor: tuple[int, int] | None) -> list[str]:
    console = Console(width=80, color_system=None)
    with console.capture() as shown:
        console.print(dashboard(snapshot, floor))
    return shown.get().splitlines()


def test_everything_a_person_watches_is_there_in_80_columns_and_24_lines() -> None:
    shown = lines(RUN, (100600, 5))
    assert len(shown) <= 24
    assert all(len(line) <= 80 for line in shown)
    text = '\n'.join(shown)
    for part in (
        'sensor_to_command',
        'RUN: requested',
        'RUN: the policy moves the',
        'vx m/s       +0.50      +0.53',
        '150.12',
        '195.12',
        '199.12',
    ):
        assert part in text
    assert '49.999 Hz   missed 7 of 100523 slots   floor (only sleeps): 5 of 100600' in text
    assert 'safety: command_stale 3' in text
    assert 'device cuda:0   weights 0123456789abcdef  contract fedcba9876543210' in text


def test_a_velocity_of_nearly_nothing_has_no_minus() -> None:
    assert '-0.00' not in '\n'.join(lines(RUN, None))


def test_what_was_not_heard_is_a_dash_and_not_a_number() -> None:
    text = '\n'.join(lines(Snapshot(), None))
    assert 'no mode heard yet' in text
    assert '- Hz   missed - of - slots   floor (only sleeps): -' in text
    assert 'safety: -' in text


def test_a_long_reason_takes_two_lines_at_most_and_does_not_move_the_rest() -> None:
    reason = 'held for too long: joint_states is stale: no good sample for more than 60 ms, and '
    shown = lines(RUN._replace(mode='DAMP', reason=reason * 3), None)
    assert ' '.join(shown[:2]).startswith(f'DAMP: {reason[:76]}')
    assert shown[1].endswith(' …')
    assert len(shown) == len(lines(RUN, None))


def test_every_mode_is_explained_beside_the_stages() -> None:
    for mode in Mode:
        shown = lines(Snapshot(mode.value, 'why'), None)
        assert len(shown) <= 24
        assert any(f' {mode.value}: ' in line for line in shown[2:]), mode
