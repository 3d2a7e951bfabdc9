"""What a simulated robot must offer: the sim node drives any object with this protocol."""

from typing import NamedTuple, Protocol

from g1_policy_node.observation import projected_gravity
from g1_policy_node.types import Array, RobotState

FALLEN_HEIGHT = 0.45
"""A pelvis below this height [m] has fallen: standing is 0.79."""

FALLEN_GRAVITY_Z = -0.6
"""A pelvis whose gravity vector has a z above this leans by more than 53 degrees: fallen."""


class Snapshot(NamedTuple):
    """Everything true about the robot at an instant; joints in policy order.

    `position` (3,) m of the pelvis and `quat_xyzw` (4,) in the world. In the base frame:
    `lin_vel` (3,) m/s and `ang_vel` (3,) rad/s, as the pelvis IMU would see it. `lin_acc` (3,)
    is the IMU's specific force, m/s^2: (0, 0, 9.81) at rest. `joint_pos` (N,) rad, `joint_vel`
    (N,) rad/s, `joint_effort` (N,) N m.
    """

    position: Array
    quat_xyzw: Array
    lin_vel: Array
    ang_vel: Array
    lin_acc: Array
    joint_pos: Array
    joint_vel: Array
    joint_effort: Array

    def state(self) -> RobotState:
        """Return the robot as a policy sees it."""
        gravity = projected_gravity(self.quat_xyzw)
        return RobotState(self.joint_pos, self.joint_vel, self.ang_vel, gravity, self.lin_vel)

    @property
    def fallen(self) -> bool:
        """Whether this is a robot that has fallen; one on the hoist never has."""
        low = bool(self.position[2] < FALLEN_HEIGHT)
        return low or bool(projected_gravity(self.quat_xyzw)[2] > FALLEN_GRAVITY_Z)


class Robot(Protocol):
    """One simulated robot. It starts standing at the default pose, off the hoist."""

    simulator: str
    version: str
    joint_names: tuple[str, ...]
    physics_dt: float
    hoisted: bool

    def step(self, target: Array | None) -> None:
        """Advance by `physics_dt` s: follow the joint target (N,) rad, or damp where None."""

    def snapshot(self) -> Snapshot:
        """Return the truth at this instant, in arrays of its own."""

    def set_hoist(self, held: bool) -> None:
        """Hold the pelvis upright at standing height above where it is, or let it go."""

    def push(self, velocity: Array) -> None:
        """Add a velocity (2,) m/s in the world's x and y to the pelvis."""

    def reset(self) -> None:
        """Stand at the default pose and the origin, at rest, off the hoist."""
