"""The simulator alone: the robot's topics and services, for a router started elsewhere."""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from g1_policy_node.launching import SIM, declare, sim


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription([*declare(SIM), OpaqueFunction(function=sim)])
