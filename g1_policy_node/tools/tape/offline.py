"""Offline replay: a tape's observations through actor, action and safety, as fast as it goes."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.action import JointPositionAction
from g1_policy_node.actor import ACTION_TOLERANCE, Actor
from g1_policy_node.bundle import Bundle
from g1_policy_node.command import CommandFollower
from g1_policy_node.contract import Contract
from g1_policy_node.inputs import InputGate
from g1_policy_node.joints import JointOrder
from g1_policy_node.observation import ObservationBuilder
from g1_policy_node.paths import find_data
from g1_policy_node.policy import Policy
from g1_policy_node.safety import SafetyGate, SafetyLimits, load_limits
from g1_policy_node.tools.spread import spread
from g1_policy_node.tools.tape.tape import (
    Series,
    Steps,
    Tape,
    read_steps,
    samples,
    targets,
)
from g1_policy_node.tools.tape.topics import COMMAND, IMU, JOINTS, ODOM, STEP, TARGETS
from g1_policy_node.types import Array, Inputs, RobotState, UserError, Verdict

STATE_TIMEOUT_NS = 60_000_000
CMD_TIMEOUT_NS = 500_000_000
BLOCK = 256
"""Rows of a batch: more of them gain nothing on a CPU."""
ONE_BY_ONE = 500
"""Rows that are also passed one by one."""

LoadActor = Callable[[int], Actor]


class Observations(NamedTuple):
    """What a device is fed: (T, n) float32, and the recorded actions (T, N), None if rebuilt."""

    rows: NDArray[np.float32]
    actions: Array | None

    @property
    def reconstructed(self) -> bool:
        """Whether they were rebuilt from the sensor topics, for want of `~/step`."""
        return self.actions is None


def load_limits_file() -> SafetyLimits:
    """Return the safety limits of config/safety.yaml."""
    table = load_limits(find_data('config/safety.yaml'))
    return SafetyLimits(**{name: entry.value for name, entry in table.items()})


def observations(tape: Tape, bundle: Bundle, actor: Actor) -> Observations:
    """Return the tape's observations; rebuilt from its sensors, with `actor`, without `~/step`."""
    if STEP not in tape.names:
        return Observations(_rebuilt(tape, bundle, actor), None)
    steps = read_steps(tape)
    wanted = (bundle.contract.observation_size, len(bundle.contract.joint_names))
    held = (steps.observation.shape[1], steps.action.shape[1])
    if held != wanted:
        raise UserError(
            f'{tape.bag.path}: {held[0]} inputs and {held[1]} actions in a row, '
            f'the policy has {wanted[0]} and {wanted[1]}'
        )
    return Observations(steps.observation, steps.action)


def check_policy(tape: Tape, bundle: Bundle) -> str | None:
    """Return None if the tape was made with this policy, else how it differs or is unknown."""
    custom = tape.bag.custom or _side_facts(tape.bag.path)
    for name in ('weights_sha256', 'contract_sha256'):
        held = custom.get(name)
        if held is None:
            return f'the tape does not say its {name}'
        if held != getattr(bundle, name):
            return f'{name}: {held[:16]} on the tape, {getattr(bundle, name)[:16]} in the policy'
    return None


def _side_facts(path: Path) -> dict[str, str]:
    import json

    file = (path if path.is_dir() else path.parent) / 'tape.json'
    try:
        facts: dict[str, str] = json.loads(file.read_text())
        return facts
    except (OSError, ValueError):
        return {}


def act_rows(load: LoadActor, rows: NDArray[np.float32], width: int) -> NDArray[np.float32]:
    """Return the raw actions (T, width) of observations (T, n), BLOCK rows at a time."""
    size = min(BLOCK, len(rows))
    actor = load(size)
    starts = [*range(0, len(rows) - size, size), len(rows) - size]  # the last one may overlap
    actions = np.empty((len(rows), width), dtype=np.float32)
    for at in starts:
        actions[at : at + size] = actor(rows[at : at + size] if size > 1 else rows[at])
    return actions


def replay_offline(tape: Tape, bundle: Bundle, load: LoadActor) -> dict[str, Any]:
    """Replay; return the figures: differences from the recording, latencies in us, the verdict.

    `load(batch)` returns the actor for so many rows. The rows go through in batches; ONE_BY_ONE
    of them also as on the robot, for the latencies, and to hold the two ways together.
    """
    actor = load(1)
    tape_rows = observations(tape, bundle, actor)
    actions = act_rows(load, tape_rows.rows, len(bundle.contract.joint_names))
    spent, apart = _one_by_one(actor, tape_rows.rows[:ONE_BY_ONE], actions)
    difference = None
    if tape_rows.actions is not None:
        difference = float(np.max(np.abs(actions - tape_rows.actions)))
    compared = None if tape_rows.reconstructed else _targets(tape, bundle, actions)
    within = difference is not None and max(difference, apart) <= ACTION_TOLERANCE
    return {
        'ticks': len(actions),
        'reconstructed': tape_rows.reconstructed,
        'device': actor.device,
        'policy_differs': check_policy(tape, bundle),
        'action_difference': difference,
        'batch_difference': apart,
        'tolerance': ACTION_TOLERANCE,
        'targets': compared,
        'forward_us': spread(spent / 1e3),
        'reproduced': None if tape_rows.reconstructed else within,
    }


def _one_by_one(
    actor: Actor, rows: NDArray[np.float32], batched: NDArray[np.float32]
) -> tuple[NDArray[np.int64], float]:
    """Return the ns of each row's pass, and how far its action is from the batch's at most."""
    spent, worst = np.empty(len(rows), dtype=np.int64), 0.0
    for i, row in enumerate(rows):
        began = time.perf_counter_ns()
        action = actor(row)
        spent[i] = time.perf_counter_ns() - began
        worst = max(worst, float(np.max(np.abs(action - batched[i]))))
    return spent, worst


def _targets(tape: Tape, bundle: Bundle, actions: NDArray[np.float32]) -> dict[str, Any] | None:
    """Compare action and safety code with the recorded commands, where a tick's is known.

    The gate needs the tick before: a tick whose predecessor is not on the tape is left out.
    """
    if TARGETS not in tape.names:
        return None
    steps, recorded = read_steps(tape), targets(tape)
    index = JointOrder(bundle.contract.joint_names).index(recorded.names)
    if index is None:
        raise UserError(f'{tape.bag.path}: joint_command has other joints than the policy')
    of_slot = _targets_by_slot(steps, recorded, round(bundle.contract.step_dt * 1e9))
    slots = steps.slot.tolist()
    known = [i for i, slot in enumerate(slots) if slot in of_slot and slot - 1 in of_slot]
    state = joint_state(bundle.contract, steps.observation[known])
    if state is None or not known:
        return {'compared': 0, 'difference_rad': None, 'verdicts_differ': 0}
    before, wanted = (
        np.array([of_slot[slots[i] - back] for i in known])[:, index] for back in (1, 0)
    )
    target = JointPositionAction(bundle.contract).target(actions[known].astype(np.float64))
    safe, altered = _gate(bundle).check_rows(target, before, state)
    verdict = np.where(altered, Verdict.CLIP.value, Verdict.PASS.value)
    return {
        'compared': len(known),
        'difference_rad': float(np.max(np.abs(safe - wanted))),
        'verdicts_differ': int(np.sum(verdict != steps.verdict[known])),
    }


def _targets_by_slot(steps: Steps, recorded: Series, step_ns: int) -> dict[int, Array]:
    """Return the recorded targets by slot.

    A command is stamped inside its slot, whatever the clock, so the slots' start follows from
    the commands received nearest to their `~/step`. Receive order alone would mix up ticks.
    """
    at = np.clip(np.searchsorted(recorded.received, steps.received), 1, len(recorded.stamp)) - 1
    start = int(np.median(recorded.stamp[at] - steps.slot * step_ns))
    slots = np.round((recorded.stamp - start) / step_ns).astype(np.int64)
    return dict(zip(slots.tolist(), recorded.value, strict=True))


def _gate(bundle: Bundle) -> SafetyGate:
    return SafetyGate(bundle.contract, load_limits_file(), bundle.golden_observations)


def joint_state(contract: Contract, rows: NDArray[np.float32]) -> RobotState | None:
    """Return the joints' state in an observation (n,) or in T of them, None if it is not there.

    Only what the gate's torque check reads; the rest of the state is not a number.
    """
    found: dict[str, Array] = {}
    start = 0
    for term in contract.observations:
        values = rows[..., start : start + term.width].astype(np.float64)
        start += term.width
        if term.history == 1 and term.clip is None:
            found[term.term] = values / np.asarray(term.scale)
    if not {'joint_pos_rel', 'joint_vel_rel'} <= found.keys():
        return None
    position = found['joint_pos_rel'] + contract.per_joint('default_position')
    unknown = np.full((*rows.shape[:-1], 3), np.nan)
    return RobotState(position, found['joint_vel_rel'], unknown, unknown, None)


def _rebuilt(tape: Tape, bundle: Bundle, actor: Actor) -> NDArray[np.float32]:
    """Build the observations from the sensor topics, at 50 Hz over the whole tape.

    The ticks' true times are not on the tape, so neither are these the recorded observations.
    """
    contract = bundle.contract
    gate = InputGate(contract, load_limits_file(), STATE_TIMEOUT_NS)
    follower = CommandFollower(contract.command_limits, CMD_TIMEOUT_NS)
    step_ns = round(contract.step_dt * 1e9)
    states, commands, ticks = [], [], []
    for k, (now, inputs) in enumerate(_ticks(tape, step_ns)):
        gate.admit(inputs, now)
        follower.take(inputs.command)
        state = gate.state(now)
        if isinstance(state, RobotState):
            states.append(state)
            commands.append(follower.follow(now, step_ns))
            ticks.append(k)
    if not states:
        raise UserError(f'{tape.bag.path}: its sensor topics give no complete state at any tick')
    if any(row.term == 'last_action' for row in contract.observations):
        policy = Policy(contract, actor)  # each row needs the action of the one before
        steps = zip(states, commands, ticks, strict=True)
        return np.array([policy.step(*step).observation for step in steps])
    columns: list[Any] = [None if v[0] is None else np.array(v) for v in zip(*states, strict=True)]
    no_action = np.zeros((len(states), len(contract.joint_names)))
    return ObservationBuilder(contract).build_rows(
        RobotState(*columns), np.array(commands), np.array(ticks), no_action
    )


def _ticks(tape: Tape, step_ns: int) -> Iterator[tuple[int, Inputs]]:
    """Yield every tick's time and the newest sample of each topic before it."""
    for name in (JOINTS, IMU):
        tape.topic(name)
    events = sorted(
        (
            (received, order, name, sample)
            for name in (JOINTS, IMU, COMMAND, ODOM)
            if name in tape.names
            for order, (received, sample) in enumerate(samples(tape, name))
        ),
        key=lambda event: event[:3],
    )
    newest: dict[str, Any] = dict.fromkeys((JOINTS, IMU, COMMAND, ODOM))
    due = events[0][0] + step_ns
    for received, _, name, sample in events:
        while received > due:
            yield due, Inputs(newest[JOINTS], newest[IMU], newest[COMMAND], newest[ODOM])
            due += step_ns
        newest[name] = sample
