"""The safety gate: what may become a joint target. Pure; each layer has its own counter."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from g1_policy_node.contract import Contract
from g1_policy_node.schema import build, read_yaml
from g1_policy_node.types import Array, Fault, RobotState, UserError, Verdict


@dataclass(frozen=True)
class SafetyLimits:
    """The numbers of config/safety.yaml, where each has its source. SI units, rad."""

    position_margin: float
    max_target_rate: float
    max_tilt: float
    quaternion_tolerance: float
    max_joint_velocity_ratio: float
    max_ang_vel: float
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


class Checked(NamedTuple):
    """The gate's answer: the safe target (N,) rad (None with a fault), verdict and fault."""

    target: Array | None
    verdict: Verdict
    fault: Fault | None


class SafetyGate:
    """Checks a policy's action and target against the robot's state and the last target."""

    def __init__(self, contract: Contract, limits: SafetyLimits) -> None:
        self.limits = limits
        self._names = contract.joint_names
        low, high = contract.per_joint('position_limits').T
        self._low, self._high = low - limits.position_margin, high + limits.position_margin
        self._step_dt = contract.step_dt
        self.counters = {
            'action_not_finite': 0,
            'tilt': 0,
            'target_position_clipped': 0,
            'target_rate_clipped': 0,
        }

    def tilt_fault(self, state: RobotState) -> Fault | None:
        """Return a fault if the base leans more than `max_tilt` from upright."""
        tilt = math.acos(max(-1.0, min(1.0, -float(state.gravity[2]))))
        if tilt <= self.limits.max_tilt:
            return None
        return Fault('tilt', f'tilted by {tilt:.1f} rad, limit {self.limits.max_tilt:g}')

    def action_fault(self, action: Array) -> Fault | None:
        """Return a fault naming the joint whose raw action (N,) is not finite."""
        bad = np.flatnonzero(~np.isfinite(action))
        if not bad.size:
            return None
        self.counters['action_not_finite'] += 1
        return Fault('action_not_finite', f'action of {self._names[bad[0]]} is not finite')

    def check(self, target: Array, previous: Array) -> Checked:
        """Clip a finite target (N,) rad to the joint limits and to the rate from `previous`."""
        within = np.clip(target, self._low, self._high)
        self.counters['target_position_clipped'] += int(np.any(within != target))
        step = self.limits.max_target_rate * self._step_dt
        safe = np.clip(within, previous - step, previous + step)
        self.counters['target_rate_clipped'] += int(np.any(safe != within))
        clipped = bool(np.any(safe != target))
        return Checked(safe, Verdict.CLIP if clipped else Verdict.PASS, None)
