"""Devices are named exactly, prepared before use, and never swapped for another."""

import numpy as np
import pytest

from g1_policy_node import devices
from g1_policy_node.devices import (
    RECHECK_EVERY,
    ActorPool,
    check_device_name,
    predicted_p99,
    prepared_devices,
)
from g1_policy_node.types import UserError


class StubActor:
    def __init__(self, device: str) -> None:
        self.device = device


def pool(*names: str) -> ActorPool:
    return ActorPool(names, StubActor, lambda actor, every: 0.0, lambda actor: 0.001, 0.01)


@pytest.mark.parametrize(
    'name',
    [
        *('gpu', 'cuda', 'CPU', 'cuda:', 'cuda:-1', 'cuda:x', '', 'cpu ', 'cpu\0'),
        'cuda:' + '9' * 5000,
        'x' * 100_000,
    ],
)
def test_what_is_no_device_name_is_refused_in_a_short_line(name: str) -> None:
    with pytest.raises(UserError, match='is neither cpu nor cuda:N') as refused:
        check_device_name(name)
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    ('requested', 'cuda_devices', 'prepared'),
    [
        (['auto'], 0, ('cpu',)),
        (['auto'], 2, ('cpu', 'cuda:0', 'cuda:1')),
        (['cuda:1'], 0, ('cpu', 'cuda:1')),
        (['cpu', 'cpu'], 1, ('cpu',)),
    ],
)
def test_cpu_is_always_prepared_and_auto_takes_what_the_driver_shows(
    monkeypatch, requested, cuda_devices, prepared
) -> None:
    monkeypatch.setattr(devices, 'cuda_device_count', lambda: cuda_devices)
    assert prepared_devices(requested) == prepared


@pytest.mark.parametrize(
    ('device', 'cuda_devices', 'says'),
    [
        ('cuda:0', 0, 'no NVIDIA driver or device here'),
        ('cuda:7', 2, r'the driver shows 2'),
        ('cuda:0', 1, 'not prepared at start'),
        ('tpu', 1, 'neither cpu nor cuda:N'),
    ],
)
def test_a_device_that_was_not_prepared_is_refused_with_the_reason(
    monkeypatch, device: str, cuda_devices: int, says: str
) -> None:
    monkeypatch.setattr(devices, 'cuda_device_count', lambda: cuda_devices)
    with pytest.raises(UserError, match=says):
        pool('cpu').get(device)


def test_actions_are_compared_again_before_a_device_takes_over() -> None:
    seen = []
    actors = ActorPool(
        ['cpu', 'cuda:0'],
        StubActor,
        lambda actor, every: seen.append((actor.device, every)) or 0.0,
        lambda actor: 0.001,
        0.01,
    )
    actors.recheck('cuda:0', in_use='cpu')
    actors.recheck('cpu', in_use='cpu')  # in use: its arrays belong to the tick
    assert seen == [('cpu', 1), ('cuda:0', 1), ('cuda:0', RECHECK_EVERY)]


def test_a_device_predicted_over_the_budget_is_refused_with_both_figures() -> None:
    slow = {'cpu': 1.0, 'cuda:0': 0.0123}
    actors = ActorPool(
        slow, StubActor, lambda actor, every: 0.0, lambda actor: slow[actor.device], 0.01
    )
    with pytest.raises(UserError, match=r'predicted p99 of 12\.30 ms is over the budget of 10 ms'):
        actors.recheck('cuda:0', in_use='cpu')
    assert actors.get('cpu').device == 'cpu'  # it has to be there when another fails
    assert actors.predicted == {'cuda:0': 0.0123}


def test_a_device_that_errs_when_compared_again_is_refused_in_one_line() -> None:
    def check(actor: StubActor, every: int) -> float:
        if broken:
            raise RuntimeError('CUDA error: an illegal memory access\nadvice for developers')
        return 0.0

    broken = False
    actors = ActorPool(['cpu', 'cuda:0'], StubActor, check, lambda actor: 0.001, 0.01)
    broken = True
    with pytest.raises(UserError) as error:
        actors.recheck('cuda:0', in_use='cpu')
    assert str(error.value) == 'cuda:0 cannot be used: CUDA error: an illegal memory access'


def test_the_prediction_is_the_p99_at_the_walks_period() -> None:
    slept, now = [], [0.0]

    def actor(row: np.ndarray) -> None:
        now[0] += float(row[0])

    rows = np.linspace(0.001, 0.101, 101, dtype=np.float32)[:, None]
    predicted = predicted_p99(actor, rows, 0.02, lambda: now[0], slept.append)
    assert predicted == pytest.approx(0.1)
    assert slept == [0.02] * 101
