"""Publishes a simulated robot's sensors: joint_states, imu/data, odom and the clock."""

from array import array
from collections.abc import Sequence

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState

from g1_policy_node.newest import SENSOR_QOS
from g1_policy_node.sim.protocol import Snapshot
from g1_policy_node.types import Array

BASE_FRAME = 'pelvis'
WORLD_FRAME = 'odom'


class SensorPublisher:
    """Turns snapshots into messages. The message objects are made once and reused."""

    def __init__(self, node: Node, joint_names: Sequence[str], with_clock: bool) -> None:
        self._node = node
        self._joints_out = node.create_publisher(JointState, 'joint_states', SENSOR_QOS)
        self._imu_out = node.create_publisher(Imu, 'imu/data', SENSOR_QOS)
        self._odom_out = node.create_publisher(Odometry, 'odom', SENSOR_QOS)
        self._clock_out = node.create_publisher(Clock, '/clock', 1) if with_clock else None
        self._joints = JointState(name=list(joint_names))
        self._imu = Imu()
        self._imu.header.frame_id = BASE_FRAME
        self._odom = Odometry(child_frame_id=BASE_FRAME)
        self._odom.header.frame_id = WORLD_FRAME

    def deaf(self, listeners: Sequence[str]) -> list[str]:
        """Return which of these nodes of this namespace are not known to listen to /clock."""
        node, there = self._node, set()
        for info in node.get_subscriptions_info_by_topic('/clock'):
            if info.node_namespace == node.get_namespace():
                there.add(info.node_name)
        return [name for name in listeners if name not in there]

    def publish(self, snapshot: Snapshot, stamp_ns: int) -> None:
        """Publish the sensors of an instant, stamped with ns of ROS time."""
        stamp = Time(sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
        self._joints_out.publish(self._fill_joints(snapshot, stamp))
        self._imu_out.publish(self._fill_imu(snapshot, stamp))
        self._odom_out.publish(self._fill_odom(snapshot, stamp))

    def publish_clock(self, stamp_ns: int) -> None:
        """Publish /clock, if this simulator has one; after the sensors of its instant."""
        if self._clock_out:
            stamp = Time(sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)
            self._clock_out.publish(Clock(clock=stamp))

    def _fill_joints(self, snapshot: Snapshot, stamp: Time) -> JointState:
        message = self._joints
        message.header.stamp = stamp
        message.position = array('d', snapshot.joint_pos.tobytes())
        message.velocity = array('d', snapshot.joint_vel.tobytes())
        message.effort = array('d', snapshot.joint_effort.tobytes())
        return message

    def _fill_imu(self, snapshot: Snapshot, stamp: Time) -> Imu:
        message = self._imu
        message.header.stamp = stamp
        _fill(message.orientation, snapshot.quat_xyzw)
        _fill(message.angular_velocity, snapshot.ang_vel)
        _fill(message.linear_acceleration, snapshot.lin_acc)
        return message

    def _fill_odom(self, snapshot: Snapshot, stamp: Time) -> Odometry:
        message = self._odom
        message.header.stamp = stamp
        _fill(message.pose.pose.position, snapshot.position)
        _fill(message.pose.pose.orientation, snapshot.quat_xyzw)
        _fill(message.twist.twist.linear, snapshot.lin_vel)
        _fill(message.twist.twist.angular, snapshot.ang_vel)
        return message


def _fill(field: object, values: Array) -> None:
    """Set x, y, z and, of a quaternion, w."""
    for name, value in zip('xyzw', values.tolist(), strict=False):
        setattr(field, name, value)
