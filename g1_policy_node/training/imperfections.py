"""What is not perfect about a robot in training, drawn anew for every episode.

Its sensors, and how late its joints get their targets. Needs torch alone.
"""

import torch
from torch import Tensor

MAX_DELAY = 8
"""Physics steps from a target's tick until the joints get it, at most: 40 ms at 200 Hz."""

MOUNT_TILT = 0.02
"""rad; how far the IMU may be turned about each axis against where it is drawn."""

ENCODER_OFFSET = 0.01
"""rad; constant error of each joint's position."""


class Sensing:
    """Constant errors of N robots' sensors: IMU mount (N, 3) rad, joint encoders (N, J) rad."""

    def __init__(self, num_envs: int, joints: int, device: str) -> None:
        self._mount = torch.zeros(num_envs, 3, device=device)
        self._encoders = torch.zeros(num_envs, joints, device=device)

    def reset(self, ids: Tensor) -> None:
        """Draw these robots' errors anew."""
        for errors, most in ((self._mount, MOUNT_TILT), (self._encoders, ENCODER_OFFSET)):
            drawn = torch.rand(len(ids), errors.shape[1], device=errors.device)
            errors[ids] = most * (2.0 * drawn - 1.0)

    def turned(self, vectors: Tensor) -> Tensor:
        """Return vectors (N, 3) of the base frame as an IMU so mounted reads them."""
        return vectors + torch.cross(vectors, self._mount, dim=-1)

    def joint_pos(self, positions: Tensor) -> Tensor:
        """Return joint positions (N, J) as the encoders read them."""
        return positions + self._encoders


class Delay:
    """Joint targets (N, J) on their way: each robot gets them some physics steps late.

    Most get them at once, as in the nominal robot: what is rare should not bias what is usual.
    """

    def __init__(self, start: Tensor, substeps: int) -> None:
        self._substeps = substeps
        self._ticks = -(-MAX_DELAY // substeps) + 1
        self._past = start.repeat(self._ticks, 1, 1)
        self._steps = torch.zeros(len(start), dtype=torch.long, device=start.device)
        self._robots = torch.arange(len(start), device=start.device)
        self._substep = 0

    def reset(self, ids: Tensor, targets: Tensor) -> None:
        """Begin anew with these robots at `targets` (n, J), each with a delay of its own."""
        self._past[:, ids] = targets
        share = torch.rand(len(ids), device=targets.device).pow(4)
        self._steps[ids] = (share * (MAX_DELAY + 1)).long()

    def send(self, targets: Tensor) -> None:
        """Take the targets (N, J) of a new tick."""
        self._past = torch.cat([targets[None], self._past[:-1]])
        self._substep = 0

    def arrived(self) -> Tensor:
        """Return what the joints get in the next physics step of this tick, (N, J)."""
        late = (self._steps - self._substep).clamp(min=0)
        ticks = (late + self._substeps - 1) // self._substeps
        self._substep += 1
        return self._past[ticks, self._robots]
