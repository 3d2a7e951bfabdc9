import os
import threading

import pytest

from g1_policy_node import realtime
from g1_policy_node.realtime import Realtime, read_cpus
from g1_policy_node.types import UserError


def test_nothing_is_asked_of_linux_unless_the_operator_asks(monkeypatch) -> None:
    def unasked(*_: object) -> None:
        raise AssertionError('called')

    for module, name in (
        (os, 'sched_setaffinity'),
        (os, 'sched_setscheduler'),
        (realtime, 'lock_memory'),
    ):
        monkeypatch.setattr(module, name, unasked)
    Realtime().check()


def test_the_cpus_hold_for_the_thread_that_asks_and_for_no_other() -> None:
    before = os.sched_getaffinity(0)
    one = min(before)
    seen: list[set[int]] = []

    def thread() -> None:
        Realtime(cpus=(one,)).use_for_this_thread()
        seen.append(os.sched_getaffinity(0))

    running = threading.Thread(target=thread)
    running.start()
    running.join()
    assert seen == [{one}]
    assert os.sched_getaffinity(0) == before


def test_a_check_leaves_the_callers_thread_as_it_was() -> None:
    before = os.sched_getaffinity(0), os.sched_getscheduler(0)
    Realtime(cpus=(min(before[0]),)).check()
    assert (os.sched_getaffinity(0), os.sched_getscheduler(0)) == before


def test_a_cpu_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UserError, match=r'cpus: Invalid argument; this process has \d'):
        Realtime(cpus=(4095,)).check()


def test_a_priority_that_linux_refuses_is_told(monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, 'Operation not permitted')

    monkeypatch.setattr(os, 'sched_setscheduler', refuse)
    with pytest.raises(UserError, match='fifo_priority 50: Operation not permitted'):
        Realtime(fifo_priority=50).check()


@pytest.mark.parametrize(('text', 'cpus'), [('', ()), ('3', (3,)), ('2,3', (2, 3))])
def test_cpus_are_read_from_a_list(text: str, cpus: tuple[int, ...]) -> None:
    assert read_cpus(text) == cpus


@pytest.mark.parametrize('text', ['a', '1,', ',1', '-1', '1-3', '1.0'])
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(UserError, match='cpus: '):
        read_cpus(text)
