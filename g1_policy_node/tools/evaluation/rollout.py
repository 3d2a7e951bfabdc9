"""Runs a case: the node's own policy step and the simulator's robot, in one process."""

import math
from collections import deque
from typing import Any, NamedTuple

import mujoco
import numpy as np

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import Bundle
from g1_policy_node.policy import Policy
from g1_policy_node.sim.robot import MujocoRobot
from g1_policy_node.tools.evaluation.plan import UNCHANGED, Case, Condition, Noise, Plan
from g1_policy_node.tools.motion import yaw
from g1_policy_node.types import Array, RobotState

TRUNK = 'torso_link'

_LONGEST_PHYSICS_DT = 0.005


class Track(NamedTuple):
    """A run, a row for each of its T ticks, as it was when the tick began.

    `velocity` (T, 3) vx, vy, wz in the base frame; `position` (T, 2) m and `yaw` (T,) rad in the
    world, without jumps; `joint_pos`, `target` (T, N) rad; `torque` (T, N) N m, what the motors
    are asked for by the new target; `power` (T,) W, of all joints, the mean of the tick;
    `self_contact` (T,) whether one part of the robot touched another in the tick. It fell after
    `fell_at` s, None if it did not.
    """

    velocity: Array
    position: Array
    yaw: Array
    joint_pos: Array
    target: Array
    torque: Array
    power: Array
    self_contact: Array
    fell_at: float | None


class Bench:
    """A policy and its robots: one for each condition met so far."""

    def __init__(self, bundle: Bundle, plan: Plan) -> None:
        contract = bundle.contract
        self._contract, self._plan = contract, plan
        self._policy = Policy(contract, load_actor(contract.network, bundle.weights, 'cpu'))
        self._substeps = math.ceil(contract.step_dt / _LONGEST_PHYSICS_DT - 1e-9)
        self._robots: dict[tuple[float, float], MujocoRobot] = {}
        self._stiffness = contract.per_joint('stiffness')
        self._damping = contract.per_joint('damping')
        self._default = contract.per_joint('default_position')

    def run(self, case: Case) -> Track:
        """Walk until the end or a fall. The gait begins at tick 0, as when the node enters RUN."""
        conditions = {UNCHANGED: Condition(), **self._plan.conditions}
        condition = conditions[case.condition]
        robot, step_dt = self._robot(condition), self._contract.step_dt
        self._policy.reset()
        # Not clipped to the trained range: every policy is asked for the same.
        command = np.array(case.command)
        rng = np.random.default_rng(case.seed)
        kicks = _Kicks(case.kick, self._plan.kicks.apart, np.random.default_rng(case.seed))
        late = round(condition.delay * self._substeps / step_dt)
        coming = deque([self._default] * late)
        rows, fell_at = [], None
        truth = robot.snapshot()
        for k in range(round(self._plan.seconds / step_dt)):
            state = truth.state()
            seen = _noisy(state, self._plan.noise, rng) if condition.noise else state
            target = self._policy.step(seen, command, k).target
            asked = self._stiffness * (target - state.joint_pos) - self._damping * state.joint_vel
            if kicks.due(k * step_dt):
                robot.push(kicks.velocity())
            power, touches = 0.0, False
            for _ in range(self._substeps):
                coming.append(target)
                robot.step(coming.popleft())
                power += robot.joint_power() / self._substeps
                touches |= robot.touches_itself
            velocity = (*truth.lin_vel[:2], truth.ang_vel[2])
            rows.append((velocity, truth, target, asked, power, touches))
            truth = robot.snapshot()
            if truth.fallen:
                fell_at = (k + 1) * step_dt
                break
        return _track(rows, fell_at)

    def _robot(self, condition: Condition) -> MujocoRobot:
        """Return the robot of a condition, standing."""
        key = (condition.friction, condition.trunk_mass)
        if key not in self._robots:
            robot = MujocoRobot(self._contract, self._contract.step_dt / self._substeps)
            # A contact takes the larger friction of its two: the floor's alone would be nothing.
            robot.model.geom_friction[:, 0] = condition.friction
            trunk = robot.model.body(TRUNK).id
            robot.model.body_mass[trunk] *= condition.trunk_mass
            robot.model.body_inertia[trunk] *= condition.trunk_mass
            mujoco.mj_setConst(robot.model, robot.data)
            self._robots[key] = robot
        self._robots[key].reset()
        return self._robots[key]


class _Kicks:
    """When the next kick comes, and which way; `speed` 0 gives none."""

    def __init__(
        self, speed: float, apart: tuple[float, float], random: np.random.Generator
    ) -> None:
        self._speed, self._apart, self._random = speed, apart, random
        self._next = random.uniform(*apart) if speed else math.inf

    def due(self, seconds: float) -> bool:
        """Tell whether a kick is due, and settle the time of the one after it."""
        if seconds < self._next:
            return False
        self._next += self._random.uniform(*self._apart)
        return True

    def velocity(self) -> Array:
        """Return what the kick adds (2,), m/s in the world."""
        angle = self._random.uniform(0.0, 2.0 * math.pi)
        return self._speed * np.array([math.cos(angle), math.sin(angle)])


def _noisy(state: RobotState, noise: Noise, random: np.random.Generator) -> RobotState:
    def read(value: Array, most: float) -> Array:
        return value + random.uniform(-most, most, value.shape)

    return RobotState(
        joint_pos=read(state.joint_pos, noise.joint_pos),
        joint_vel=read(state.joint_vel, noise.joint_vel),
        ang_vel=read(state.ang_vel, noise.ang_vel),
        gravity=read(state.gravity, noise.gravity),
        lin_vel=None if state.lin_vel is None else read(state.lin_vel, noise.lin_vel),
    )


def _track(rows: list[tuple[Any, ...]], fell_at: float | None) -> Track:
    velocity, truth, target, torque, power, touches = zip(*rows, strict=True)
    quats = np.array([snapshot.quat_xyzw for snapshot in truth])
    return Track(
        velocity=np.array(velocity),
        position=np.array([snapshot.position[:2] for snapshot in truth]),
        yaw=yaw(quats),
        joint_pos=np.array([snapshot.joint_pos for snapshot in truth]),
        target=np.array(target),
        torque=np.array(torque),
        power=np.array(power),
        self_contact=np.array(touches),
        fell_at=fell_at,
    )
