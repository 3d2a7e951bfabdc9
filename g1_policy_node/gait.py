"""The integer gait clock: the same ticks in training and on the robot."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


class GaitNow(NamedTuple):
    """The gait at a tick: sin and cos of each foot's phase, and 1 where it is meant to be down.

    (feet,) each; (T, feet) for T ticks.
    """

    sin: Array
    cos: Array
    contact: Array


class GaitTable:
    """Every tick of the period worked out once, by the functions above.

    `walking` and `standing` have a row for each tick: (period, feet).
    """

    def __init__(self, gait: GaitContract) -> None:
        self._gait = gait
        walking = np.full(3, gait.stand_below)
        self.walking, self.standing = (
            GaitNow(
                *(
                    np.array([function(gait, k, command) for k in range(gait.period)])
                    for function in (phase_sin, phase_cos, contact)
                )
            )
            for command in (walking, np.zeros(3))
        )

    def now(self, k: int, command: Array) -> GaitNow:
        """Return the gait at tick `k` under `command` (3,)."""
        table = self.standing if is_standing(self._gait, command) else self.walking
        place = k % self._gait.period
        return GaitNow(table.sin[place], table.cos[place], table.contact[place])

    def rows(self, k: NDArray[np.int64], command: Array) -> GaitNow:
        """Return the gait at ticks `k` (T,) under commands (T, 3)."""
        standing = np.array([is_standing(self._gait, row) for row in command])[:, None]
        place = k % self._gait.period
        both = zip(self.standing, self.walking, strict=True)
        return GaitNow(
            *(np.where(standing, still[place], moving[place]) for still, moving in both)
        )
