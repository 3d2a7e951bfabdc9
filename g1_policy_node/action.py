"""From the network's output to joint targets."""

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.contract import Contract
from g1_policy_node.types import Array


class JointPositionAction:
    """target = offset + scale * clip(raw), per joint in policy order, rad."""

    def __init__(self, contract: Contract) -> None:
        action = contract.action
        self._scale = np.array([action.scale[name] for name in contract.joint_names])
        self._offset = np.array([action.offset[name] for name in contract.joint_names])
        self._clip = action.clip

    def target(self, raw: NDArray[np.floating]) -> Array:
        """Return joint targets (N,) rad for the raw action (N,)."""
        clipped = raw if self._clip is None else np.clip(raw, *self._clip)
        target: Array = self._offset + self._scale * clipped
        return target
