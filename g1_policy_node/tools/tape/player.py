"""Publishes a tape's sensors and commands with their original timing; never a joint target."""

import hashlib
import importlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock

from g1_policy_node.ros_process import run_ros_process
from g1_policy_node.tools.spread import spread
from g1_policy_node.tools.tape.tape import Tape
from g1_policy_node.tools.tape.topics import IMU, JOINTS, PLAYED

START_PATIENCE_S = 5.0
SETTLE_S = 0.3
CLOCK_STEP_NS = 5_000_000
ERROR_LIMIT_MS = 2.0
"""Largest p99 of the error between two messages' spacing; above it the replay was no replay."""


class Due(NamedTuple):
    """A message to publish: when, in ns from the tape's first, on which topic, and its bytes."""

    at: int
    topic: str
    data: bytes


def schedule(tape: Tape) -> list[Due]:
    """Return what a replay publishes, in order; equal times keep the order of PLAYED."""
    names = [name for name in PLAYED if name in tape.names]
    tape.topic(JOINTS)
    messages = sorted(
        (
            (message.received, place, order, name, message.data)
            for place, name in enumerate(names)
            for order, message in enumerate(tape.bag.topics[tape.names[name]].messages)
        ),
        key=lambda item: item[:3],
    )
    first = messages[0][0]
    return [Due(received - first, name, data) for received, _, _, name, data in messages]


def sequence_hash(due: Sequence[Due]) -> str:
    """Return the sha256 over topics and bytes in order: two replays published the same."""
    digest = hashlib.sha256()
    for item in due:
        digest.update(item.topic.encode())
        digest.update(item.data)
    return digest.hexdigest()


def play(
    due: Sequence[Due],
    rate: float,
    publish: Callable[[Due], None],
    tell_time: Callable[[int], None],
    stopped: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[float]:
    """Publish each message at its absolute time; yield when it was published, s from the start.

    `tell_time` gets tape time in ns, every CLOCK_STEP_NS and at each message.
    """
    began, told = clock(), 0
    for item in due:
        for mark in range(told + CLOCK_STEP_NS, item.at, CLOCK_STEP_NS):
            sleep(max(0.0, began + mark * 1e-9 / rate - clock()))
            tell_time(mark)
        sleep(max(0.0, began + item.at * 1e-9 / rate - clock()))
        if stopped():
            return
        publish(item)
        told = item.at
        tell_time(told)
        yield clock() - began


def spacing_error(due: Sequence[Due], at: Sequence[float], rate: float) -> dict[str, float] | None:
    """Return the spread in ms of |achieved - recorded| time between neighbouring messages."""
    wanted = np.diff([item.at for item in due[: len(at)]]) / 1e6 / rate
    return spread(np.abs(np.diff(np.array(at)) * 1e3 - wanted))


def play_command(
    tape: Tape, namespace: str, rate: float, with_clock: bool, loop: bool, as_json: bool
) -> int:
    """Replay in this ROS domain until the end (or a signal); 1 if the timing was not kept."""
    due = schedule(tape)

    def body(stop: threading.Event) -> int:
        player = _Player(tape, namespace, with_clock)
        player.wait_for_listener(stop)
        at: list[float] = []
        while not stop.is_set():
            at = list(play(due, rate, player.publish, player.tell_time, stop.is_set))
            if not loop:
                break
        return _tell(due, at, rate, as_json)

    return run_ros_process('g1-policy', body, ['--ros-args'])


class _Player:
    def __init__(self, tape: Tape, namespace: str, with_clock: bool) -> None:
        self._node = Node('g1_tape_player', namespace=namespace, use_global_arguments=False)
        self._publishers: dict[str, Any] = {}
        for name in (name for name in PLAYED if name in tape.names):
            package, _, kind = tape.bag.topics[tape.names[name]].kind.split('/')
            message = getattr(importlib.import_module(f'{package}.msg'), kind)
            # Reliable fits every subscription there may be.
            self._publishers[name] = self._node.create_publisher(
                message, name, QoSProfile(depth=10)
            )
        self._clock = self._node.create_publisher(Clock, '/clock', 10) if with_clock else None

    def wait_for_listener(self, stop: threading.Event) -> None:
        """Wait for somebody to hear both sensors, or the first messages would be lost."""
        deadline = time.monotonic() + START_PATIENCE_S
        sensors = [self._publishers[name] for name in (JOINTS, IMU) if name in self._publishers]
        while not all(sensor.get_subscription_count() for sensor in sensors):
            if stop.wait(0.05):
                return
            if time.monotonic() > deadline:
                print(f'nobody listens to {self._publishers[JOINTS].topic_name}; playing anyway')
                return
        # The listener learns of the match a little later than its sender.
        stop.wait(SETTLE_S)

    def publish(self, item: Due) -> None:
        self._publishers[item.topic].publish(item.data)

    def tell_time(self, nanoseconds: int) -> None:
        if self._clock:
            message = Clock()
            # Zero would mean that there is no time yet.
            message.clock.sec, message.clock.nanosec = divmod(nanoseconds + 10**9, 10**9)
            self._clock.publish(message)


def _tell(due: Sequence[Due], at: Sequence[float], rate: float, as_json: bool) -> int:
    error = spacing_error(due, at, rate)
    kept = error is not None and error['p99'] <= ERROR_LIMIT_MS
    sequence = sequence_hash(due)
    facts = {
        'published': len(at),
        'of': len(due),
        'spacing_error_ms': error,
        'timing_kept': kept,
        'sequence_sha256': sequence,
    }
    if as_json:
        print(json.dumps(facts, indent=2))
    else:
        p99 = '-' if error is None else f'{error["p99"]:.2f}'
        print(f'{len(at)} of {len(due)} messages, sequence {sequence[:16]}')
        verdict = 'kept' if kept else f'NOT kept (limit {ERROR_LIMIT_MS:g} ms)'
        print(f'spacing error p99 {p99} ms: original timing {verdict}')
    return 0 if kept and len(at) == len(due) else 1
