"""Prints how far a healthy walk goes: the source of the numbers in config/safety.yaml.

The shipped policy in MuJoCo at a grid of trained commands, 10 s each, undisturbed and with
0.5 m/s pushes every 3 s, sensor data one tick old at most. Usage: python bench/healthy_limits.py
"""

import itertools
import sys

import numpy as np

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.contract import Contract
from g1_policy_node.policy import Policy
from g1_policy_node.sim.robot import MujocoRobot

COMMANDS = list(itertools.product((-0.5, 0.0, 0.5, 1.0), (-0.4, 0.0, 0.4), (-0.8, 0.0, 0.8)))
TICKS = 500


def rollout(
    robot: MujocoRobot, policy: Policy, contract: Contract, command: np.ndarray, push: float
) -> dict[str, float]:
    """Walk for TICKS ticks; return the largest excursion of each figure."""
    low, high = contract.per_joint('position_limits').T
    speed_limit = contract.per_joint('velocity_limit')
    kp, kd = contract.per_joint('stiffness'), contract.per_joint('damping')
    effort = contract.per_joint('effort_limit_hardware')
    rng = np.random.default_rng(0)
    robot.reset()
    policy.reset()
    previous = contract.per_joint('default_position')
    worst: dict[str, float] = {}
    for k in range(TICKS):
        state = robot.state()
        step = policy.step(state, command, k)
        torque = np.abs(kp * (step.target - state.joint_pos) - kd * state.joint_vel)
        figures = {
            'target beyond limit [rad]': np.max(np.maximum(step.target - high, low - step.target)),
            'target rate [rad/s]': np.max(np.abs(step.target - previous)) / contract.step_dt,
            'tilt [rad]': np.arccos(np.clip(-state.gravity[2], -1, 1)),
            'base rate [rad/s]': np.max(np.abs(state.ang_vel)),
            'joint speed / limit': np.max(np.abs(state.joint_vel) / speed_limit),
            'predicted torque / hardware': np.max(torque / effort),
            'raw action': np.max(np.abs(step.action)),
        }
        worst = {key: max(worst.get(key, 0.0), float(value)) for key, value in figures.items()}
        previous = step.target
        if push and k % 150 == 149:
            angle = rng.uniform(-np.pi, np.pi)
            robot.push(push * np.array([np.cos(angle), np.sin(angle)]))
        for _ in range(round(contract.step_dt / robot.physics_dt)):
            robot.step(step.target)
    if robot.fallen:
        print(f'  fell at {command} with pushes of {push} m/s: left out')
        return {}
    return worst


def main(name: str = 'g1_walk') -> None:
    """Print the largest excursions over all commands, without and with pushes."""
    bundle = load_bundle(resolve_bundle(name))
    policy = Policy(bundle.contract, load_actor(bundle.contract.network, bundle.weights, 'cpu'))
    robot = MujocoRobot(bundle.contract)
    for push in (0.0, 0.5):
        worst: dict[str, tuple[float, tuple[float, ...]]] = {}
        for command in COMMANDS:
            print(f'\r  push {push}: {command}   ', end='', flush=True)
            figures = rollout(robot, policy, bundle.contract, np.array(command), push)
            for key, value in figures.items():
                worst[key] = max(worst.get(key, (0.0, ())), (value, command))
        print(f'\rpushes of {push} m/s:                              ')
        for key, (value, command) in worst.items():
            print(f'  {key:<28} {value:8.3f}  at {command}')


if __name__ == '__main__':
    main(*sys.argv[1:])
