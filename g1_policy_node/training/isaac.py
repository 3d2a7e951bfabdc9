"""Starts Isaac Lab: an environment of the walking task, wrapped for rsl_rl."""

from typing import Any

import torch
import warp
from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper

from g1_policy_node.training.env import G1WalkEnv
from g1_policy_node.training.env_cfg import G1WalkEnvCfg


def make_env(contract: str, num_envs: int, device: str, seed: int) -> Any:
    """Return the environment, reset, with `num_envs` robots on `device`."""
    warp.config.quiet = True
    cfg = G1WalkEnvCfg(contract=contract)
    cfg.scene.num_envs = num_envs
    cfg.sim.device = device
    cfg.seed = seed
    torch.manual_seed(seed)
    return RslRlVecEnvWrapper(G1WalkEnv(cfg))
