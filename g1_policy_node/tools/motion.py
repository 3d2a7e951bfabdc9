"""How the robot moved, from the simulator's ground truth."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.tools.parts import Part
from g1_policy_node.types import Array

SETTLING = 3.0
"""Seconds of RUN before the mean begins, and at whose end the heading is taken."""

GAIT_PERIOD = 0.8
"""Seconds; the base sways once in each, so headings and paths are averaged over one."""


def walk_figures(track: Part, timing: Part | None, until_ns: int | None) -> dict[str, Any]:
    """Return the figures of the longest stretch of RUN; None for what it is too short for.

    What comes after `until_ns` on the tick clock is left out: nobody commands the robot then.

    Velocities (vx, vy, wz) in the base frame, m/s and rad/s: `command` and `mean_velocity` after
    the first 3 s, `rmse_velocity` between the two. `drift_m` to the left of the heading held 3 s
    into RUN; `distance_m` along the path, sway averaged out.
    """
    # A simulator that was stopped before its first row leaves arrays without a type.
    running = track['running'].astype(bool)
    run = longest_stretch(
        running if until_ns is None else running & (track['tick_ns'] <= until_ns)
    )
    time = track['time'][run]
    figures: dict[str, Any] = {
        'run_seconds': float(time[-1] - time[0]) if len(time) else 0.0,
        'distance_m': _path_length(time, track['position'][run]),
    }
    unknown = dict.fromkeys(('mean_velocity', 'drift_m', 'command', 'rmse_velocity'))
    settled = time >= time[0] + SETTLING if len(time) else np.zeros(0, bool)
    if not settled.any():
        return {**figures, **unknown}
    velocity = np.column_stack([track['lin_vel'][run][:, :2], track['ang_vel'][run][:, 2]])
    velocity = velocity[settled]
    figures['mean_velocity'] = velocity.mean(0).tolist()
    figures['drift_m'] = _drift(time, track['position'][run], yaw(track['quat_xyzw'][run]))
    command = None if timing is None else _commands(timing, track['tick_ns'][run][settled])
    if command is None:
        return {**figures, 'command': None, 'rmse_velocity': None}
    figures['command'] = command.mean(0).round(9).tolist()
    figures['rmse_velocity'] = np.sqrt(((velocity - command) ** 2).mean(0)).tolist()
    return figures


def longest_stretch(flags: NDArray[np.bool_]) -> slice:
    """Return where `flags` (T,) stay true the longest; an empty slice if nowhere."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(flags, np.int8), [0]])))
    starts, ends = edges[::2], edges[1::2]
    if not len(starts):
        return slice(0, 0)
    longest = int(np.argmax(ends - starts))
    return slice(int(starts[longest]), int(ends[longest]))


def yaw(quat_xyzw: Array) -> Array:
    """Return the headings (T,) in rad, without jumps, of orientations (T, 4)."""
    x, y, z, w = quat_xyzw.T
    heading: Array = np.unwrap(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    return heading


def _drift(time: Array, position: Array, heading: Array) -> float:
    around = np.abs(time - (time[0] + SETTLING)) <= GAIT_PERIOD / 2
    held = heading[around].mean()
    start = int(np.argmax(time >= time[0] + SETTLING))
    moved = position[-1, :2] - position[start, :2]
    return float(moved @ (-np.sin(held), np.cos(held)))


def _path_length(time: Array, position: Array) -> float | None:
    """Return the length of the path through the mean positions of each gait period."""
    if len(time) < 2:
        return None
    period = np.floor((time - time[0]) / GAIT_PERIOD).astype(int)
    means = [position[period == i, :2].mean(0) for i in range(period[-1]) if (period == i).any()]
    path = np.array([position[0, :2], *means, position[-1, :2]])
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


def _commands(timing: Part, tick_ns: NDArray[np.int64]) -> Array | None:
    """Return the command in force (n, 3) at each of `tick_ns` (n,), None before the first tick."""
    if not len(timing['tick_ns']):
        return None
    at = np.searchsorted(timing['tick_ns'], tick_ns, side='right') - 1
    if (at < 0).any():
        return None
    commands: Array = timing['command'][at].astype(np.float64)
    return commands
