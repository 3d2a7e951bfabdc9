"""The data that cross a boundary: samples, modes, verdicts. No logic, no ROS."""

from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Mode(Enum):
    """What the router is doing. See docs/design.md section 3 for the transitions."""

    INACTIVE = 'INACTIVE'
    WAITING = 'WAITING'
    RAMP = 'RAMP'
    READY = 'READY'
    RUN = 'RUN'
    HOLD = 'HOLD'
    DAMP = 'DAMP'


def every(flags: NDArray[np.bool_]) -> bool:
    """Tell whether all flags are set: a fifth of what `flags.all()` takes on a tick's arrays."""
    return b'\0' not in flags.tobytes()


COMMANDING = frozenset({Mode.RAMP, Mode.READY, Mode.RUN, Mode.HOLD})
"""The modes in which every slot must carry a command."""


class UserError(Exception):
    """A mistake in what the user gave: shown as one line, exit code 2, no traceback."""


class Stamps(NamedTuple):
    """When a message was written, sent and received.

    All in ns: `header` and `source` on the sender's clock (ROS time and DDS source time, 0 if
    unset), `received` on the tick clock, `transport` the DDS receive minus source time.
    `sequence` counts the messages of their sender, from 1; 0 if unknown.
    """

    header: int
    source: int
    received: int
    transport: int
    sequence: int = 0


class JointSample(NamedTuple):
    """A JointState as it came: names in any order, `position` rad, `velocity` rad/s."""

    names: tuple[str, ...]
    position: Array
    velocity: Array
    stamps: Stamps


class ImuSample(NamedTuple):
    """An Imu as it came, in `frame_id`.

    `quat_xyzw` (4,), `ang_vel` (3,) rad/s, `lin_acc` (3,) m/s^2. `absent` names a field whose
    covariance starts with -1, sensor_msgs/Imu's sign for "not provided"; empty if none.
    """

    frame_id: str
    quat_xyzw: Array
    ang_vel: Array
    lin_acc: Array
    absent: str
    stamps: Stamps


class OdomSample(NamedTuple):
    """The base's linear velocity (3,) m/s in the base frame, from nav_msgs/Odometry."""

    lin_vel: Array
    stamps: Stamps


class CommandSample(NamedTuple):
    """A velocity command (3,): vx, vy m/s and yaw rate rad/s, in the base frame."""

    velocity: Array
    stamps: Stamps


class Inputs(NamedTuple):
    """The newest sample of each topic at a tick; None where none has come yet.

    `foreign_command` names who else may have sent the joint_command that came since the last
    tick and is not ours; empty where there was none.
    """

    joints: JointSample | None
    imu: ImuSample | None
    command: CommandSample | None
    odom: OdomSample | None
    foreign_command: str = ''


class RobotState(NamedTuple):
    """The robot as the policy sees it: joints in policy order, vectors in the base frame.

    `joint_pos` (N,) rad, `joint_vel` (N,) rad/s, `ang_vel` (3,) rad/s, `gravity` (3,) the unit
    gravity vector (0, 0, -1 when upright), `lin_vel` (3,) m/s or None where not needed.
    """

    joint_pos: Array
    joint_vel: Array
    ang_vel: Array
    gravity: Array
    lin_vel: Array | None


class Fault(NamedTuple):
    """Why something was refused: a short counter name and a sentence for people."""

    name: str
    reason: str


class Verdict(Enum):
    """What the safety gate did with a target."""

    PASS = 0
    CLIP = 1
    HOLD = 2
    DAMP = 3
