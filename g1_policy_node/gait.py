"""The integer gait clock: the same ticks in training and on the robot."""

import math
from collections.abc import Callable

import numpy as np

from g1_policy_node.contract import GaitContract
from g1_policy_node.types import Array


def foot_ticks(gait: GaitContract, k: int) -> tuple[int, ...]:
    """Return each foot's place in its cycle at tick `k`, in ticks of `gait.period`."""
    return tuple((k + offset) % gait.period for offset in gait.offsets)


def is_standing(gait: GaitContract, command: Array) -> bool:
    """Tell whether `command` (3,) is small enough to stand: its norm is below the threshold."""
    return math.sqrt(float(command @ command)) < gait.stand_below


def phase_sin(gait: GaitContract, k: int, command: Array) -> Array:
    """Return sin(2 pi phase) per foot; 0 while standing."""
    return _of_phase(math.sin, gait, k, command)


def phase_cos(gait: GaitContract, k: int, command: Array) -> Array:
    """Return cos(2 pi phase) per foot; 0 while standing."""
    return _of_phase(math.cos, gait, k, command)


def contact(gait: GaitContract, k: int, command: Array) -> Array:
    """Return 1 per foot that is meant to be down, else 0; 1 while standing."""
    if is_standing(gait, command):
        return np.ones(len(gait.offsets))
    return np.array([float(tick < gait.contact) for tick in foot_ticks(gait, k)])


def _of_phase(
    function: Callable[[float], float], gait: GaitContract, k: int, command: Array
) -> Array:
    if is_standing(gait, command):
        return np.zeros(len(gait.offsets))
    return np.array([function(2 * math.pi * t / gait.period) for t in foot_ticks(gait, k)])
