"""`g1-policy tape info`: what is in a tape, and whether it is complete."""

from typing import Any

import numpy as np

from g1_policy_node.tools.spread import spread
from g1_policy_node.tools.tape.tape import Tape, read_steps
from g1_policy_node.tools.tape.topics import IMU, JOINTS, MODE, ODOM, STEP, TARGETS

GAP_PERIODS = 2.0
LOSS_LIMIT = 0.005
"""Share of a topic's messages that may be missing."""

_PERIODIC = (JOINTS, IMU, ODOM, TARGETS, STEP)


def describe(tape: Tape, step_ns: int = 20_000_000) -> dict[str, Any]:
    """Return rates, gaps and losses by topic, 50 Hz coverage and the ages of the sensors."""
    held = [m.received for topic in tape.bag.topics.values() for m in topic.messages]
    required = {tape.names[name] for name in _PERIODIC if name in tape.names}
    topics = {
        name: _topic(tape, name, step_ns if name in required else None)
        for name in sorted(tape.bag.topics)
    }
    return {
        'path': str(tape.bag.path),
        'storage': tape.bag.storage,
        'notes': list(tape.bag.notes),
        'custom': dict(tape.bag.custom),
        'duration_s': (max(held) - min(held)) / 1e9,
        'messages': len(held),
        'topics': topics,
        'steps': _coverage(tape, step_ns) if STEP in tape.names else None,
        'sensor_age_ms': _ages(tape),
        'complete': _complete(tape, topics),
    }


def _topic(tape: Tape, name: str, longest_ns: int | None) -> dict[str, Any]:
    """Return a topic's figures; `longest_ns` is the period that the walk needs it at.

    What is missing is judged at its own median period, or at the walk's where that is shorter: a
    topic that loses every second message would else look like one of half the rate.
    """
    kind, messages = tape.bag.topics[name]
    times = np.array([m.received for m in messages])
    if len(times) < 3 or kind == 'std_msgs/msg/String':  # no rate: a mode comes when it changes
        return {'type': kind, 'messages': len(times), 'rate_hz': None}
    spans = np.diff(times) / 1e6
    period = float(np.median(spans))
    # Two that come together after a stall are no loss: what counts is the whole span.
    due = min(period, longest_ns / 1e6) if longest_ns else period
    expected = round((times[-1] - times[0]) / 1e6 / due) + 1 if due else len(times)
    return {
        'type': kind,
        'messages': len(times),
        'rate_hz': float((len(times) - 1) / ((times[-1] - times[0]) / 1e9)),
        'period_ms': spread(spans),
        'gaps': int(np.sum(spans > GAP_PERIODS * period)),
        'longest_gap_ms': float(spans.max()),
        'due_every_ms': due,
        'missing': max(0, expected - len(times)),
    }


def _coverage(tape: Tape, step_ns: int) -> dict[str, Any]:
    """Tell which slots between the first and the last row of `~/step` have a row."""
    slots = read_steps(tape).slot
    due = int(slots[-1] - slots[0]) + 1
    return {
        'rows': len(slots),
        'slots': due,
        'covered': len(np.unique(slots)) / due,
        'rate_hz': 1e9 / step_ns * len(slots) / due,
    }


def _ages(tape: Tape) -> dict[str, float] | None:
    """Return how old the newest joint_states was, by receive time, when a step arrived."""
    if not {STEP, JOINTS} <= tape.names.keys():
        return None
    joints = np.array([m.received for m in tape.bag.topics[tape.names[JOINTS]].messages])
    steps = np.array([m.received for m in tape.bag.topics[tape.names[STEP]].messages])
    at = np.searchsorted(joints, steps, side='right') - 1
    return spread((steps - joints[at])[at >= 0] / 1e6)


def _complete(tape: Tape, topics: dict[str, Any]) -> dict[str, Any]:
    """Judge the tape: sensors there, and at most LOSS_LIMIT of any periodic topic missing."""
    problems = [f'no {name}' for name in (JOINTS, IMU) if name not in tape.names]
    for name in _PERIODIC:
        figures = topics.get(tape.names.get(name, ''), {})
        missing, count = figures.get('missing') or 0, figures.get('messages') or 0
        if missing > LOSS_LIMIT * (missing + count):
            problems.append(
                f'{name}: {missing} of {missing + count} missing, '
                f'at one every {figures["due_every_ms"]:.1f} ms'
            )
    problems += list(tape.bag.notes)
    if MODE not in tape.names:
        problems.append('no g1_policy/mode')
    return {'accepted': not problems, 'problems': problems}
