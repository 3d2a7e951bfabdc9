import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from g1_policy_node.tools.walk import End, _process_ended, stop_signals
from g1_policy_node.types import UserError


class Gone(NamedTuple):
    """A process that has ended."""

    name: str
    exit_code: int
    lines: tuple[str, ...] = ()

    def tail(self, count: int) -> list[str]:
        return list(self.lines[-count:])


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_becomes_a_flag_and_the_old_handler_comes_back(number: int) -> None:
    before = signal.getsignal(number)
    with stop_signals() as stopped:
        assert not stopped()
        os.kill(os.getpid(), number)
        assert stopped()
    assert signal.getsignal(number) is before


def test_the_command_source_ends_a_walk() -> None:
    assert _process_ended(Gone('cmd_source', 0)).end is End.DONE


def test_damp_is_told_with_the_routers_reason() -> None:
    said = 'cmd_source: RUN has ended: DAMP: tilted'
    assert _process_ended(Gone('cmd_source', 1, (said,))) == (End.FAILED, (said,))


@pytest.mark.parametrize('exit_code', [0, 1, -9])
def test_any_other_process_that_ends_fails_the_walk_with_its_last_lines(exit_code: int) -> None:
    end, lines = _process_ended(Gone('policy_node', exit_code, ('one', 'two')))
    assert end is End.FAILED
    assert lines[0].startswith(f'policy_node ended by itself (code {exit_code})')
    assert lines[1:] == ('  one', '  two')


def test_what_a_process_refuses_is_the_users_mistake_in_its_own_words() -> None:
    line = '[ERROR] [1796.5] [left.g1_policy]: not configured: cuda:7: no NVIDIA driver'
    with pytest.raises(UserError) as error:
        _process_ended(Gone('policy_node', 2, ('more', line)))
    assert str(error.value) == 'policy_node: not configured: cuda:7: no NVIDIA driver'


def children() -> set[str]:
    """The processes that this one has started and not taken leave of."""
    found = set()
    for stat in Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(')')[2].split()[1]) == os.getpid():
                found.add(stat.parent.name)
    return found


@pytest.mark.ros
def test_a_device_that_is_not_there_ends_it_with_two_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from g1_policy_node import cli

    monkeypatch.chdir(tmp_path)
    before = children()
    assert cli.run(['walk', '--device', 'cuda:63', '--sim', 'none']) == 2
    errors = capfd.readouterr().err
    assert errors.startswith('g1-policy: policy_node: not configured: cuda:63')
    assert errors.count('\n') == 1
    assert children() <= before
