"""Listens to a run over ROS, for whoever shows it live."""

from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import NamedTuple

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Pose
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool

from g1_policy_node.newest import EVERY_LATCHED_QOS, NewestMessage
from g1_policy_node.types import Mode

Velocity = tuple[float, float, float]


class Snapshot(NamedTuple):
    """The newest of what was heard; empty or None where nothing was.

    `mode` and `reason` from `g1_policy/mode`; (vx, vy, wz) in m/s and rad/s: `velocity` in the
    base frame from `odom`, `command` as the policy got it from `g1_policy/step`. `figures` are
    the router's /diagnostics, by name.
    """

    mode: str = ''
    reason: str = ''
    velocity: Velocity | None = None
    command: Velocity | None = None
    figures: Mapping[str, str] = MappingProxyType({})

    def line(self) -> str:
        """Return one line for people."""
        parts = [self.mode or 'no mode heard yet']
        if self.mode != Mode.RUN.value and self.reason:
            parts[0] += f': {self.reason}'
        if self.velocity is not None:
            vx, vy, wz = self.velocity
            parts.append(f'vx {vx:+.2f}  vy {vy:+.2f} m/s  wz {wz:+.2f} rad/s')
        if 'rate_hz' in self.figures:
            parts.append(f'{self.figures["rate_hz"]} Hz')
        if 'deadline_misses' in self.figures:
            parts.append(f'{self.figures["deadline_misses"]} missed')
        return '   '.join(parts)


class Listener:
    """What `poll` tells of a run, heard by a node of somebody else's."""

    def __init__(self, node: Node) -> None:
        self._mode = NewestMessage(node, String, 'g1_policy/mode', EVERY_LATCHED_QOS)
        self._odom = NewestMessage(node, Odometry, 'odom')
        self._step = NewestMessage(node, Float64MultiArray, 'g1_policy/step')
        self._diagnostics = NewestMessage(node, DiagnosticArray, '/diagnostics')
        self._snapshot = Snapshot()
        self.pose: Pose | None = None

    def poll(self) -> Snapshot:
        """Take what has come and return the newest of everything; `pose` is the newest odom's."""
        while mode := self._mode.take():
            name, _, reason = mode.message.data.partition(':')
            self._snapshot = self._snapshot._replace(mode=name, reason=reason.strip())
        if odom := self._odom.take():
            self.pose = odom.message.pose.pose
            linear, angular = odom.message.twist.twist.linear, odom.message.twist.twist.angular
            self._snapshot = self._snapshot._replace(velocity=(linear.x, linear.y, angular.z))
        if step := self._step.take():
            self._snapshot = self._snapshot._replace(command=_command(step.message))
        if diagnostics := self._diagnostics.take():
            for status in diagnostics.message.status:
                values = {item.key: item.value for item in status.values}
                if 'deadline_misses' in values:
                    self._snapshot = self._snapshot._replace(figures=values)
        return self._snapshot


def _command(step: Float64MultiArray) -> Velocity:
    """Return the block `command` of a ~/step message."""
    start = 0
    for block in step.layout.dim:
        if block.label == 'command':
            break
        start += block.size
    vx, vy, wz = step.data[start : start + 3]
    return vx, vy, wz


class Monitor:
    """A context in which `poll` tells what goes on; in the domain of this environment."""

    def __init__(self, namespace: str) -> None:
        self._context = rclpy.Context()
        # Ctrl-C is the run's to handle, not this node's.
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node(
            'g1_monitor',
            context=self._context,
            namespace=namespace,
            use_global_arguments=False,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self.poll = Listener(self._node).poll

    def ask_to_run(self, on: bool, timeout_s: float = 5.0) -> str:
        """Call the router's ~/run as an operator would; return why it refused, or ''."""
        client = self._node.create_client(SetBool, 'g1_policy/run')
        executor = SingleThreadedExecutor(context=self._context)
        executor.add_node(self._node)
        try:
            if not client.wait_for_service(timeout_s):
                return 'no service g1_policy/run'
            future = client.call_async(SetBool.Request(data=on))
            executor.spin_until_future_complete(future, timeout_s)
            answer = future.result()
            if answer is None:
                return 'g1_policy/run did not answer'
            return '' if answer.success else answer.message
        finally:
            executor.remove_node(self._node)
            executor.shutdown()
            self._node.destroy_client(client)

    def __enter__(self) -> 'Monitor':
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)
