"""The real robot: bridge and router. Read docs/BRINGUP.md first."""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from g1_policy_node.launching import REAL, REAL_DEFAULTS, declare, real


def generate_launch_description() -> LaunchDescription:
    arguments = declare(REAL, **REAL_DEFAULTS)
    return LaunchDescription([*arguments, OpaqueFunction(function=real)])
