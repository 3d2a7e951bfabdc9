"""The executable mujoco_sim: the G1 in MuJoCo on the CPU."""

import importlib.util
import sys
from collections.abc import Sequence

from g1_policy_node.contract import Contract
from g1_policy_node.sim.process import run_simulator
from g1_policy_node.sim.protocol import Robot
from g1_policy_node.types import UserError


def make_robot(contract: Contract, physics_dt: float) -> Robot:
    """Build the robot; UserError says what to install."""
    if importlib.util.find_spec('mujoco') is None:
        raise UserError('mujoco is not installed: pip install mujoco==4.0.0')
    from g1_policy_node.sim.robot import MujocoRobot  # needs mujoco, which a robot has not

    return MujocoRobot(contract, physics_dt)


def main(args: Sequence[str] | None = None) -> int:
    """Run the simulator until it is stopped; see the README for its parameters."""
    return run_simulator(make_robot, args)


if __name__ == '__main__':
    sys.exit(main())
