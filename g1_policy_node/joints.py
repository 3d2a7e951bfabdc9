"""The G1-29's joints: names in SDK motor order, limits, and matching by name.

Source of the numbers: g1_29dof_rev_1_0 of unitree_rl_gym/resources/robots/g1_description, as
carried by mjlab 1.6.0's g1.xml (test_joints.py compares them with that model).
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Joint(NamedTuple):
    """One joint of the hardware: range [rad], effort [N m] and speed [rad/s] limits."""

    name: str
    lower: float
    upper: float
    effort: float
    velocity: float


def _leg(side: str, roll: tuple[float, float]) -> list[Joint]:
    return [
        Joint(f'{side}_hip_pitch_joint', -2.5307, 2.8798, 88.0, 32.0),
        Joint(f'{side}_hip_roll_joint', *roll, 139.0, 20.0),
        Joint(f'{side}_hip_yaw_joint', -2.7576, 2.7576, 88.0, 32.0),
        Joint(f'{side}_knee_joint', -0.087267, 2.8798, 139.0, 20.0),
        Joint(f'{side}_ankle_pitch_joint', -0.87267, 0.5236, 50.0, 37.0),
        Joint(f'{side}_ankle_roll_joint', -0.2618, 0.2618, 50.0, 37.0),
    ]


def _arm(side: str, roll: tuple[float, float]) -> list[Joint]:
    return [
        Joint(f'{side}_shoulder_pitch_joint', -3.0892, 2.6704, 25.0, 37.0),
        Joint(f'{side}_shoulder_roll_joint', *roll, 25.0, 37.0),
        Joint(f'{side}_shoulder_yaw_joint', -2.618, 2.618, 25.0, 37.0),
        Joint(f'{side}_elbow_joint', -1.0472, 2.0944, 25.0, 37.0),
        Joint(f'{side}_wrist_roll_joint', -1.97222, 1.97222, 25.0, 37.0),
        Joint(f'{side}_wrist_pitch_joint', -1.61443, 1.61443, 5.0, 22.0),
        Joint(f'{side}_wrist_yaw_joint', -1.61443, 1.61443, 5.0, 22.0),
    ]


G1_JOINTS: tuple[Joint, ...] = (
    *_leg('left', (-0.5236, 2.9671)),
    *_leg('right', (-2.9671, 0.5236)),
    Joint('waist_yaw_joint', -2.618, 2.618, 88.0, 32.0),
    Joint('waist_roll_joint', -0.52, 0.52, 50.0, 37.0),
    Joint('waist_pitch_joint', -0.52, 0.52, 50.0, 37.0),
    *_arm('left', (-1.5882, 2.2515)),
    *_arm('right', (-2.2515, 1.5882)),
)
"""In SDK motor order (docs/facts.md section 4.1), which is not the order of any message."""

G1_JOINT_NAMES: tuple[str, ...] = tuple(joint.name for joint in G1_JOINTS)


def describe_mismatch(got: Sequence[str], wanted: Sequence[str]) -> str:
    """Say how `got` differs from `wanted` as a set of names, or '' where it does not."""
    counts, wanted_set = Counter(got), set(wanted)
    parts = []
    for label, names in (
        ('missing', [n for n in wanted if n not in counts]),
        ('unexpected', [n for n in counts if n not in wanted_set]),
        ('duplicated', sorted(n for n, count in counts.items() if count > 1)),
    ):
        if names:
            parts.append(f'{label} {", ".join(names)}')
    return '; '.join(parts)


class JointOrder:
    """Reads arrays in any joint order into one fixed order, by name.

    The permutation is worked out when the names change and reused while they do not.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._seen: tuple[str, ...] | None = None
        self._index: NDArray[np.intp] | None = None
        self.mismatch = ''

    def index(self, names: tuple[str, ...]) -> NDArray[np.intp] | None:
        """Return `index` such that `array[index]` is in this order; None on any mismatch.

        After None, `mismatch` names every missing, unexpected and duplicated joint.
        """
        if names != self._seen:
            self._seen = names
            self.mismatch = describe_mismatch(names, self.names)
            self._index = (
                None
                if self.mismatch
                else np.array([names.index(name) for name in self.names], dtype=np.intp)
            )
        return self._index
