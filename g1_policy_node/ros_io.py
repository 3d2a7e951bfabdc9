"""Messages to types and back, for the router. The only file that knows message layouts."""

from collections import deque
from typing import Any

import numpy as np
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.lifecycle import LifecycleNode
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from g1_policy_node.cdr import (
    ImuBytes,
    JointCommandTemplate,
    JointStateBytes,
    NumbersTemplate,
)
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
from g1_policy_node.wire import imu_reader, joint_state_reader


def joint_sample(read: JointStateBytes, stamps: Stamps) -> JointSample:
    """Return a JointState's names, positions (rad) and velocities (rad/s) as they came."""
    return JointSample(read.names, read.position, read.velocity, stamps)


def imu_sample(read: ImuBytes, stamps: Stamps) -> ImuSample:
    """Return an Imu's fields; sensor_msgs marks an absent field by -1 in its covariance."""
    n = read.numbers
    absent = ''
    if n[4] == -1.0 or n[16] == -1.0:
        fields = (('orientation', n[4]), ('angular velocity', n[16]))
        absent = ' and no '.join(name for name, covariance in fields if covariance == -1.0)
    return ImuSample(read.frame_id, n[:4], n[13:16], n[25:28], absent, stamps)


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

    def published(self, message: bytes) -> None:
        """Note a message of our own."""
        self._published += 1
        self._own.append((self._published, bytes(message[_STAMP])))

    def stranger(self) -> str:
        """Name who may have sent the newest message since the last look; '' if it was us."""
        taken = self.take()
        if taken is None or (taken.sequence, taken.message[_STAMP]) in self._own:
            return ''
        others = self.senders(self._node)
        me = self._node.get_fully_qualified_name()
        if me in others:
            others.remove(me)
        return ', '.join(others) or 'a sender that is gone'


_STAMP = slice(4, 12)
"""Header.stamp in CDR: after four bytes that say how it is encoded."""


class RouterIo:
    """The router's topics. Taking and publishing are for the control thread alone."""

    def __init__(self, node: LifecycleNode, contract: Contract, cmd_vel_stamped: bool) -> None:
        self._joints = NewestMessage(node, JointState, 'joint_states', raw=True)
        self._imu = NewestMessage(node, Imu, 'imu/data', raw=True)
        self._read_joints, self._read_imu = joint_state_reader(), imu_reader()
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
        self._stranger = ''
        self._ros_clock = node.get_clock()
        self._commands = node.create_lifecycle_publisher(JointState, 'joint_command', COMMAND_QOS)
        self._steps = node.create_lifecycle_publisher(Float64MultiArray, '~/step', SENSOR_QOS)
        self._command_template = _command_template(contract)
        self._step = _step_template(contract)

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

    def take_before(self, clock: TickClock, system: SystemTime) -> None:
        """Take, shortly before a tick, what may be older than the sensors: the commands.

        It shortens the tick, and leaves the code that the tick is about to run in the caches.
        """
        if taken := self._command.take():
            stamps = _stamps(taken, _header(taken.message), clock, system)
            self._newest = self._newest._replace(command=command_sample(taken, stamps))
        self._stranger = self._own_commands.stranger() or self._stranger

    def take(self, clock: TickClock, system: SystemTime) -> Inputs:
        """Return the newest sample of every topic; one that has not changed is the same object."""
        joints, imu, command, odom, _ = self._newest
        if taken := self._joints.take():
            state = self._read_joints.read(taken.message)
            joints = joint_sample(state, _stamps(taken, state.stamp, clock, system))
        if taken := self._imu.take():
            inertial = self._read_imu.read(taken.message)
            imu = imu_sample(inertial, _stamps(taken, inertial.stamp, clock, system))
        if self._odom and (taken := self._odom.take()):
            odom = odom_sample(taken, _stamps(taken, _header(taken.message), clock, system))
        self._newest = Inputs(joints, imu, command, odom, self._stranger)
        self._stranger = ''
        return self._newest

    def publish_command(self, target: Array) -> None:
        """Publish joint targets (N,) rad, stamped with ROS time now."""
        stamp = self._ros_clock.now().nanoseconds
        message = self._command_template.fill(stamp, target)
        self._own_commands.published(message)
        self._commands.publish(message)

    def publish_step(self, tick: Tick, slot: int, times: tuple[int, ...]) -> None:
        """Publish the observation tape's row, with `times` in ns; see STEP_BLOCKS."""
        if tick.observation is None or tick.action is None:
            return
        stamps = [
            sample.stamps.header * 1e-9 if sample else 0.0
            for sample in (self._newest.joints, self._newest.imu)
        ]
        np.concatenate(
            (
                [slot, tick.gait],
                np.array(times) * 1e-9,
                stamps,
                tick.command,
                tick.observation,
                tick.action,
                [tick.verdict.value],
            ),
            out=self._step.numbers,
        )
        self._steps.publish(self._step.message())


STEP_BLOCKS = ('tick', 'times', 'sensor_stamps', 'command', 'observation', 'action', 'verdict')
"""`~/step` is these blocks one after another, each a labelled dimension of the layout:
slot and gait tick; scheduled, woken, taken, observed, acted, checked, published (monotonic, s);
header stamps of joint_states and imu/data (s); command (3); observation; raw action; verdict
(0 pass, 1 clip, 2 hold, 3 damp)."""


def _stamps(taken: Taken[Any], header: int, clock: TickClock, system: SystemTime) -> Stamps:
    received = clock.at(system.monotonic(taken.received))
    return Stamps(header, taken.source, received, taken.received - taken.source, taken.sequence)


def _header(message: Twist | TwistStamped | Odometry) -> int:
    """Return the header's stamp in ns, 0 where the message has none."""
    if isinstance(message, Twist):
        return 0
    stamp: int = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
    return stamp


def _command_template(contract: Contract) -> JointCommandTemplate:
    names = list(contract.joint_names)
    message = JointState(name=names, position=[0.0] * len(names))
    message.header.frame_id = contract.sha256[:16]
    return JointCommandTemplate(serialize_message(message))


def _step_template(contract: Contract) -> NumbersTemplate:
    widths = (2, 7, 2, 3, contract.observation_size, len(contract.joint_names), 1)
    message = Float64MultiArray(data=[0.0] * sum(widths))
    message.layout.dim = [
        MultiArrayDimension(label=label, size=width, stride=width)
        for label, width in zip(STEP_BLOCKS, widths, strict=True)
    ]
    return NumbersTemplate(serialize_message(message), sum(widths))
