"""Reads a driver's topics from its own loop, when it wants to and outside any executor."""

import time
from collections.abc import Iterator

import numpy as np
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from g1_policy_node.driver import JointCommand
from g1_policy_node.newest import COMMAND_QOS, EVERY_LATCHED_QOS, NewestMessage
from g1_policy_node.types import Mode


class _CommandTopic(NewestMessage[JointState]):
    """The newest joint_command, which can also be waited for."""

    def __init__(self, node: Node) -> None:
        super().__init__(node, JointState, 'joint_command', COMMAND_QOS)
        self._alarm = node.create_guard_condition(self._never, callback_group=self._group)
        # As rclpy's own wait_for_message does: one subscription and one guard condition.
        self._wait_set = rclpy_implementation.WaitSet(1, 1, 0, 0, 0, 0, node.context.handle)

    def wait(self, timeout_s: float) -> None:
        self._wait_set.clear_entities()
        with self._subscription.handle, self._alarm.handle:
            self._wait_set.add_subscription(self._subscription.handle)
            self._wait_set.add_guard_condition(self._alarm.handle)
            self._wait_set.wait(int(timeout_s * 1e9))

    def wake(self) -> None:
        self._alarm.trigger()


class Inbox:
    """The newest joint_command and every change of the policy node's mode.

    One thread reads; `wake` may be called from any other.
    """

    def __init__(self, node: Node) -> None:
        self._commands = _CommandTopic(node)
        self._modes = NewestMessage(node, String, 'g1_policy/mode', EVERY_LATCHED_QOS)
        self._looked_at: int | None = None

    def command(self, now: int) -> JointCommand | None:
        """Return the newest command not yet returned; `now` is ns on the tick clock."""
        last_look, self._looked_at = self._looked_at, now
        taken = self._commands.take()
        if taken is None:
            return None
        message = taken.message
        # The receive stamp is system time, which may be stepped. What comes now cannot have
        # been there at the last look, so that bounds its age whatever the system clock does.
        age = max(time.time_ns() - taken.received, 0)
        oldest = now if last_look is None else last_look
        return JointCommand(
            names=tuple(message.name),
            position=np.array(message.position),
            frame_id=message.header.frame_id,
            stamp=message.header.stamp.sec * 10**9 + message.header.stamp.nanosec,
            received=max(oldest, now - age),
            transport=taken.received - taken.source,
            sequence=taken.sequence,
        )

    def modes(self) -> Iterator[Mode]:
        """Yield every mode announced since the last call, oldest first; others are left out."""
        while taken := self._modes.take():
            name = taken.message.data.partition(':')[0]
            if name in Mode.__members__:
                yield Mode[name]

    def wait(self, timeout_s: float) -> None:
        """Sleep until a command is there, `wake` is called or the time is over."""
        self._commands.wait(timeout_s)

    def wake(self) -> None:
        """End a `wait` from another thread."""
        self._commands.wake()
