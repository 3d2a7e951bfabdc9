"""Prints how far a healthy walk goes: the source of the numbers in config/safety.yaml.

The shipped policy in MuJoCo at a grid of trained commands, 10 s each, undisturbed and with
pushes of 0.5 and 0.8 m/s every 3 s, sensor data one tick old at most.
Usage: python bench/healthy_limits.py
"""

import itertools
import sys

import numpy as np

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import Bundle, load_bundle, resolve_bundle
from g1_policy_node.consistency import FrozenCheck, GravityCheck, VelocityCheck
from g1_policy_node.policy import Policy, PolicyStep
from g1_policy_node.safety import TrainedRange
from g1_policy_node.sim.protocol import Snapshot
from g1_policy_node.sim.robot import MujocoRobot

COMMANDS = list(itertools.product((-0.5, 0.0, 0.5, 1.0), (-0.4, 0.0, 0.4), (-0.8, 0.0, 0.8)))
TICKS = 500


class Excursions:
    """The figures of one rollout, tick by tick: those that config/safety.yaml limits."""

    def __init__(self, bundle: Bundle) -> None:
        contract = bundle.contract
        self.low, self.high = contract.per_joint('position_limits').T
        self.speed = contract.per_joint('velocity_limit')
        self.kp, self.kd = contract.per_joint('stiffness'), contract.per_joint('damping')
        self.effort = contract.per_joint('effort_limit_hardware')
        self.step_dt = contract.step_dt
        self.previous = contract.per_joint('default_position')
        trained = TrainedRange(contract, bundle.golden_observations, 0.0)
        self.seen = trained.low, trained.high
        self.span = np.empty_like(trained.low)
        at = 0
        for row in contract.observations:
            term = slice(at, at + row.width)
            self.span[term] = trained.high[term].max() - trained.low[term].min()
            at += row.width
        self.velocity = VelocityCheck(len(contract.joint_names), np.inf)
        self.gravity, self.frozen = GravityCheck(), FrozenCheck()
        self.worst: dict[str, float] = {}

    def add(self, now: int, truth: Snapshot, step: PolicyStep) -> None:
        """Take a tick at `now`, ns."""
        observation, action, target = step
        state = truth.state()
        torque = self.kp * (target - state.joint_pos) - self.kd * state.joint_vel
        low, high = self.seen
        for field, values in (('q', state.joint_pos), ('dq', state.joint_vel)):
            self.frozen.update(field, values, now)
        for field, values in (('gravity', state.gravity), ('w', state.ang_vel)):
            self.frozen.update(field, values, now)
        figures = {
            'target beyond limit [rad]': np.max(np.maximum(target - self.high, self.low - target)),
            'target rate [rad/s]': np.max(np.abs(target - self.previous)) / self.step_dt,
            'tilt [rad]': np.arccos(np.clip(-state.gravity[2], -1, 1)),
            'base rate [rad/s]': np.max(np.abs(state.ang_vel)),
            'base speed [m/s]': np.max(np.abs(truth.lin_vel)),
            'joint speed / limit': np.max(np.abs(state.joint_vel) / self.speed),
            'joint beyond limit [rad]': np.max(
                np.maximum(state.joint_pos - self.high, self.low - state.joint_pos)
            ),
            'predicted torque / hardware': np.max(np.abs(torque) / self.effort),
            'raw action': np.max(np.abs(action)),
            'observation beyond golden / span': np.max(
                np.maximum(observation - high, low - observation) / self.span
            ),
            'velocity error [rad/s]': np.max(
                np.abs(self.velocity.update(state.joint_pos, state.joint_vel, now))
            ),
            'gravity error [rad]': self.gravity.update(state.gravity, truth.lin_acc, now),
            'unchanged for [s]': self.frozen.longest(now)[1] * 1e-9,
        }
        self.previous = target
        for key, value in figures.items():
            self.worst[key] = max(self.worst.get(key, -np.inf), float(value))


def rollout(
    robot: MujocoRobot, policy: Policy, bundle: Bundle, command: np.ndarray, push: float
) -> dict[str, float]:
    """Walk for TICKS ticks; return the largest excursion of each figure."""
    rng = np.random.default_rng(0)
    robot.reset()
    policy.reset()
    excursions = Excursions(bundle)
    tick_ns = round(bundle.contract.step_dt * 1e9)
    for k in range(TICKS):
        truth = robot.snapshot()
        step = policy.step(truth.state(), command, k)
        excursions.add((k + 1) * tick_ns, truth, step)
        if push and k % 150 == 149:
            angle = rng.uniform(-np.pi, np.pi)
            robot.push(push * np.array([np.cos(angle), np.sin(angle)]))
        for _ in range(round(bundle.contract.step_dt / robot.physics_dt)):
            robot.step(step.target)
    if robot.fallen:
        print(f'  fell at {command} with pushes of {push} m/s: left out')
        return {}
    return excursions.worst


def main(name: str = 'g1_walk') -> None:
    """Print the largest excursions over all commands, without and with pushes."""
    bundle = load_bundle(resolve_bundle(name))
    policy = Policy(bundle.contract, load_actor(bundle.contract.network, bundle.weights, 'cpu'))
    robot = MujocoRobot(bundle.contract)
    for push in (0.0, 0.5, 0.8):
        worst: dict[str, tuple[float, tuple[float, ...]]] = {}
        for command in COMMANDS:
            print(f'\r  push {push}: {command}   ', end='', flush=True)
            figures = rollout(robot, policy, bundle, np.array(command), push)
            for key, value in figures.items():
                worst[key] = max(worst.get(key, (-np.inf, ())), (value, command))
        print(f'\rpushes of {push} m/s:                              ')
        for key, (value, command) in worst.items():
            print(f'  {key:<34} {value:8.3f}  at {command}')


if __name__ == '__main__':
    main(*sys.argv[1:])
