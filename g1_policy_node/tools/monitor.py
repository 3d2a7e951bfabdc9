"""Watches a run over ROS, for the progress line."""

from types import TracebackType
from typing import NamedTuple

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

from g1_policy_node.newest import EVERY_LATCHED_QOS, NewestMessage
from g1_policy_node.types import Mode


class Snapshot(NamedTuple):
    """The newest of what was heard; empty or None where nothing was.

    `mode` and `reason` from `g1_policy/mode`, `velocity` (vx, vy, wz) in the base frame from
    `odom`, `rate` (Hz) and `misses` as the router's /diagnostics print them.
    """

    mode: str = ''
    reason: str = ''
    velocity: tuple[float, float, float] | None = None
    rate: str | None = None
    misses: str | None = None

    def line(self) -> str:
        """Return one line for people."""
        parts = [self.mode or 'no mode heard yet']
        if self.mode != Mode.RUN.value and self.reason:
            parts[0] += f': {self.reason}'
        if self.velocity is not None:
            vx, vy, wz = self.velocity
            parts.append(f'vx {vx:+.2f}  vy {vy:+.2f} m/s  wz {wz:+.2f} rad/s')
        if self.rate is not None:
            parts.append(f'{self.rate} Hz')
        if self.misses is not None:
            parts.append(f'{self.misses} missed')
        return '   '.join(parts)


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
        self._mode = NewestMessage(self._node, String, 'g1_policy/mode', EVERY_LATCHED_QOS)
        self._odom = NewestMessage(self._node, Odometry, 'odom')
        self._diagnostics = NewestMessage(self._node, DiagnosticArray, '/diagnostics')
        self._snapshot = Snapshot()

    def poll(self) -> Snapshot:
        """Take what has come and return the newest of everything."""
        while mode := self._mode.take():
            name, _, reason = mode.message.data.partition(':')
            self._snapshot = self._snapshot._replace(mode=name, reason=reason.strip())
        if odom := self._odom.take():
            linear, angular = odom.message.twist.twist.linear, odom.message.twist.twist.angular
            self._snapshot = self._snapshot._replace(velocity=(linear.x, linear.y, angular.z))
        if diagnostics := self._diagnostics.take():
            self._read(diagnostics.message)
        return self._snapshot

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

    def _read(self, array: DiagnosticArray) -> None:
        for status in array.status:
            values = {item.key: item.value for item in status.values}
            if 'deadline_misses' in values:
                self._snapshot = self._snapshot._replace(
                    rate=values.get('rate_hz'), misses=values['deadline_misses']
                )
