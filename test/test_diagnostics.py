import pytest

pytest.importorskip('rclpy')

import numpy as np

from g1_policy_node.diagnostics import timing_figures
from g1_policy_node.timing import INT_COLUMNS, Recorder


def test_time_that_waits_for_the_node_has_no_lateness() -> None:
    recorder = Recorder()
    for tick in (1, 2):
        recorder.add(tuple([tick] * len(INT_COLUMNS)), np.zeros(3))
    steady, simulated = timing_figures(recorder), timing_figures(recorder, simulated=True)
    assert {name for name in steady if name not in simulated} == {
        f'lateness_ms.p{percent}' for percent in (50, 95, 99)
    }
