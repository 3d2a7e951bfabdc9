"""The walking task as an Isaac Lab environment; every buffer lives on `self.device`."""

from collections.abc import Sequence
from typing import Any

import torch
from isaaclab.envs import DirectRLEnv
from torch import Tensor

from g1_policy_node.joints import describe_mismatch
from g1_policy_node.training.curriculum import (
    CommandSampler,
    command_share,
    refinement_share,
)
from g1_policy_node.training.env_cfg import G1WalkEnvCfg
from g1_policy_node.training.imperfections import Delay, Sensing
from g1_policy_node.training.mirror import Mirror
from g1_policy_node.training.rewards import Feet, Moment, Rewards
from g1_policy_node.training.terms import (
    BatchAction,
    BatchGait,
    BatchObservation,
    BatchState,
    per_joint,
)
from g1_policy_node.types import UserError

FEET = '.*ankle_roll_link'
TOUCH_FORCE = 1.0
FALLEN_HEIGHT = 0.45
FALLEN_GRAVITY_Z = -0.7
COMMAND_PERIOD_S = 10.0
PUSH_PERIOD_S = 3.5
PUSH_SHARE = 0.7
PUSH_SPEED, REFINED_PUSH_SPEED = 0.6, 1.9
"""Of the times at which a robot may be kicked, and the largest kick at first and at last, m/s."""
STRIDE_S = 0.8
"""What the velocity is averaged over, by a first-order low pass."""
START_JOINT_SPREAD = 0.05
START_SPEED_SPREAD = 0.3


class G1WalkEnv(DirectRLEnv):
    """N robots that follow velocity commands. Joints are in the contract's order throughout."""

    cfg: G1WalkEnvCfg

    def __init__(self, cfg: G1WalkEnvCfg, render_mode: str | None = None, **kwargs: Any) -> None:
        super().__init__(cfg, render_mode, **kwargs)
        contract = cfg.load_contract()
        assert contract.gait is not None  # refused by the configuration
        n, j, device = self.num_envs, len(contract.joint_names), self.device
        self.robot, self.contact = self.scene['robot'], self.scene['contact']
        wrong = describe_mismatch(self.robot.joint_names, contract.joint_names)
        if wrong:
            raise UserError(f'{contract.name}: its joints are not those of the robot: {wrong}')
        found, _ = self.robot.find_joints(list(contract.joint_names), preserve_order=True)
        self._joints = torch.as_tensor(found, device=device).long()
        self._joint_ids = self._joints.int()  # kept: Warp may read it after this step
        self._feet, _ = self.robot.find_bodies(FEET)
        self._feet_sensors, _ = self.contact.find_sensors(FEET)
        bodies = range(self.contact.num_sensors)
        self._other_sensors = [i for i in bodies if i not in self._feet_sensors]
        self.gait = BatchGait(contract.gait, device)
        self._observation = BatchObservation(contract, n, device)
        self._critic_observation = BatchObservation(contract, n, device)
        self._action = BatchAction(contract, device)
        self._rewards = Rewards(contract, device)
        self._commands = CommandSampler(contract, device)
        self.command = torch.zeros(n, 3, device=device)
        self.k = torch.zeros(n, dtype=torch.long, device=device)
        self.raw_action, self._last = torch.zeros(2, n, j, device=device)
        self._mean_error = torch.zeros(n, 3, device=device)
        self._gains = [per_joint(contract, name, device) for name in ('stiffness', 'damping')]
        self._default = per_joint(contract, 'default_position', device).repeat(n, 1)
        self._target = self._default.clone()
        self._delay = Delay(self._default, cfg.decimation)
        self._sensing = Sensing(n, j, device)
        self.mirror = Mirror(contract, device)
        self._previous = torch.zeros(n, contract.observation_size, device=device)
        self._push_offset = torch.randint(self._ticks(PUSH_PERIOD_S), (n,), device=device)
        self.reward_sums: dict[str, Tensor] = {}

    def state(self) -> BatchState:
        """Return the robots as the policy would see them without noise."""
        data = self.robot.data
        return BatchState(
            data.joint_pos.torch[:, self._joints],
            data.joint_vel.torch[:, self._joints],
            data.root_ang_vel_b.torch,
            data.projected_gravity_b.torch,
            data.root_lin_vel_b.torch,
        )

    def refinement_share(self) -> float:
        """Return how much of what refines a walk is asked for by now."""
        return refinement_share(self.common_step_counter)

    def _pre_physics_step(self, actions: Tensor) -> None:
        self._last = self.raw_action
        self.raw_action = actions.clone()
        self._target = self._action.target(self.raw_action)
        self._asked_torque = self._torque(self.state())
        self._delay.send(self._target)
        self.k += 1
        age, period = self.episode_length_buf, self._ticks(COMMAND_PERIOD_S)
        self._new_commands((age % period == period - 1).nonzero().flatten())
        period = self._ticks(PUSH_PERIOD_S)
        self._push(((age + self._push_offset) % period == period - 1).nonzero().flatten())

    def _apply_action(self) -> None:
        self.robot.actuators.target_command.set_position_index(
            value=self._delay.arrived(), joint_ids=self._joint_ids
        )

    def _get_observations(self) -> dict[str, Tensor]:
        state, data = self.state(), self.robot.data
        sensed = state._replace(
            joint_pos=self._sensing.joint_pos(state.joint_pos),
            ang_vel=self._sensing.turned(state.ang_vel),
            gravity=self._sensing.turned(state.gravity),
        )
        rest = (self.command, self.k, self.raw_action)
        feet = self._touching(self._feet_sensors).float()
        privileged = (state.lin_vel, data.root_pos_w.torch[:, 2:3], feet, self._mean_error)
        clean = self._critic_observation.build(state, *rest, noise=False)
        row = self._observation.build(sensed, *rest, noise=True)
        first = self.episode_length_buf[:, None] == 0
        previous, self._previous = torch.where(first, row, self._previous), row
        return {
            'policy': row,
            'previous': previous,
            'critic': torch.cat([clean, *privileged], dim=-1),
        }

    def _get_rewards(self) -> Tensor:
        terms = self._rewards.terms(self._moment(), self.refinement_share())
        total = torch.zeros(self.num_envs, device=self.device)
        for name, value in terms.items():
            part = value * self.step_dt
            total += part
            self.reward_sums[name] = self.reward_sums.get(name, 0.0) + part
        return total

    def _get_dones(self) -> tuple[Tensor, Tensor]:
        data = self.robot.data
        low = data.root_pos_w.torch[:, 2] < FALLEN_HEIGHT
        tilted = data.projected_gravity_b.torch[:, 2] > FALLEN_GRAVITY_Z
        return low | tilted, self.episode_length_buf >= self.max_episode_length - 1

    def _reset_idx(self, env_ids: Sequence[int] | Tensor | None) -> None:
        ids = torch.as_tensor(
            range(self.num_envs) if env_ids is None else env_ids, device=self.device
        ).long()
        log = {
            f'Episode_Reward/{name}': sums[ids].mean() / self.max_episode_length_s
            for name, sums in self.reward_sums.items()
        }
        for sums in self.reward_sums.values():
            sums[ids] = 0.0
        self.robot.reset(ids)
        super()._reset_idx(ids)
        self.raw_action[ids] = self._last[ids] = 0.0
        self._target[ids] = self._default[ids]
        self._delay.reset(ids, self._default[ids])
        self._sensing.reset(ids)
        self.k[ids] = torch.randint(self.gait.period, (len(ids),), device=self.device)
        self._observation.reset(ids)
        self._critic_observation.reset(ids)
        self._new_commands(ids)
        self._stand_up(ids)
        self.extras['log'] = log

    def _moment(self) -> Moment:
        data, state = self.robot.data, self.state()
        velocity = torch.cat([state.lin_vel[:, :2], state.ang_vel[:, 2:]], dim=-1)
        error = velocity - self.command
        self._mean_error += (error - self._mean_error) * (self.step_dt / STRIDE_S)
        gait = self.gait.now(self.k, self.command)
        feet = Feet(
            touching=self._touching(self._feet_sensors),
            wanted=gait.contact.bool(),
            height=data.body_pos_w.torch[:, self._feet, 2],
            speed=torch.linalg.vector_norm(data.body_lin_vel_w.torch[:, self._feet, :2], dim=-1),
        )
        return Moment(
            state=state,
            command=self.command,
            mean_error=self._mean_error,
            torque=self._torque(state),
            asked_torque=self._asked_torque,
            action=self._action.clip(self.raw_action),
            last_action=self._action.clip(self._last),
            joint_acc=data.joint_acc.torch[:, self._joints],
            height=data.root_pos_w.torch[:, 2],
            standing=gait.standing[:, 0],
            terminated=self.reset_terminated,
            undesired_contacts=self._touching(self._other_sensors).sum(-1),
            feet=feet,
        )

    def _torque(self, state: BatchState) -> Tensor:
        """Return the torque (N, J) of the joints' PD towards the newest target, unlimited."""
        kp, kd = self._gains
        return kp * (self._target - state.joint_pos) - kd * state.joint_vel

    def _touching(self, sensors: list[int]) -> Tensor:
        """Tell of these bodies (N, sensors) which touched the ground or another one just now."""
        force = self.contact.data.net_normal_forces_w_history.torch[:, :, sensors]
        return torch.linalg.vector_norm(force, dim=-1).amax(1) > TOUCH_FORCE

    def _new_commands(self, ids: Tensor) -> None:
        self.command[ids] = self._commands.sample(
            len(ids), command_share(self.common_step_counter)
        )
        self._mean_error[ids] = 0.0

    def _push(self, ids: Tensor) -> None:
        """Kick most of these robots in a random direction, by what the curriculum allows."""
        ids = ids[torch.rand(len(ids), device=self.device) < PUSH_SHARE]
        if len(ids) == 0:
            return
        data = self.robot.data
        velocity = torch.cat(
            [data.root_lin_vel_w.torch[ids], data.root_ang_vel_w.torch[ids]], dim=-1
        )
        size, turn = torch.rand(2, len(ids), device=self.device)
        angle = 2 * torch.pi * turn
        most = PUSH_SPEED + self.refinement_share() * (REFINED_PUSH_SPEED - PUSH_SPEED)
        velocity[:, :2] += most * size[:, None] * torch.stack([angle.cos(), angle.sin()], dim=-1)
        self.robot.write_root_velocity_to_sim_index(root_velocity=velocity, env_ids=ids)

    def _stand_up(self, ids: Tensor) -> None:
        """Put robots near the default pose at a random small velocity."""
        data = self.robot.data
        joints = data.default_joint_pos.torch[ids]
        pose = data.default_root_pose.torch[ids].clone()
        pose[:, :3] += self.scene.env_origins[ids]
        velocity = data.default_root_vel.torch[ids].clone()
        velocity[:, :2] += START_SPEED_SPREAD * torch.randn_like(velocity[:, :2])
        self.robot.write_root_pose_to_sim_index(root_pose=pose, env_ids=ids)
        self.robot.write_root_velocity_to_sim_index(root_velocity=velocity, env_ids=ids)
        self.robot.write_joint_position_to_sim_index(
            position=joints + START_JOINT_SPREAD * torch.randn_like(joints), env_ids=ids
        )
        self.robot.write_joint_velocity_to_sim_index(
            velocity=torch.zeros_like(joints), env_ids=ids
        )

    def _ticks(self, seconds: float) -> int:
        return round(seconds / self.step_dt)
