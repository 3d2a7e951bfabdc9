"""The G1 in Isaac Lab: physics, hoist, damping, push and the truth about all of it."""

from importlib import metadata
from typing import Any

import numpy as np
import torch
import warp
from isaaclab.scene import InteractiveScene
from isaaclab.sim import SimulationContext
from isaaclab.sim.utils import use_stage
from isaaclab_newton.physics import NewtonManager
from newton import BodyFlags, ModelFlags

from g1_policy_node.contract import Contract
from g1_policy_node.observation import projected_gravity
from g1_policy_node.sim.model import PELVIS
from g1_policy_node.sim.protocol import Snapshot
from g1_policy_node.sim.robot import STANDING_HEIGHT
from g1_policy_node.training.env_cfg import G1WalkEnvCfg, robot_cfg
from g1_policy_node.types import Array

IMU_IN_PELVIS = np.array([0.04525, 0.0, -0.08339])
"""Where the MJCF's site imu_in_pelvis is, m in the base frame."""

_GRAVITY = 9.81
_REST_EVERY = 100
"""Steps on the hoist after which the pelvis is put to rest anew: it gains 2e-7 m/s in these."""


class IsaacRobot:
    """One environment of Isaac Lab with training's scene and solver; see protocol.Robot.

    `physics_dt` is one step in s. It runs on the first CUDA device, or on the cpu where there is
    none. Only one can be in a process at a time: `close` it before another is made.
    """

    simulator = 'isaac'
    _now: Snapshot
    _imu_velocity: Array

    def __init__(self, contract: Contract, physics_dt: float = 0.005, device: str = '') -> None:
        device = device or ('cuda:0' if torch.cuda.is_available() else 'cpu')
        self.version = f'{metadata.version("isaaclab")} on {device}'
        self.joint_names = contract.joint_names
        self.physics_dt = physics_dt
        self._device = device
        self._make(contract)
        self._stiffness = self._row(contract.per_joint('stiffness'))
        self._gains = contract.per_joint('stiffness'), contract.per_joint('damping')
        self._effort_limit = contract.per_joint('effort_limit_training')
        self._default = contract.per_joint('default_position')
        self._damping = False
        self.reset()
        # The first steps load or compile kernels: now, before anybody waits for them.
        for target in (None, self._default):
            self.step(target)
        self.reset()

    def _make(self, contract: Contract) -> None:
        warp.config.quiet = True
        cfg = G1WalkEnvCfg()
        cfg.sim.device, cfg.sim.dt, cfg.sim.render_interval = self._device, self.physics_dt, 1
        cfg.scene.num_envs, cfg.scene.robot = 1, robot_cfg(contract)
        self._sim = SimulationContext(cfg.sim)
        with use_stage(self._sim.stage):
            self._scene = InteractiveScene(cfg.scene)
            self._sim.reset()
        self._scene.update(self.physics_dt)
        self._robot: Any = self._scene['robot']
        found, _ = self._robot.find_joints(list(self.joint_names), preserve_order=True)
        self._joints = torch.as_tensor(found, device=self._device, dtype=torch.int32)
        labels = NewtonManager.get_model().body_label
        [self._pelvis] = [i for i, label in enumerate(labels) if label.endswith(f'/{PELVIS}')]

    def close(self) -> None:
        """End Isaac Lab's simulation in this process."""
        self._sim.clear_instance()

    def reset(self) -> None:
        """Stand at the default pose and the origin, at rest, off the hoist."""
        self.hoisted = False
        self._set_held(False)
        self._robot.write_joint_position_to_sim_index(
            position=self._row(self._default), joint_ids=self._joints
        )
        self._effort = np.zeros(len(self.joint_names))
        self._stand(np.array([0.0, 0.0, STANDING_HEIGHT]), np.array([0.0, 0.0, 0.0, 1.0]))

    def step(self, target: Array | None) -> None:
        """Advance by `physics_dt`: follow the target (N,) rad, or damp where it is None."""
        if self._damping != (target is None):
            self._damping = target is None
            stiffness = torch.zeros_like(self._stiffness) if self._damping else self._stiffness
            self._robot.write_joint_stiffness_to_sim_index(
                stiffness=stiffness, joint_ids=self._joints
            )
        if target is not None:
            self._robot.actuators.target_command.set_position_index(
                value=self._row(target), joint_ids=self._joints
            )
        if self.hoisted and self._steps % _REST_EVERY == 0:
            self._place(self._now.position, self._now.quat_xyzw)
        self._effort = self._motors(target)
        before = self._imu_velocity
        self._scene.write_data_to_sim()
        self._sim.step(render=False)
        self._scene.update(self.physics_dt)
        self._steps += 1
        self._read(before)

    def snapshot(self) -> Snapshot:
        """Return the truth now; specific force and effort are those of the step just made."""
        return Snapshot(*(values.copy() for values in self._now))

    def set_hoist(self, held: bool) -> None:
        """Hold the pelvis at standing height, or let it go.

        Being lifted keeps x, y, yaw and the joint positions; pelvis and joints come to rest.
        """
        if held == self.hoisted:
            return
        self._set_held(held)
        if held:
            x, y, z, w = self._now.quat_xyzw
            half_yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) / 2
            upright = np.array([0.0, 0.0, np.sin(half_yaw), np.cos(half_yaw)])
            self._stand(np.array([*self._now.position[:2], STANDING_HEIGHT]), upright)
        self.hoisted = held

    def push(self, velocity: Array) -> None:
        """Add a velocity (2,) m/s in the world's x and y to the pelvis; none on the hoist."""
        if self.hoisted:
            return
        now = self._robot.data.root_com_vel_w.torch.clone()
        now[0, :2] += torch.as_tensor(velocity, dtype=torch.float32, device=self._device)
        self._robot.write_root_velocity_to_sim_index(root_velocity=now)
        self._sim.forward()
        self._read(None)

    def _set_held(self, held: bool) -> None:
        """Make the pelvis kinematic, which Newton does by an inertia that nothing moves."""
        model = NewtonManager.get_model()
        flags = model.body_flags.numpy()
        flags[self._pelvis] = int(BodyFlags.KINEMATIC if held else BodyFlags.DYNAMIC)
        model.body_flags.assign(flags)
        NewtonManager.add_model_change(ModelFlags.BODY_PROPERTIES)

    def _place(self, position: Array, quat_xyzw: Array) -> None:
        """Put the pelvis somewhere, at rest."""
        pose = self._row(np.concatenate([position, quat_xyzw]))
        self._robot.write_root_pose_to_sim_index(root_pose=pose)
        self._robot.write_root_velocity_to_sim_index(root_velocity=self._row(np.zeros(6)))

    def _stand(self, position: Array, quat_xyzw: Array) -> None:
        """Put the robot somewhere with pelvis and joints at rest."""
        self._place(position, quat_xyzw)
        rest = self._row(np.zeros(len(self.joint_names)))
        self._robot.write_joint_velocity_to_sim_index(velocity=rest, joint_ids=self._joints)
        self._steps = 0
        self._sim.forward()
        self._read(None)
        # As asked for, to the last digit of float64.
        self._now = self._now._replace(position=position, quat_xyzw=quat_xyzw)

    def _read(self, before: Array | None) -> None:
        """Take everything off the device at once.

        `before` is the IMU's last velocity, m/s; None after a jump, which is no acceleration.
        """
        data, n = self._robot.data, len(self.joint_names)
        parts = (
            data.joint_pos.torch[:, self._joints], data.joint_vel.torch[:, self._joints],
            data.root_link_pose_w.torch, data.root_link_vel_w.torch,
        )  # fmt: skip
        values = torch.cat(parts, dim=-1)[0].cpu().numpy().astype(float)
        q, v, position, quat, lin_w, ang_w = np.split(values, np.cumsum([n, n, 3, 4, 3]))
        if self.hoisted and before is not None:
            position, quat = self._now.position, self._now.quat_xyzw
            lin_w, ang_w = np.zeros(3), np.zeros(3)
        to_base = _world_to_base(quat)
        self._imu_velocity = lin_w + np.cross(ang_w, IMU_IN_PELVIS @ to_base)
        change = np.zeros(3) if before is None else (self._imu_velocity - before)
        self._now = Snapshot(
            position=position,
            quat_xyzw=quat,
            lin_vel=to_base @ lin_w,
            ang_vel=to_base @ ang_w,
            lin_acc=to_base @ (change / self.physics_dt) - _GRAVITY * projected_gravity(quat),
            joint_pos=q,
            joint_vel=v,
            joint_effort=self._effort,
        )

    def _motors(self, target: Array | None) -> Array:
        """Return what the motors give at the start of a step, N m."""
        stiffness, damping = self._gains
        effort = -damping * self._now.joint_vel
        if target is not None:
            effort += stiffness * (target - self._now.joint_pos)
        return np.clip(effort, -self._effort_limit, self._effort_limit)

    def _row(self, values: Array) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self._device)[None]


def _world_to_base(quat_xyzw: Array) -> Array:
    """Return the matrix (3, 3) that turns world vectors into the base frame."""
    x, y, z, w = quat_xyzw / np.linalg.norm(quat_xyzw)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
            [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
            [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
