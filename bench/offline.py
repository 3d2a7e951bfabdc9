"""Loops without ROS, one arm a process: `python -m bench.offline WHAT ARM SECONDS N`.

`replay`: rows a second through actor and gate; ours in batches, as `g1-policy tape replay
--offline`, the others one row at a time. `history`: us from a state to
its raw action at 50 Hz, with N frames of every joint term. Prints one number.
"""

import collections
import os
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from bench.arms import HONEST, OURS, STOCK
from g1_policy_node.action import JointPositionAction
from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.contract import contract_from_mapping
from g1_policy_node.safety import SafetyGate
from g1_policy_node.tools.tape.offline import act_rows, load_limits_file
from g1_policy_node.types import RobotState

WITH_HISTORY = ('base_ang_vel', 'projected_gravity', 'joint_pos_rel', 'joint_vel_rel')


def forward(arm: str, sizes: tuple[int, ...], weights: Any) -> Callable[[Any], Any]:
    """Return the network of an arm, from a row (a list for stock) to its action."""
    if arm == OURS:
        from g1_policy_node.actor import NumpyActor
        from g1_policy_node.contract import NetworkContract

        return NumpyActor(NetworkContract(sizes, 'elu'), weights)
    if arm == HONEST:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            os.environ['BENCH_ONNX'], options, providers=['CPUExecutionProvider']
        )
        name = session.get_inputs()[0].name
        return lambda row: session.run(None, {name: np.array([row], np.float32)})[0][0]
    import torch

    modules: list[torch.nn.Module] = []
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        linear = torch.nn.Linear(fan_in, fan_out)
        linear.weight.data = torch.tensor(weights[f'layers.{i}.weight'])
        linear.bias.data = torch.tensor(weights[f'layers.{i}.bias'])
        modules += [linear, torch.nn.ELU()]
    network = torch.nn.Sequential(*modules[:-1])

    @torch.inference_mode()
    def eager(row: Any) -> Any:
        return network(torch.tensor(row, dtype=torch.float32)).numpy()

    return eager


def replay(arm: str, seconds: float) -> float:
    """Return rows a second: network, target and gate for every row of the golden rollout.

    The gate is the router's for every arm, beside a robot that stands.
    """
    bundle = load_bundle(resolve_bundle('g1_walk'))
    gate = SafetyGate(bundle.contract, load_limits_file(), bundle.golden_observations)
    action, rows = JointPositionAction(bundle.contract), bundle.golden_observations
    rest = bundle.contract.per_joint('default_position')
    n, up = len(rest), np.array([0.0, 0.0, -1.0])
    standing = RobotState(rest, np.zeros(n), np.zeros(3), up, None)
    run = forward(arm, bundle.contract.network.sizes, bundle.weights)

    def one_by_one() -> list[Any]:
        targets = [rest]
        for row in rows:
            target = action.target(np.asarray(run(row), np.float64))
            targets.append(gate.check(target, targets[-1], standing).target)
        return targets

    before = np.array(one_by_one()[:-1])  # a tape has these: the target of the tick before
    load = cache(partial(load_actor, bundle.contract.network, bundle.weights, 'cpu'))

    def in_batches() -> None:
        target = action.target(act_rows(load, rows, n).astype(np.float64))
        gate.check_rows(target, before, standing)

    once = in_batches if arm == OURS else one_by_one
    once()  # the actor is loaded and warm before the time runs
    done, start = 0, time.monotonic()
    while time.monotonic() < start + seconds:
        once()
        done += len(rows)
    return done / (time.monotonic() - start)


def history(arm: str, seconds: float, frames: int) -> float:
    """Return the median us from state to raw action, called once every 20 ms."""
    contract = load_bundle(resolve_bundle('g1_walk')).contract
    data = contract.to_mapping()
    for row in data['observations']:
        row['history'] = frames if row['term'] in WITH_HISTORY else 1
    data['network']['sizes'] = [
        sum(row['size'] * row['history'] for row in data['observations']),
        *contract.network.sizes[1:],
    ]
    data['weights_sha256'] = None
    longer = contract_from_mapping(data)
    sizes, rng = longer.network.sizes, np.random.default_rng(0)
    weights = {}
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        weights[f'layers.{i}.weight'] = rng.normal(0, 0.05, (fan_out, fan_in)).astype(np.float32)
        weights[f'layers.{i}.bias'] = np.zeros(fan_out, np.float32)
    run = forward(arm, sizes, weights)
    observe = _builder(longer) if arm == OURS else _lists(longer)
    n = len(longer.joint_names)
    state = RobotState(
        rng.normal(size=n), rng.normal(size=n), np.zeros(3), np.array([0, 0, -1.0]), None
    )
    took, start = [], time.monotonic()
    for tick in range(int(seconds * 50)):
        time.sleep(max(0.0, start + 0.02 * (tick + 1) - time.monotonic()))
        began = time.monotonic_ns()
        run(observe(state, tick))
        took.append((time.monotonic_ns() - began) * 1e-3)
    return float(np.median(took[5:]))


def _builder(contract: Any) -> Callable[[RobotState, int], Any]:
    from g1_policy_node.observation import ObservationBuilder

    builder, command = ObservationBuilder(contract), np.array([0.5, 0.0, 0.0])
    last = np.zeros(len(contract.joint_names))
    return lambda state, tick: builder.build(state, command, tick, last)


def _lists(contract: Any) -> Callable[[RobotState, int], Any]:
    """Return how a tutorial keeps history: a deque of lists for every term."""
    kept = {
        row.term: collections.deque([[0.0] * row.size] * row.history, row.history)
        for row in contract.observations
    }

    def observe(state: RobotState, tick: int) -> list[float]:
        values = {
            'joint_pos_rel': state.joint_pos.tolist(),
            'joint_vel_rel': state.joint_vel.tolist(),
            'base_ang_vel': state.ang_vel.tolist(),
            'projected_gravity': state.gravity.tolist(),
        }
        out: list[float] = []
        for row in contract.observations:
            scale = row.scale if isinstance(row.scale, float) else 1.0
            new = values.get(row.term, [0.0] * row.size)
            kept[row.term].append([value * scale for value in new])
            for frame in kept[row.term]:
                out.extend(frame)
        return out

    return observe


def main() -> None:
    """Print one number."""
    what, arm, seconds, frames = sys.argv[1:5]
    assert arm in (OURS, STOCK, HONEST)
    if what == 'replay':
        print(replay(arm, float(seconds)))
    else:
        print(history(arm, float(seconds), int(frames)))


if __name__ == '__main__':
    main()
