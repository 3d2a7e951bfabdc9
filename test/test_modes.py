"""DAMP is latched, and every change of mode or reason is told once."""

import pytest

from g1_policy_node.modes import ModeLatch
from g1_policy_node.types import Mode


@pytest.mark.parametrize('mode', [m for m in Mode if m is not Mode.DAMP])
def test_only_an_operator_leaves_damp(mode: Mode) -> None:
    modes = ModeLatch(lambda *_: None)
    modes.enter(Mode.DAMP, 'e-stop')
    modes.enter(mode, 'something else')
    assert (modes.mode, modes.reason) == (Mode.DAMP, 'e-stop')
    modes.unlatch(mode, 'reset')
    assert modes.mode is mode


def test_every_change_is_told_and_nothing_twice() -> None:
    told = []
    modes = ModeLatch(lambda *change: told.append(change))
    for reason in ('a', 'a', 'b'):
        modes.enter(Mode.WAITING, reason)
    assert told == [(Mode.WAITING, 'a'), (Mode.WAITING, 'b')]
