"""A tape in place of the robot: its sensors and commands, and the node behind them."""

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from g1_policy_node.launching import REPLAY, declare, declare_replay, replay


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [*declare_replay(), *declare(REPLAY), OpaqueFunction(function=replay)]
    )
