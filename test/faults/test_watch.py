"""A soak finds every unsafe command, every trip without a cause, and memory that grows."""

import numpy as np
import pytest
from faults.injector import FAULTS
from faults.measure import problems
from faults.watch import AFTER_NS, CommandWatch, Episode, S, mb_per_minute, unexplained
from samples import CONTRACT, DEFAULT, LIMITS

NAMES = list(CONTRACT.joint_names)
TICK = S // 50
STEP = LIMITS.max_target_rate * CONTRACT.step_dt
ANKLE = NAMES.index('left_ankle_roll_joint')


@pytest.fixture
def watch() -> CommandWatch:
    watch = CommandWatch(CONTRACT, LIMITS)
    for k in range(1, 4):
        watch.look(k, k * TICK, NAMES, DEFAULT, DEFAULT)
    assert watch.unsafe == []
    return watch


def moved(by: float) -> np.ndarray:
    target = DEFAULT.copy()
    target[ANKLE] += by
    return target


@pytest.mark.parametrize(
    ('names', 'target', 'says'),
    [
        (
            NAMES,
            np.where(np.arange(29) == ANKLE, np.nan, DEFAULT),
            'left_ankle_roll_joint not fin',
        ),
        (NAMES, moved(2.0), 'left_ankle_roll_joint out of its limits'),
        (NAMES, np.full(29, np.inf), 'not finite'),
        (NAMES[::-1], DEFAULT, '29 names'),
        (NAMES[:-1], DEFAULT[:-1], '28 names'),
    ],
)
def test_a_command_outside_the_limits_is_unsafe(watch, names, target, says: str) -> None:
    watch.look(4, 4 * TICK, names, target, DEFAULT)
    assert len(watch.unsafe) == 1
    assert says in watch.unsafe[0]


@pytest.mark.parametrize(('steps', 'unsafe'), [(1, 1), (2, 0)])
def test_a_target_may_move_by_the_rate_for_each_command_there_was(watch, steps, unsafe) -> None:
    arm = NAMES.index('left_elbow_joint')
    target = DEFAULT.copy()
    target[arm] += 1.5 * STEP
    watch.look(3 + steps, (3 + steps) * TICK, NAMES, target, DEFAULT)
    assert len(watch.unsafe) == unsafe


@pytest.mark.parametrize(('away', 'unsafe'), [(0.15, 0), (0.25, 1)])
def test_after_a_silence_the_first_target_is_near_the_measured_pose(watch, away, unsafe) -> None:
    watch.look(4, 60 * TICK, NAMES, moved(away), DEFAULT)
    assert len(watch.unsafe) == unsafe


EPISODES = [
    Episode('joint_states lost', frozenset({'stale'}), 10 * S, 11 * S),
    Episode('e-stop', frozenset({'request'}), 20 * S),
]


@pytest.mark.parametrize(
    ('layer', 'at', 'says'),
    [
        ('stale', 10.5, ''),
        ('stale', 11.2, ''),
        ('tilt', 10.5, "'joint_states lost' tripped tilt"),
        ('stale', 12.0, "a trip of stale 1.0 s after 'joint_states lost'"),
        ('stale', 9.0, 'before any fault'),
        ('request', 500.0, ''),
        ('stale', 500.0, "'e-stop' tripped stale"),
    ],
)
def test_a_trip_needs_a_fault_that_may_cause_it_at_that_time(layer, at, says: str) -> None:
    assert AFTER_NS < S
    found = unexplained(layer, int(at * S), EPISODES)
    assert (says in found) if says else not found


def test_a_fault_explains_its_own_layer_and_the_lack_of_samples_it_makes() -> None:
    assert not FAULTS['joints in another order'].explains
    assert FAULTS['samples doubled'].explains == {'stale'}
    assert FAULTS['positions in degrees'].explains == {'joint_position', 'stale'}
    assert FAULTS['e-stop'].explains == {'request'}


def test_memory_is_judged_by_the_slope() -> None:
    assert mb_per_minute([1, 2, 3, 4], [90, 90.5, 91, 91.5]) == pytest.approx(0.5)


GOOD = {'unsafe': [], 'node_alive_at_the_end': True, 'node_exit_code': 0}


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        ({}, []),
        (
            {'faults': {'lost': {'outcome': 'DAMP', 'as_expected': 19, 'times': 20}}},
            ['lost: DAMP in 19 of 20'],
        ),
        ({'unsafe': ['command 3']}, ['not safe: command 3']),
        ({'node_alive_at_the_end': False}, ['the node was dead at the end']),
        ({'node_exit_code': -6}, ['the node ended with exit code -6']),
        ({'soak_problems': ['memory grows']}, ['memory grows']),
    ],
)
def test_what_is_not_as_it_must_be_is_named_and_makes_the_exit_code(change, says) -> None:
    assert problems({**GOOD, **change}) == says
