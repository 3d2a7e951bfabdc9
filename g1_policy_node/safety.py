"""The safety gate: what may become a joint target. Pure; each layer has its own counter.

| layer | response |
|---|---|
| `state_fault`: tilt | DAMP |
| `state_fault`: angular rate of the base | HOLD |
| `observation_fault`: finite, and within what training saw | HOLD |
| `action_fault`: finite | HOLD |
| `check`: position limits, predicted PD torque, target rate | clip |
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.contract import Contract
from g1_policy_node.schema import build, read_yaml
from g1_policy_node.types import Array, Fault, RobotState, UserError, Verdict, every


@dataclass(frozen=True)
class SafetyLimits:
    """The numbers of config/safety.yaml, where each has its source. SI units, rad."""

    position_margin: float
    max_torque_ratio: float
    max_target_rate: float
    observation_margin: float
    max_tilt: float
    max_base_rate: float
    max_gravity_error: float
    max_velocity_error: float
    velocity_error_time: float
    frozen_time: float
    max_missed_slots: float
    measured_margin: float
    quaternion_tolerance: float
    max_joint_velocity_ratio: float
    max_ang_vel: float
    max_lin_vel: float
    ramp_rate: float
    ramp_tolerance: float
    ramp_follow_error: float
    ramp_follow_time: float
    start_tolerance: float


@dataclass(frozen=True)
class LimitEntry:
    """One row of config/safety.yaml: a value, what it means, and where it comes from."""

    value: float
    meaning: str
    source: str


def load_limits(path: Path) -> Mapping[str, LimitEntry]:
    """Read config/safety.yaml; UserError names every missing or unknown limit."""
    table: Mapping[str, LimitEntry] = build(Mapping[str, LimitEntry], read_yaml(path), str(path))
    names = {f.name for f in dataclasses.fields(SafetyLimits)}
    wrong = sorted(names ^ set(table))
    if wrong:
        raise UserError(f'{path}: missing or unknown limits: {", ".join(wrong)}')
    return table


class TrainedRange:
    """What the observations of training cover: those of a bundle's golden rollout, widened.

    `margin` is a share of the span of a whole term, as single joints may hardly move in one
    rollout. Commands are in range wherever the contract says so.
    """

    def __init__(self, contract: Contract, golden: NDArray[np.float32], margin: float) -> None:
        low, high = golden.min(axis=0).astype(float), golden.max(axis=0).astype(float)
        self.labels: list[str] = []
        at = 0
        for row in contract.observations:
            term = slice(at, at + row.width)
            if row.term == 'velocity_commands':
                limits = np.tile(contract.command_limits * row.scale, (row.history, 1))
                low[term] = np.minimum(low[term], limits[:, 0])
                high[term] = np.maximum(high[term], limits[:, 1])
            room = margin * max(float(high[term].max() - low[term].min()), 1e-3)
            low[term] -= room
            high[term] += room
            self.labels += [f'{row.term}[{i}]' for i in range(row.width)]
            at += row.width
        self.low, self.high = low, high


class Checked(NamedTuple):
    """The gate's answer: the safe target (N,) rad, and whether it had to be altered."""

    target: Array
    verdict: Verdict


class SafetyGate:
    """Checks a policy's action and target against the robot's state and the last target."""

    def __init__(
        self, contract: Contract, limits: SafetyLimits, golden: NDArray[np.float32]
    ) -> None:
        self.limits = limits
        self.trained = TrainedRange(contract, golden, limits.observation_margin)
        self._names = contract.joint_names
        low, high = contract.per_joint('position_limits').T
        self._low, self._high = low - limits.position_margin, high + limits.position_margin
        self._step = limits.max_target_rate * contract.step_dt
        stiffness = contract.per_joint('stiffness')
        self._lead = contract.per_joint('damping') / stiffness
        self._reach = (
            contract.per_joint('effort_limit_hardware') * limits.max_torque_ratio / stiffness
        )
        self.counters = dict.fromkeys(
            (
                'tilt',
                'base_rate',
                'observation_not_finite',
                'observation_range',
                'action_not_finite',
                'target_position_clipped',
                'target_torque_clipped',
                'target_rate_clipped',
            ),
            0,
        )

    def state_fault(self, state: RobotState) -> Fault | None:
        """Return a fault if the base leans more than `max_tilt` or turns over too fast."""
        tilt = math.acos(max(-1.0, min(1.0, -float(state.gravity[2]))))
        if tilt > self.limits.max_tilt:
            return self._count('tilt', f'tilted by {tilt:.1f} rad, limit {self.limits.max_tilt:g}')
        rate = max(map(abs, state.ang_vel.tolist()))
        if rate > self.limits.max_base_rate:
            limit = self.limits.max_base_rate
            return self._count('base_rate', f'turning at {rate:.1f} rad/s, limit {limit:g}')
        return None

    def observation_fault(self, observation: NDArray[np.float32]) -> Fault | None:
        """Return a fault naming the entry (n,) that is not finite or that training never saw."""
        low, high = self.trained.low, self.trained.high
        inside = (observation >= low) & (observation <= high)
        if every(inside):
            return None
        at = int(inside.argmin())
        value, label = float(observation[at]), self.trained.labels[at]
        if not math.isfinite(value):
            return self._count('observation_not_finite', f'observation {label} is not finite')
        seen = f'training saw {low[at]:.2f} to {high[at]:.2f}, margin included'
        return self._count('observation_range', f'observation {label} is {value:.2f}: {seen}')

    def action_fault(self, action: Array) -> Fault | None:
        """Return a fault naming the joint whose raw action (N,) is not finite."""
        finite = np.isfinite(action)
        if every(finite):
            return None
        name = self._names[int(finite.argmin())]
        return self._count('action_not_finite', f'action of {name} is not finite')

    def check(self, target: Array, previous: Array, state: RobotState) -> Checked:
        """Clip a finite target (N,) rad to what the joints, their motors and `previous` allow."""
        within, bearable, safe = self._clip(target, previous, state)
        if every(safe == target) and every(bearable == target):
            return Checked(safe, Verdict.PASS)
        self.counters['target_position_clipped'] += int((within != target).any())
        self.counters['target_torque_clipped'] += int((bearable != within).any())
        self.counters['target_rate_clipped'] += int((safe != bearable).any())
        clipped = bool((safe != target).any())
        return Checked(safe, Verdict.CLIP if clipped else Verdict.PASS)

    def check_rows(
        self, target: Array, previous: Array, state: RobotState
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Clip T rows (T, N) at once; return the safe targets and which rows (T,) were altered.

        `previous` and the arrays of `state` have T rows too. Nothing is counted.
        """
        safe = self._clip(target, previous, state)[-1]
        return safe, (safe != target).any(axis=-1)

    def _clip(self, target: Array, previous: Array, state: RobotState) -> tuple[Array, ...]:
        """Return the target within position limits, bearable for the motors, and in reach."""
        low, high = self._low, self._high
        within = np.minimum(np.maximum(target, low), high)
        # kp (target - q) - kd dq is within the torque: solved for the target.
        centre = self._lead * state.joint_vel
        centre += state.joint_pos
        bearable = np.maximum(within, centre - self._reach)
        centre += self._reach
        np.minimum(bearable, centre, out=bearable)
        np.minimum(np.maximum(bearable, low, out=bearable), high, out=bearable)
        safe = np.maximum(bearable, previous - self._step)
        return within, bearable, np.minimum(safe, previous + self._step, out=safe)

    def _count(self, name: str, reason: str) -> Fault:
        self.counters[name] += 1
        return Fault(name, reason)
