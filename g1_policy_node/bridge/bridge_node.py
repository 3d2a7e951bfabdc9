"""The ROS node /g1_bridge: topics, services, parameters; the motors are the writer's."""

import threading
import time
from array import array
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from g1_policy_node.bridge.conversion import StateReader
from g1_policy_node.bridge.link import Link, Orders, Report, pack_command
from g1_policy_node.bridge.writers import Writers
from g1_policy_node.command_inbox import Inbox
from g1_policy_node.contract import Contract
from g1_policy_node.joints import G1_JOINT_NAMES
from g1_policy_node.newest import LATCHED_QOS, SENSOR_QOS
from g1_policy_node.types import Array

ANSWER_WITHIN_S = 1.0
"""How long the writer may take to answer a reset; it looks every 2 ms."""

_TEND_S = 0.1
_WRITER_SILENT_NS = 100_000_000
_WRITER_HANGS_NS = 200_000_000
"""Silence after which a writer is killed: a robot survives 0.3 s without commands (measured)."""


class BridgeNode:
    """Passes LowState on to ROS and joint_command on to the writer. `run` is its loop."""

    def __init__(
        self, node: Node, contract: Contract, link: Link, writers: Writers, rate: float
    ) -> None:
        self._node, self._link, self._writers = node, link, writers
        self._period = round(1e9 / rate)
        self._inbox = Inbox(node)
        self._state = StateReader()
        self._joints_out = node.create_publisher(JointState, 'joint_states', SENSOR_QOS)
        self._imu_out = node.create_publisher(Imu, 'imu/data', SENSOR_QOS)
        self._status_out = node.create_publisher(String, '~/status', LATCHED_QOS)
        self._diagnostics_out = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._joints = JointState(name=list(G1_JOINT_NAMES))
        self._imu = Imu()
        self._imu.header.frame_id = contract.imu_frame
        self._report: Report | None = None
        self._status = ''
        self._orders = Orders()
        self._lock = threading.Lock()
        node.create_service(Trigger, '~/estop', self._on_estop)
        node.create_service(Trigger, '~/reset', self._on_reset)

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop`; commands are passed on as they come."""
        due = tend = diagnose = time.monotonic_ns()
        while not stop.is_set():
            self._inbox.wait(max(due - time.monotonic_ns(), 0) * 1e-9)
            now = time.monotonic_ns()
            if command := self._inbox.command(now):
                self._link.command.write(pack_command(command))
            if now < due:
                continue
            due = max(due + self._period, now)
            self._publish(now)
            if now >= tend:
                tend = now + round(_TEND_S * 1e9)
                self._writers.tend()
            if now >= diagnose:
                diagnose = now + 10**9
                self._diagnose()

    def wake(self) -> None:
        """End a wait of `run` from another thread."""
        self._inbox.wake()

    def _publish(self, now: int) -> None:
        """Publish the newest LowState, if it is a new one, and what has become of the writer."""
        payload = self._link.report.take()
        last = self._report
        if payload:
            self._report = Report.unpack(payload)
            if self._report.state and (last is None or last.received != self._report.received):
                self._publish_state(self._report, now)
        if self._report and now - self._report.written > _WRITER_HANGS_NS:
            self._writers.end(self._report.pid)
        self._publish_status(self._say(now))

    def _publish_state(self, report: Report, now: int) -> None:
        self._state.load(report.state)
        stamp_ns = self._node.get_clock().now().nanoseconds - (now - report.received) - report.age
        stamp = Time(sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
        joints, imu = self._joints, self._imu
        joints.header.stamp = imu.header.stamp = stamp
        position, velocity, effort = self._state.joints()
        joints.position = array('d', position.tobytes())
        joints.velocity = array('d', velocity.tobytes())
        joints.effort = array('d', effort.tobytes())
        quaternion, gyroscope, accelerometer = self._state.imu()
        _fill(imu.orientation, quaternion)
        _fill(imu.angular_velocity, gyroscope)
        _fill(imu.linear_acceleration, accelerometer)
        self._joints_out.publish(joints)
        self._imu_out.publish(imu)

    def _say(self, now: int) -> str:
        report = self._report
        if report is None or now - report.written > _WRITER_SILENT_NS:
            return 'NO WRITER: the writer process says nothing'
        return 'FOLLOWING' if report.following else f'DAMPING: {report.notes()["cause"]}'

    def _publish_status(self, status: str) -> None:
        # A silence in ms grows with every look: its kind is the news, not its length.
        kind = ''.join(c for c in status if not c.isdigit())
        if kind != ''.join(c for c in self._status if not c.isdigit()):
            self._node.get_logger().info(status)
            self._status_out.publish(String(data=status))
        self._status = status

    def facts(self) -> dict[str, Any]:
        """Return the status and the writer's figures by name; times in ms."""
        facts: dict[str, Any] = {'status': self._status, 'writer_deaths': self._writers.deaths}
        if r := self._report:
            facts |= {
                'writer_pid': r.pid,
                'frames': r.frames,
                'longest_gap_ms': r.longest_ns * 1e-6,
                'rebases': r.rebases,
                'state_silence_ms': (r.written - r.received) * 1e-6 if r.received else None,
                'state_age_ms': r.age * 1e-6,
                'bad_crcs': r.bad_crcs,
                'commands_refused': r.refused,
            }
        return facts

    def _diagnose(self) -> None:
        values = self.facts()
        following = self._status.startswith('FOLLOWING')
        status = DiagnosticStatus(
            level=DiagnosticStatus.OK if following else DiagnosticStatus.WARN,
            name=f'{self._node.get_name()}: bridge',
            message=self._status,
            hardware_id='g1',
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._diagnostics_out.publish(message)

    def _on_estop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._order(estops=1)
        response.success = True
        response.message = 'damping, latched; ~/reset ends it'
        return response

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        wanted = self._order(resets=1).resets
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while time.monotonic() < deadline:
            report = self._report
            if report and report.resets >= wanted:
                reason = report.notes()['answer']
                response.success = not reason
                response.message = reason or 'ready to follow joint_command'
                return response
            time.sleep(0.005)
        response.message = f'the writer did not answer within {ANSWER_WITHIN_S:g} s'
        return response

    def _order(self, estops: int = 0, resets: int = 0) -> Orders:
        with self._lock:
            self._orders = Orders(self._orders.estops + estops, self._orders.resets + resets)
            self._link.orders.write(self._orders.pack())
            return self._orders


def _fill(field: object, values: Array) -> None:
    for name, value in zip('xyzw', values.tolist(), strict=False):
        setattr(field, name, value)
