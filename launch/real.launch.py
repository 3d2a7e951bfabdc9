"""The real robot: bridge and router. Read docs/BRINGUP.md first."""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from g1_policy_node.launching import REAL, declare, real


def generate_launch_description() -> LaunchDescription:
    arguments = declare(REAL, auto_run='false', cmd_source='false', duration='0.0')
    return LaunchDescription([*arguments, OpaqueFunction(function=real)])
