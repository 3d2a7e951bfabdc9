"""A tape gives its actions and targets again; what was rebuilt is marked and not compared."""

import dataclasses
from functools import partial

import numpy as np
from samples import CONTRACT
from tapes import BUNDLE, messages, write_tape

from g1_policy_node.actor import NumpyActor
from g1_policy_node.tools.tape.offline import check_policy, replay_offline
from g1_policy_node.tools.tape.tape import observation_hash, open_tape, read_steps

LOAD = partial(NumpyActor, CONTRACT.network, BUNDLE.weights)
BATCHED = 1e-5
"""A batch adds in another order than a row."""


def test_actions_targets_and_verdicts_are_reproduced(tmp_path) -> None:
    result = replay_offline(open_tape(write_tape(tmp_path / 'a')), BUNDLE, LOAD)
    assert result['reproduced'] is True
    assert result['action_difference'] < BATCHED
    assert result['batch_difference'] < BATCHED
    compared = result['targets']
    assert (compared['compared'], compared['verdicts_differ']) == (59, 0)
    assert compared['difference_rad'] < BATCHED
    assert result['policy_differs'] is None


def test_other_weights_do_not_reproduce_it(tmp_path) -> None:
    weights = {**BUNDLE.weights, 'layers.3.bias': BUNDLE.weights['layers.3.bias'] + 1e-3}
    other = partial(NumpyActor, CONTRACT.network, weights)
    result = replay_offline(open_tape(write_tape(tmp_path / 'a')), BUNDLE, other)
    assert result['reproduced'] is False
    assert 0.9e-3 < result['action_difference'] < 1.1e-3


def test_a_lost_row_takes_only_its_own_targets_out(tmp_path) -> None:
    content = list(messages())
    at = [i for i, (_, topic, _) in enumerate(content) if topic == '/g1_policy/step'][10]
    del content[at - 1 : at + 1]  # the tick's command and its row
    result = replay_offline(open_tape(write_tape(tmp_path / 'a', content)), BUNDLE, LOAD)
    assert result['ticks'] == 59
    compared = result['targets']
    assert (compared['compared'], compared['verdicts_differ']) == (57, 0)
    assert compared['difference_rad'] < BATCHED


def test_without_step_it_is_reconstructed_and_no_action_is_compared(tmp_path) -> None:
    tape = open_tape(write_tape(tmp_path / 'a', messages(steps=False)))
    result = replay_offline(tape, BUNDLE, LOAD)
    assert result['reconstructed'] is True
    assert result['reproduced'] is None
    assert result['action_difference'] is None
    assert 55 <= result['ticks'] <= 60
    assert result['forward_us']['p50'] > 0


def test_a_tape_of_another_policy_is_told(tmp_path) -> None:
    tape = open_tape(write_tape(tmp_path / 'a'))
    other = dataclasses.replace(BUNDLE) if dataclasses.is_dataclass(BUNDLE) else BUNDLE
    assert check_policy(tape, other) is None
    bare = tape._replace(bag=tape.bag._replace(custom={'weights_sha256': 'f' * 64}))
    assert check_policy(bare, other).startswith('weights_sha256: ffffffffffffffff on the tape')


def test_the_hash_is_of_the_observations_alone(tmp_path) -> None:
    one, two = (
        read_steps(open_tape(write_tape(tmp_path / name))).observation for name in ('a', 'b')
    )
    assert observation_hash(one) == observation_hash(two)
    two = two + np.float32(1e-6)
    assert observation_hash(one) != observation_hash(two)
