"""The executable isaac_sim: the G1 in Isaac Lab, on the GPU where there is one."""

import importlib.util
import sys
from collections.abc import Sequence

from g1_policy_node.contract import Contract
from g1_policy_node.sim.process import run_simulator
from g1_policy_node.sim.protocol import Robot
from g1_policy_node.types import UserError


def make_robot(contract: Contract, physics_dt: float) -> Robot:
    """Build the robot; UserError says what to install."""
    if importlib.util.find_spec('isaaclab') is None:
        raise UserError('Isaac Lab is not installed: make train-env')
    from g1_policy_node.sim.isaac_robot import IsaacRobot  # takes seconds, and Isaac Lab

    return IsaacRobot(contract, physics_dt)


def main(args: Sequence[str] | None = None) -> int:
    """Run the simulator until it is stopped; its parameters are those of mujoco_sim."""
    return run_simulator(make_robot, args)


if __name__ == '__main__':
    sys.exit(main())
