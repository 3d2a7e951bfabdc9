"""The topics of a tape, by their name inside a robot's namespace, and their types."""

from collections.abc import Mapping

STEP = 'g1_policy/step'
MODE = 'g1_policy/mode'
JOINTS = 'joint_states'
IMU = 'imu/data'
COMMAND = 'cmd_vel'
ODOM = 'odom'
TARGETS = 'joint_command'

TYPES: Mapping[str, tuple[str, ...]] = {
    JOINTS: ('sensor_msgs/msg/JointState',),
    IMU: ('sensor_msgs/msg/Imu',),
    COMMAND: ('geometry_msgs/msg/Twist', 'geometry_msgs/msg/TwistStamped'),
    ODOM: ('nav_msgs/msg/Odometry',),
    TARGETS: ('sensor_msgs/msg/JointState',),
    STEP: ('std_msgs/msg/Float64MultiArray',),
    MODE: ('std_msgs/msg/String',),
}

PLAYED = (JOINTS, IMU, COMMAND, ODOM)
"""What a replay publishes: sensors and the velocity command, never a joint target."""
