"""The G1 in MuJoCo: physics, hoist, damping, push and the truth about all of it."""

import math

import mujoco
import numpy as np

from g1_policy_node.contract import Contract
from g1_policy_node.sim.model import IMU_ACCELEROMETER, PELVIS, build_model
from g1_policy_node.sim.protocol import Snapshot
from g1_policy_node.types import Array, RobotState

STANDING_HEIGHT = 0.79
"""Height of the pelvis [m] on the hoist and after a reset (docs/facts.md section 1)."""

_HELD_INERTIA = 1e9
"""Inertia [kg, kg m^2] added to the pelvis on the hoist, so that no joint can move it."""


class MujocoRobot:
    """A G1 with the contract's gains, armature and effort limits; see protocol.Robot.

    `physics_dt` is one step in s.
    """

    simulator = 'mujoco'
    version = mujoco.__version__

    def __init__(
        self, contract: Contract, physics_dt: float = 0.005, floor_friction: float = 1.0
    ) -> None:
        self.model = build_model(contract, physics_dt, floor_friction)
        self.data = mujoco.MjData(self.model)
        self.joint_names = contract.joint_names
        self.physics_dt = physics_dt
        joints = [self.model.joint(name) for name in self.joint_names]
        self._q = np.array([joint.qposadr[0] for joint in joints])
        self._v = np.array([joint.dofadr[0] for joint in joints])
        sensor = self.model.sensor(IMU_ACCELEROMETER)
        self._accelerometer = slice(sensor.adr[0], sensor.adr[0] + 3)
        # The pelvis is the root: its free joint is the first of the model, at 0 in qpos and qvel.
        assert self.model.body(PELVIS).dofadr[0] == 0
        self._stiffness = contract.per_joint('stiffness')
        self._damping = contract.per_joint('damping')
        self._default = contract.per_joint('default_position')
        self.reset()

    def reset(self) -> None:
        """Stand at the default pose and the origin, at rest, off the hoist."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:7] = (0.0, 0.0, STANDING_HEIGHT, 1.0, 0.0, 0.0, 0.0)
        self.data.qpos[self._q] = self._default
        self.data.ctrl[:] = self._default
        self.hoisted = False
        self.model.dof_armature[:6] = 0.0
        mujoco.mj_forward(self.model, self.data)

    def step(self, target: Array | None) -> None:
        """Advance by `physics_dt`: follow the target (N,) rad, or damp where it is None."""
        # Without stiffness only the damping is left.
        stiffness = 0.0 if target is None else self._stiffness
        ctrl = self.data.ctrl if target is None else target
        self.drive(ctrl, stiffness, self._damping)

    def drive(self, target: Array, stiffness: Array | float, damping: Array | float) -> None:
        """Advance by `physics_dt` with motors kp * (target - q) - kd * v, gains (N,) of any kind.

        `target` rad; `stiffness` N m/rad; `damping` N m s/rad.
        """
        self.model.actuator_gainprm[:, 0] = stiffness
        self.model.actuator_biasprm[:, 1] = -np.asarray(stiffness)
        self.model.actuator_biasprm[:, 2] = -np.asarray(damping)
        self.data.ctrl[:] = target
        held = self.data.qpos[:7].copy()
        mujoco.mj_step(self.model, self.data)
        if self.hoisted:
            self.data.qpos[:7] = held
            self.data.qvel[:6] = 0.0

    def snapshot(self) -> Snapshot:
        """Return the truth now; specific force and effort are those of the step just made."""
        data = self.data
        quat = data.qpos[3:7].copy()
        return Snapshot(
            position=data.qpos[:3].copy(),
            quat_xyzw=quat[[1, 2, 3, 0]],
            lin_vel=_to_base(quat, data.qvel[:3]),
            ang_vel=data.qvel[3:6].copy(),
            lin_acc=data.sensordata[self._accelerometer].copy(),
            joint_pos=data.qpos[self._q],
            joint_vel=data.qvel[self._v],
            joint_effort=data.actuator_force.copy(),
        )

    def state(self) -> RobotState:
        """Return the robot as a policy sees it, joints in policy order."""
        return self.snapshot().state()

    def joint_power(self) -> float:
        """Return the sum of |torque * velocity| over the joints, W: braking costs as driving."""
        return float(np.abs(self.data.actuator_force * self.data.qvel[self._v]).sum())

    @property
    def touches_itself(self) -> bool:
        """Whether one body of the robot touches another one, such as a hand a thigh."""
        bodies = self.model.geom_bodyid[self.data.contact.geom]
        return bool((bodies > 0).all(axis=1).any())  # 0 is the world, which the floor is part of

    @property
    def fallen(self) -> bool:
        """Whether the robot lies or is about to; never on the hoist."""
        return not self.hoisted and self.snapshot().fallen

    def set_hoist(self, held: bool) -> None:
        """Hold the pelvis at standing height, or let it go.

        Being lifted keeps x, y, yaw and the joint positions; pelvis and joints come to rest.
        """
        if held == self.hoisted:
            return
        self.hoisted = held
        self.model.dof_armature[:6] = _HELD_INERTIA if held else 0.0
        self.data.qacc_warmstart[:] = 0.0
        if held:
            half_yaw = _yaw(self.data.qpos[3:7]) / 2
            self.data.qpos[2] = STANDING_HEIGHT
            self.data.qpos[3:7] = (math.cos(half_yaw), 0.0, 0.0, math.sin(half_yaw))
            self.data.qvel[:] = 0.0

    def push(self, velocity: Array) -> None:
        """Add a velocity (2,) m/s in the world's x and y to the pelvis; none on the hoist."""
        if not self.hoisted:
            self.data.qvel[:2] += velocity


def _to_base(quat_wxyz: Array, vector: Array) -> Array:
    """Turn a world vector (3,) into the base frame."""
    inverse, out = np.empty(4), np.empty(3)
    mujoco.mju_negQuat(inverse, quat_wxyz)
    mujoco.mju_rotVecQuat(out, vector, inverse)
    return out


def _yaw(quat_wxyz: Array) -> float:
    w, x, y, z = quat_wxyz
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
