"""What test_train.py runs under torchrun: one iteration, then this process's weights to a file."""

import sys
from pathlib import Path

import torch

from g1_policy_node.contract import load_contract
from g1_policy_node.training.isaac import make_env
from g1_policy_node.training.ppo_config import contract_path, load_ppo_config
from g1_policy_node.training.processes import rank
from g1_policy_node.training.progress import EpisodeStatistics
from g1_policy_node.training.runner import Runner
from g1_policy_node.training.stage_times import StageTimes

folder, num_envs = Path(sys.argv[1]), int(sys.argv[2])
env = make_env('', num_envs, 'cpu', seed=1 + rank())
runner = Runner(env, load_ppo_config('', load_contract(contract_path(''))), None, 'cpu')
runner.start()
times = StageTimes('cpu', enabled=False)
runner.roll_out(times, EpisodeStatistics(num_envs, 'cpu'))
seen = runner.alg.storage.observations['policy'].clone()
runner.update(times)
weights = [p.detach() for p in (*runner.alg.actor.parameters(), *runner.alg.critic.parameters())]
torch.save(
    {'world_size': runner.gpu_world_size, 'seen': seen, 'weights': weights},
    folder / f'{rank()}.pt',
)
