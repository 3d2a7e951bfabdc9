"""Training: `ros2 launch g1_policy_node train.launch.py num_envs:=4096 device:=cuda:0`."""

from dataclasses import fields

from launch import LaunchDescription
from launch.actions import OpaqueFunction

from g1_policy_node.launching import ISAAC_PYTHON, declare, train
from g1_policy_node.training.options import TrainOptions


def generate_launch_description() -> LaunchDescription:
    names = [item.name for item in fields(TrainOptions)]
    arguments = [*declare(names, TrainOptions), *declare([ISAAC_PYTHON])]
    return LaunchDescription([*arguments, OpaqueFunction(function=train)])
