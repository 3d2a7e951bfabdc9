"""From tracks to figures: of one run, and of a whole evaluation."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from g1_policy_node.contract import Contract
from g1_policy_node.tools.evaluation.plan import (
    COMMANDS,
    STRAIGHT,
    TURNING,
    UNCHANGED,
    Case,
    Plan,
)
from g1_policy_node.types import Array

if TYPE_CHECKING:  # MuJoCo is not needed to show what was measured.
    from g1_policy_node.tools.evaluation.rollout import Track

Row = Mapping[str, Any]
"""The figures of one run, ready for JSON."""

PATH_STEP = 0.2
"""Seconds between the points of a path."""

LEAST_DISTANCE = 0.5
"""Metres in a run, below which a figure per metre says nothing."""


class Figure(NamedTuple):
    """What a figure means, its unit, and how many digits of it say something."""

    meaning: str
    unit: str
    digits: int


_FIXED = {
    'vx_error': Figure('error of the mean vx, straight commands', 'm/s', 3),
    'vy_error': Figure('error of the mean vy, straight commands', 'm/s', 3),
    'wz_error': Figure('error of the mean wz, turning commands', 'rad/s', 3),
    'drift_m': Figure('drift aside per 10 m forward', 'm', 2),
    'drift_deg': Figure('turn per 10 m forward', 'deg', 1),
    'drift_back_m': Figure('drift aside per 10 m backward', 'm', 2),
    'falls_commands': Figure('falls at the commands, undisturbed', '', 0),
    'falls_conditions': Figure('falls in all conditions', '', 0),
    'target_change': Figure('target change per tick', 'mrad', 1),
    'target_change_noise': Figure('target change per tick, noisy sensors', 'mrad', 1),
    'energy': Figure('energy of the joints per m', 'J/m', 0),
    'power': Figure('power of the joints', 'W', 0),
    'torque_ratio': Figure('largest predicted torque / hardware limit', '', 2),
    'limit_hits': Figure('a joint at its position limit, share of ticks', '', 3),
    'self_contacts': Figure('the robot touches itself, share of ticks', '', 3),
    'vx_rmse': Figure('rms error of vx, all commands', 'm/s', 3),
    'vy_rmse': Figure('rms error of vy, all commands', 'm/s', 3),
    'wz_rmse': Figure('rms error of wz, all commands', 'rad/s', 3),
    'drift_m_10s': Figure('drift aside per 10 s, straight commands', 'm', 2),
    'drift_rad_10s': Figure('turn per 10 s, straight commands', 'rad', 2),
}


def figures_of(plan: Plan) -> dict[str, Figure]:
    """Return every figure of a plan by name, in the order of the report."""
    kicked = {
        f'falls_{speed}': Figure(f'falls of {plan.kicks.seeds} with kicks of {speed} m/s', '', 0)
        for speed in plan.kicks.speeds
    }
    names = list(_FIXED)
    after = names.index('falls_commands') + 1
    return {
        **{name: _FIXED[name] for name in names[:after]},
        **kicked,
        **{name: _FIXED[name] for name in names[after:]},
    }


def run_figures(case: Case, track: 'Track', contract: Contract, settling: float) -> dict[str, Any]:
    """Return the figures of a run; of one that fell before `settling`, only that.

    Since `settling`: `moved` [m] along the commanded direction and to the left of it, by the
    heading at that instant, and `turned` [rad].
    """
    begin = round(settling / contract.step_dt)
    row: dict[str, Any] = {**case._asdict(), 'fell_at': track.fell_at}
    if len(track.yaw) <= begin:
        return row
    seconds = (len(track.yaw) - begin) * contract.step_dt
    error = track.velocity[begin:] - np.array(case.command)
    vx, vy, _ = case.command
    way, moved = track.yaw[begin] + math.atan2(vy, vx), track.position[-1] - track.position[begin]
    along, left = (math.cos(way), math.sin(way)), (-math.sin(way), math.cos(way))
    energy = float(track.power[begin:].sum() * contract.step_dt)
    change = np.abs(np.diff(track.target, axis=0)[begin - 1 :])
    row |= {
        'seconds': seconds,
        'error': error.mean(0).tolist(),
        'rmse': np.sqrt((error**2).mean(0)).tolist(),
        'moved': [float(moved @ along), float(moved @ left)],
        'turned': float(track.yaw[-1] - track.yaw[begin]),
        'target_change_mrad': float(change.mean() * 1e3),
        'power_w': energy / seconds,
        'energy_j': energy,
    }
    if case.group in COMMANDS and case.condition == UNCHANGED:
        row |= _limits(track, contract, begin)
        row['self_contact'] = float(track.self_contact.mean())
        row['path'] = track.position[:: round(PATH_STEP / contract.step_dt)].round(3).tolist()
    return row


def _limits(track: 'Track', contract: Contract, begin: int) -> dict[str, Any]:
    """Return how hard and how often each joint meets its limits: by name, where it does."""
    low, high = contract.per_joint('position_limits').T
    ratio = np.abs(track.torque[begin:]) / contract.per_joint('effort_limit_hardware')
    hit = (track.joint_pos[begin:] <= low) | (track.joint_pos[begin:] >= high)
    wanted = (track.target[begin:] < low) | (track.target[begin:] > high)

    def named(shares: Array) -> dict[str, float]:
        pairs = zip(contract.joint_names, shares.tolist(), strict=True)
        return {name: share for name, share in pairs if share > 0.0}

    return {
        'torque_ratio': named(ratio.max(0)),
        'torque_over': named((ratio > 1.0).mean(0)),
        'limit_hits': named(hit.mean(0)),
        'targets_beyond': named(wanted.mean(0)),
    }


def _group(rows: Sequence[Row], group: str, condition: str = UNCHANGED) -> list[Row]:
    return [row for row in rows if row['group'] == group and row['condition'] == condition]


def _mean(rows: Sequence[Row], figure: Callable[[Row], float | None]) -> float | None:
    """Return the mean over the runs; None where one of them fell, or has no such figure."""
    if any(row['fell_at'] is not None for row in rows):
        return None
    values = [value for row in rows if (value := figure(row)) is not None]
    return sum(values) / len(rows) if rows and len(values) == len(rows) else None


def _per_m(row: Row, value: float) -> float | None:
    """Return a value per m of displacement; None where the robot stayed where it was."""
    distance = math.hypot(*row['moved'])
    return value / distance if distance >= LEAST_DISTANCE else None


def _falls(rows: Sequence[Row]) -> int:
    return sum(row['fell_at'] is not None for row in rows)


def _worst(rows: Sequence[Row], key: str) -> float | None:
    """Return the largest value of any joint in any run; None where nothing ran long enough."""
    if not any(key in row for row in rows):
        return None
    return max((value for row in rows for value in row.get(key, {}).values()), default=0.0)


def _share(rows: Sequence[Row], key: str, joints: Sequence[str]) -> dict[str, float]:
    """Return by joint the mean share over the runs that have one, the largest first."""
    counted = [row[key] for row in rows if key in row]
    shares = {j: sum(row.get(j, 0.0) for row in counted) / max(len(counted), 1) for j in joints}
    return {j: s for j, s in sorted(shares.items(), key=lambda item: -item[1]) if s > 0.0}


def summarize(rows: Sequence[Row], plan: Plan, joints: Sequence[str]) -> dict[str, Any]:
    """Return `figures`, by name as in `figures_of`, and more by condition and by joint.

    A figure is None where one of its runs fell, or, per metre, went nowhere.
    """
    commands = [row for group in COMMANDS for row in _group(rows, group)]
    conditions = {name: _condition(rows, name, plan) for name in plan.conditions}
    noisy = [conditions[name] for name, changed in plan.conditions.items() if changed.noise]
    kicked = _group(rows, 'kick')
    found = {
        **_velocity(commands),
        **_drift(_group(rows, STRAIGHT)),
        **_effort(commands, plan),
        **{
            f'falls_{speed}': _falls([row for row in kicked if row['kick'] == speed])
            for speed in plan.kicks.speeds
        },
        'falls_commands': _falls(commands),
        'falls_conditions': sum(c['falls'] for c in conditions.values()),
        'target_change_noise': noisy[0]['target_change_mrad'] if noisy else None,
    }
    return {
        'figures': {name: found[name] for name in figures_of(plan)},
        'conditions': conditions,
        'joints': _by_joint(commands, joints),
    }


def _velocity(commands: Sequence[Row]) -> dict[str, float | None]:
    straight, turning = _group(commands, STRAIGHT), _group(commands, TURNING)
    return {
        'vx_error': _mean(straight, lambda r: abs(r['error'][0])),
        'vy_error': _mean(straight, lambda r: abs(r['error'][1])),
        'wz_error': _mean(turning, lambda r: abs(r['error'][2])),
        'vx_rmse': _mean(commands, lambda r: r['rmse'][0]),
        'vy_rmse': _mean(commands, lambda r: r['rmse'][1]),
        'wz_rmse': _mean(commands, lambda r: r['rmse'][2]),
    }


def _drift(straight: Sequence[Row]) -> dict[str, float | None]:
    def aside(row: Row) -> float | None:
        return _per_m(row, 10 * abs(row['moved'][1]))

    ahead = [row for row in straight if row['command'][0] > 0]
    back = [row for row in straight if row['command'][0] < 0]
    return {
        'drift_m': _mean(ahead, aside),
        'drift_deg': _mean(ahead, lambda r: _per_m(r, 10 * math.degrees(abs(r['turned'])))),
        'drift_back_m': _mean(back, aside),
        'drift_m_10s': _mean(straight, lambda r: 10 * abs(r['moved'][1]) / r['seconds']),
        'drift_rad_10s': _mean(straight, lambda r: 10 * abs(r['turned']) / r['seconds']),
    }


def _effort(commands: Sequence[Row], plan: Plan) -> dict[str, float | None]:
    gait = _gait(commands, plan)
    return {
        'target_change': _mean(gait, lambda r: r['target_change_mrad']),
        'energy': _mean(gait, lambda r: _per_m(r, r['energy_j'])),
        'power': _mean(gait, lambda r: r['power_w']),
        'torque_ratio': _worst(commands, 'torque_ratio'),
        'limit_hits': _worst(commands, 'limit_hits'),
        'self_contacts': max(
            (r['self_contact'] for r in commands if 'self_contact' in r), default=None
        ),
    }


def _gait(rows: Sequence[Row], plan: Plan) -> list[Row]:
    return [r for r in rows if r['group'] == STRAIGHT and tuple(r['command']) == plan.gait]


def _by_joint(commands: Sequence[Row], joints: Sequence[str]) -> dict[str, dict[str, float]]:
    shares = ('torque_over', 'limit_hits', 'targets_beyond')
    ratios = [row.get('torque_ratio', {}) for row in commands]
    return {
        **{key: _share(commands, key, joints) for key in shares},
        'torque_ratio': {j: max((r.get(j, 0.0) for r in ratios), default=0.0) for j in joints},
    }


def _condition(rows: Sequence[Row], name: str, plan: Plan) -> dict[str, Any]:
    straight, turning = _group(rows, STRAIGHT, name), _group(rows, TURNING, name)
    kicked = _group(rows, 'kick', name)
    return {
        'falls': _falls([*straight, *turning, *kicked]),
        'runs': len(straight) + len(turning) + len(kicked),
        'vx_error': _mean(straight, lambda r: abs(r['error'][0])),
        'vy_error': _mean(straight, lambda r: abs(r['error'][1])),
        'wz_error': _mean(turning, lambda r: abs(r['error'][2])),
        'target_change_mrad': _mean(_gait(straight, plan), lambda r: r['target_change_mrad']),
    }
