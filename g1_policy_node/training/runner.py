"""One PPO iteration at a time over rsl_rl, with checkpoints that hold everything to go on from."""

import copy
import itertools
import os
from pathlib import Path
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict
from torch import Tensor

from g1_policy_node.training.curriculum import IMITATED_UNTIL, exploring_share
from g1_policy_node.training.imitation import Teacher, end_imitation, imitate
from g1_policy_node.training.progress import EpisodeStatistics
from g1_policy_node.training.smoothness import Smoothness
from g1_policy_node.training.stage_times import StageTimes
from g1_policy_node.training.symmetry import make_symmetric
from g1_policy_node.types import UserError

STATES = ('actor_state_dict', 'critic_state_dict', 'optimizer_state_dict')


class NotFiniteError(Exception):
    """Training met a value that is not finite; `checkpoint` is what to look at."""

    def __init__(self, what: str, checkpoint: dict[str, Any]) -> None:
        super().__init__(what)
        self.checkpoint = checkpoint


class Runner(OnPolicyRunner):
    """rsl_rl's runner with its loop taken apart: `roll_out` and `update` make one iteration.

    `iteration` counts those done, a resumed checkpoint's included.
    """

    def __init__(self, env: Any, config: dict[str, Any], log_dir: str | None, device: str) -> None:
        config = copy.deepcopy(config)  # rsl_rl writes into it
        smoothness = config.pop('smoothness_loss_coeff')
        super().__init__(env, config, log_dir, device)
        inner = env.unwrapped
        make_symmetric(self.alg.actor, self.alg.critic, inner.mirror)
        self.alg.symmetry = Smoothness(smoothness, inner.refinement_share)
        self._entropy_coef = self.alg.entropy_coef
        self._times = StageTimes(device, enabled=False)
        self._reduce = self.alg.reduce_parameters
        self.alg.reduce_parameters = self._reduce_in_time
        self.teacher: Teacher | None = None
        """Imitated until curriculum.IMITATED_UNTIL."""

    def start(self) -> None:
        """Begin: robots at random points of their episodes, all processes with equal weights."""
        env = self.env
        env.episode_length_buf = torch.randint_like(
            env.episode_length_buf, high=int(env.max_episode_length)
        )
        self._observations = env.get_observations()
        self.alg.train_mode()
        if self.is_distributed:
            self.alg.broadcast_parameters()

    def set_action_std(self, std: float) -> None:
        """Let every raw action deviate by this much: more of it explores more."""
        with torch.no_grad():
            self.alg.actor.distribution.std_param.fill_(std)

    @property
    def iteration(self) -> int:
        """Iterations done so far."""
        return int(self.current_learning_iteration)

    def found(self) -> dict[str, Any]:
        """Return the sizes of a row and an action as made, and where the buffers are.

        These are the tensors of the environment, of the rollout and of the networks.
        """
        storage = self.alg.storage
        buffers = itertools.chain(
            vars(self.env.unwrapped).values(),
            vars(storage).values(),
            storage.observations.values(),
            self.alg.actor.parameters(),
            self.alg.critic.parameters(),
        )
        devices = {str(item.device) for item in buffers if isinstance(item, Tensor)}
        return {
            'shapes': [storage.observations['policy'].shape[-1], storage.actions.shape[-1]],
            'buffers_device': ', '.join(sorted(devices)),
        }

    def roll_out(self, times: StageTimes, statistics: EpisodeStatistics) -> None:
        """Collect one rollout. Raises NotFiniteError for an observation or a reward."""
        obs = self._observations
        finite = torch.ones((), dtype=torch.bool, device=self.device)
        with torch.inference_mode():
            for _ in range(self.cfg['num_steps_per_env']):
                with times.stage('inference'):
                    actions = self.alg.act(obs)
                with times.stage('environment'):
                    obs, rewards, dones, extras = self.env.step(actions)
                finite &= _all_finite(obs, rewards)
                self.alg.process_env_step(obs, rewards, dones, extras)
                statistics.add(rewards, dones, extras)
            self.alg.compute_returns(obs)
        self._observations = obs
        # The one look per iteration: asking at each step would make the device wait.
        if self.any_process(not bool(finite)):
            raise NotFiniteError(self._first_not_finite(), self.state({}))

    def update(self, times: StageTimes) -> dict[str, float]:
        """Improve the policy and return the losses; NotFiniteError where one is not finite."""
        before, self._times = copy.deepcopy(self.state({})), times
        try:
            with times.stage('update'):
                losses = self._learn()
        except (RuntimeError, ValueError) as error:
            if self._can_act():
                raise
            # Every process has the same weights, so that all of them end here.
            what = f'the update of iteration {self.iteration}: {error}'
            raise NotFiniteError(what, before) from error
        total = torch.tensor(list(losses.values()))
        if self.any_process(not bool(torch.isfinite(total).all())):
            raise NotFiniteError(f'the losses of iteration {self.iteration}: {losses}', before)
        self.current_learning_iteration += 1
        return losses

    def _learn(self) -> dict[str, float]:
        """Learn from the rollout, from the teacher or from the rewards; return the losses."""
        steps = self.env.unwrapped.common_step_counter
        if self.teacher and steps <= IMITATED_UNTIL:
            losses = imitate(self.alg, self.teacher)
            if steps == IMITATED_UNTIL:
                end_imitation(self.alg)
            return losses
        exploring = exploring_share(self.env.unwrapped.refinement_share())
        self.alg.entropy_coef = self._entropy_coef * exploring
        losses = self.alg.update()
        losses['smoothness'] = losses.pop('symmetry')
        return losses

    def _reduce_in_time(self) -> None:
        """Average the gradients over all processes, as a stage within the update's."""
        with self._times.stage('gradient_reduction'):
            self._reduce()

    def any_process(self, said: bool) -> bool:
        """Return whether any process of this training says so; all of them must ask."""
        if not self.is_distributed:
            return said
        vote = torch.tensor(float(said), device=self.device)
        torch.distributed.all_reduce(vote, op=torch.distributed.ReduceOp.MAX)
        return bool(vote > 0)

    def state(self, infos: dict[str, Any]) -> dict[str, Any]:
        """Return a checkpoint: weights, optimizer, iteration and `infos`."""
        return {**self.alg.save(), 'iter': self.iteration, 'infos': infos}

    def restore(self, path: Path) -> dict[str, Any]:
        """Take over a checkpoint and return its `infos`; UserError says what does not fit."""
        try:
            data = torch.load(path, map_location=self.device, weights_only=True)
            missing = [key for key in (*STATES, 'iter') if key not in data]
            if missing:
                raise UserError(f'{path}: no {", ".join(missing)} in this checkpoint')
            self.alg.load(data, None, True)
        except (RuntimeError, ValueError, KeyError, OSError, EOFError) as error:
            raise UserError(f'{path}: {" ".join(str(error).split())[:300]}') from None
        self.current_learning_iteration = data['iter']
        infos: dict[str, Any] = data.get('infos') or {}
        return infos

    def _can_act(self) -> bool:
        """Tell whether actions can still be drawn: finite weights, deviations not below zero."""
        weights = (*self.alg.actor.parameters(), *self.alg.critic.parameters())
        finite = all(bool(torch.isfinite(values).all()) for values in weights)
        return finite and bool((self.alg.get_policy().output_std >= 0).all())

    def _first_not_finite(self) -> str:
        storage = self.alg.storage
        for name, values in (*storage.observations.items(), ('reward', storage.rewards)):
            bad = (~torch.isfinite(values.flatten(2))).nonzero()
            if len(bad):
                step, robot, place = bad[0].tolist()
                count = len(bad[:, 1].unique())
                return (
                    f'{name} value {place} of robot {robot} at step {step} of the rollout of '
                    f'iteration {self.iteration} ({count} robots in all)'
                )
        return f'the last observation of iteration {self.iteration}, or another process'

    def _configure_multi_gpu(self) -> None:
        """As rsl_rl does, but on the cpu over gloo, which it does not know."""
        world = int(os.environ.get('WORLD_SIZE', '1'))
        if world == 1 or torch.device(self.device).type == 'cuda':
            super()._configure_multi_gpu()
            return
        self.gpu_world_size, self.is_distributed = world, True
        self.gpu_local_rank = int(os.environ['LOCAL_RANK'])
        self.gpu_global_rank = int(os.environ['RANK'])
        self.cfg['multi_gpu'] = {
            'global_rank': self.gpu_global_rank,
            'local_rank': self.gpu_local_rank,
            'world_size': world,
        }
        torch.distributed.init_process_group('gloo', rank=self.gpu_global_rank, world_size=world)


def _all_finite(obs: TensorDict, rewards: Tensor) -> Tensor:
    values = torch.isfinite(rewards).all()
    for tensor in obs.values():
        values = values & torch.isfinite(tensor).all()
    return values
