"""Reads what training is set up by: the contract, and a PPO configuration that fits it."""

from pathlib import Path
from typing import Any

from g1_policy_node.contract import Contract
from g1_policy_node.paths import find_data
from g1_policy_node.schema import read_yaml
from g1_policy_node.types import UserError

DEFAULT_CONTRACT = 'config/g1_walk_contract.yaml'
DEFAULT_CONFIG = 'config/rsl_rl_ppo_cfg.yaml'
_KEYS = {
    'device': str,
    'num_envs': int,
    'seed': int,
    'num_steps_per_env': int,
    'max_iterations': int,
    'save_interval': int,
    'actor': dict,
    'critic': dict,
    'algorithm': dict,
    'smoothness_loss_coeff': float,
}


def contract_path(given: str) -> Path:
    """Return the contract file to train by; the package's own where none is given."""
    return Path(given).resolve() if given else find_data(DEFAULT_CONTRACT)


def load_ppo_config(path: str, contract: Contract) -> dict[str, Any]:
    """Return rsl_rl's configuration; UserError where it does not fit the contract."""
    where = Path(path) if path else find_data(DEFAULT_CONFIG)
    config = read_yaml(where)
    if not isinstance(config, dict):
        raise UserError(f'{where}: not a map')
    for key, kind in _KEYS.items():
        if type(config.get(key)) is not kind:
            raise UserError(f'{where}: {key} should be a {kind.__name__}, not {config.get(key)!r}')
    if unknown := sorted(map(str, config.keys() - _KEYS.keys())):
        raise UserError(f'{where}: unknown keys {", ".join(unknown)}')
    actor, network = config['actor'], contract.network
    for key, wanted in (
        ('hidden_dims', list(network.sizes[1:-1])),
        ('activation', network.activation),
    ):
        if actor.get(key) != wanted:
            raise UserError(
                f'{where}: actor.{key} is {actor.get(key)}, the contract {contract.name} has '
                f'{wanted}'
            )
    actor['obs_normalization'] = contract.normalizer == 'required'
    config['obs_groups'] = {'actor': ['policy'], 'critic': ['critic']}
    return config
