"""Messages to types and back, for the router. The only file that knows message layouts."""

import struct
from array import array
from collections import deque
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from g1_policy_node.clock import SystemTime, TickClock
from g1_policy_node.contract import Contract
from g1_policy_node.newest import COMMAND_QOS, SENSOR_QOS, NewestMessage, Taken
from g1_policy_node.observation import needs_odom
from g1_policy_node.router import Tick
from g1_policy_node.types import (
    Array,
    CommandSample,
    ImuSample,
    Inputs,
    JointSample,
    OdomSample,
    Stamps,
)


def joint_sample(taken: Taken[JointState], stamps: Stamps) -> JointSample:
    """Return a JointState's names, positions (rad) and velocities (rad/s) as they came."""
    m = taken.message
    return JointSample(tuple(m.name), np.array(m.position), np.array(m.velocity), stamps)


def imu_sample(taken: Taken[Imu], stamps: Stamps) -> ImuSample:
    """Return an Imu's fields; sensor_msgs marks an absent field by -1 in its covariance."""
    m = taken.message
    q, w, a = m.orientation, m.angular_velocity, m.linear_acceleration
    absent = [
        name
        for name, covariance in (
            ('orientation', m.orientation_covariance),
            ('angular velocity', m.angular_velocity_covariance),
        )
        if covariance[0] == -1.0
    ]
    return ImuSample(
        m.header.frame_id,
        np.array([q.x, q.y, q.z, q.w]),
        np.array([w.x, w.y, w.z]),
        np.array([a.x, a.y, a.z]),
        ' and no '.join(absent),
        stamps,
    )


def command_sample(taken: Taken[Twist] | Taken[TwistStamped], stamps: Stamps) -> CommandSample:
    """Return vx, vy (m/s) and the yaw rate (rad/s) of a Twist or TwistStamped."""
    m = taken.message
    twist = m.twist if isinstance(m, TwistStamped) else m
    return CommandSample(np.array([twist.linear.x, twist.linear.y, twist.angular.z]), stamps)


def odom_sample(taken: Taken[Odometry], stamps: Stamps) -> OdomSample:
    """Return the linear velocity (m/s) of an Odometry, in its child frame, the base."""
    v = taken.message.twist.twist.linear
    return OdomSample(np.array([v.x, v.y, v.z]), stamps)


class _OwnCommands(NewestMessage[bytes]):
    """Listens to joint_command for messages that are not this node's own."""

    def __init__(self, node: LifecycleNode) -> None:
        super().__init__(node, JointState, 'joint_command', COMMAND_QOS, raw=True)
        self._node = node
        self._own: deque[tuple[int, bytes]] = deque(maxlen=4)  # the last published
        self._published = 0

    def published(self, stamp: Time) -> None:
        """Note a message of our own."""
        self._published += 1
        self._own.append((self._published, _STAMP.pack(stamp.sec, stamp.nanosec)))

    def stranger(self) -> str:
        """Name who may have sent the newest message since the last look; '' if it was us."""
        taken = self.take()
        if taken is None or (taken.sequence, taken.message[4:12]) in self._own:
            return ''
        others = self.senders(self._node)
        me = self._node.get_fully_qualified_name()
        if me in others:
            others.remove(me)
        return ', '.join(others) or 'a sender that is gone'


_STAMP = struct.Struct('<iI')
"""Header.stamp in CDR: after four bytes that say little-endian."""


class RouterIo:
    """The router's topics. `take` and the publishers are for the control thread alone."""

    def __init__(self, node: LifecycleNode, contract: Contract, cmd_vel_stamped: bool) -> None:
        self._joints = NewestMessage(node, JointState, 'joint_states')
        self._imu = NewestMessage(node, Imu, 'imu/data')
        self._command = NewestMessage(node, TwistStamped if cmd_vel_stamped else Twist, 'cmd_vel')
        self._odom = NewestMessage(node, Odometry, 'odom') if needs_odom(contract) else None
        self._sensors: dict[str, NewestMessage[Any]] = {
            'joint_states': self._joints,
            'imu/data': self._imu,
        }
        if self._odom:
            self._sensors['odom'] = self._odom
        self._own_commands = _OwnCommands(node)
        self._newest = Inputs(None, None, None, None)
        self._ros_clock = node.get_clock()
        self._commands = node.create_lifecycle_publisher(JointState, 'joint_command', COMMAND_QOS)
        self._steps = node.create_lifecycle_publisher(Float64MultiArray, '~/step', SENSOR_QOS)
        self._out = JointState(name=list(contract.joint_names))
        self._out.header.frame_id = contract.sha256[:16]
        self._step = _step_message(contract)

    def hints(self, node: LifecycleNode) -> dict[str, str]:
        """Say of each silent sensor topic what the graph shows: its publishers, and their fit."""
        return {name: topic.diagnose(node) for name, topic in self._sensors.items()}

    def senders(self, node: LifecycleNode) -> dict[str, str]:
        """Name the publishers of each sensor topic."""
        return {name: ', '.join(topic.senders(node)) for name, topic in self._sensors.items()}

    def destroy(self, node: LifecycleNode) -> None:
        """Remove the topics from the node."""
        for topic in (self._joints, self._imu, self._command, self._odom, self._own_commands):
            if topic:
                topic.destroy(node)
        node.destroy_lifecycle_publisher(self._commands)
        node.destroy_lifecycle_publisher(self._steps)

    def take(self, clock: TickClock, system: SystemTime) -> Inputs:
        """Return the newest sample of every topic; one that has not changed is the same object."""

        def stamps(taken: Taken[Any]) -> Stamps:
            header = getattr(taken.message, 'header', None)
            stamp = header.stamp.sec * 1_000_000_000 + header.stamp.nanosec if header else 0
            received = clock.at(system.monotonic(taken.received))
            transport = taken.received - taken.source
            return Stamps(stamp, taken.source, received, transport, taken.sequence)

        joints, imu, command = self._joints.take(), self._imu.take(), self._command.take()
        odom = self._odom.take() if self._odom else None
        last = self._newest
        self._newest = Inputs(
            joint_sample(joints, stamps(joints)) if joints else last.joints,
            imu_sample(imu, stamps(imu)) if imu else last.imu,
            command_sample(command, stamps(command)) if command else last.command,
            odom_sample(odom, stamps(odom)) if odom else last.odom,
            self._own_commands.stranger(),
        )
        return self._newest

    def publish_command(self, target: Array) -> None:
        """Publish joint targets (N,) rad, stamped with ROS time now."""
        self._out.header.stamp = self._ros_clock.now().to_msg()
        self._out.position = array('d', target)
        self._own_commands.published(self._out.header.stamp)
        self._commands.publish(self._out)

    def publish_step(self, tick: Tick, slot: int, times: tuple[int, ...]) -> None:
        """Publish the observation tape's row, with `times` in ns; see STEP_BLOCKS."""
        if tick.observation is None or tick.action is None:
            return
        stamps = [
            sample.stamps.header * 1e-9 if sample else 0.0
            for sample in (self._newest.joints, self._newest.imu)
        ]
        row = np.concatenate(
            (
                [slot, tick.gait],
                np.array(times) * 1e-9,
                stamps,
                tick.command,
                tick.observation,
                tick.action,
                [tick.verdict.value],
            )
        )
        self._step.data = array('d', row)
        self._steps.publish(self._step)


STEP_BLOCKS = ('tick', 'times', 'sensor_stamps', 'command', 'observation', 'action', 'verdict')
"""`~/step` is these blocks one after another, each a labelled dimension of the layout:
slot and gait tick; scheduled, woken, taken, observed, acted, checked, published (monotonic, s);
header stamps of joint_states and imu/data (s); command (3); observation; raw action; verdict
(0 pass, 1 clip, 2 hold, 3 damp)."""


def _step_message(contract: Contract) -> Float64MultiArray:
    widths = (2, 7, 2, 3, contract.observation_size, len(contract.joint_names), 1)
    message = Float64MultiArray()
    message.layout.dim = [
        MultiArrayDimension(label=label, size=width, stride=width)
        for label, width in zip(STEP_BLOCKS, widths, strict=True)
    ]
    return message
