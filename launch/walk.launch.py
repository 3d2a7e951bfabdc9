"""The walk: simulator, router, command source; the evidence is merged at the end."""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from g1_policy_node.launching import WALK, declare, walk


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*declare(WALK), OpaqueFunction(function=walk)])
