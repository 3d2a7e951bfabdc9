"""A device that fails in a step is replaced in that very step, once, and never by itself again."""

import numpy as np
import pytest
from samples import CONTRACT

from g1_policy_node.policy import DeviceFailure, Policy

ROW = np.zeros(CONTRACT.observation_size, dtype=np.float32)


class Actor:
    """Answers with one number, or fails as torch does."""

    def __init__(self, device: str, value: float, fails: bool = False) -> None:
        self.device, self.value, self.fails, self.calls = device, value, fails, 0

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        self.calls += 1
        if self.fails:
            raise RuntimeError('CUDA error: device lost\nmore advice')
        return np.full(29, self.value, dtype=np.float32)


def test_the_reserve_answers_in_the_step_of_the_failure_and_stays() -> None:
    cuda, cpu = Actor('cuda:0', 1.0, fails=True), Actor('cpu', 2.0)
    policy = Policy(CONTRACT, cuda, reserve=cpu)
    assert policy.act(ROW)[0] == 2.0
    assert policy.failure == DeviceFailure('cuda:0', 'CUDA error: device lost')
    cuda.fails = False
    assert policy.act(ROW)[0] == 2.0
    assert cuda.calls == 1


def test_an_operator_may_try_the_device_again() -> None:
    cuda, cpu = Actor('cuda:0', 1.0, fails=True), Actor('cpu', 2.0)
    policy = Policy(CONTRACT, cuda, reserve=cpu)
    policy.act(ROW)
    cuda.fails = False
    policy.use(cuda)
    assert policy.act(ROW)[0] == 1.0
    assert policy.failure is None


def test_an_error_of_the_reserve_itself_is_not_hidden() -> None:
    cpu = Actor('cpu', 2.0, fails=True)
    with pytest.raises(RuntimeError, match='device lost'):
        Policy(CONTRACT, cpu, reserve=cpu).act(ROW)


def test_no_other_error_is_taken_for_a_failed_device() -> None:
    class Wrong(Actor):
        def __call__(self, observation: np.ndarray) -> np.ndarray:
            raise ValueError('wrong shape')

    with pytest.raises(ValueError, match='wrong shape'):
        Policy(CONTRACT, Wrong('cuda:0', 0.0), reserve=Actor('cpu', 2.0)).act(ROW)
