from pathlib import Path
from typing import Any

import pytest
import yaml
from samples import CONTRACT

from g1_policy_node.paths import find_data
from g1_policy_node.training.ppo_config import DEFAULT_CONFIG, load_ppo_config
from g1_policy_node.types import UserError


def changed(tmp_path: Path, **changes: Any) -> str:
    """The package's configuration with some keys of its own."""
    data = {**yaml.safe_load(find_data(DEFAULT_CONFIG).read_text()), **changes}
    path = tmp_path / 'ppo.yaml'
    path.write_text(yaml.safe_dump({k: v for k, v in data.items() if v is not None}))
    return str(path)


def test_the_packages_own_fits_the_contract_and_is_for_cuda() -> None:
    config = load_ppo_config('', CONTRACT)
    assert (config['device'], config['num_envs']) == ('cuda:0', 4096)
    assert config['actor']['obs_normalization'] is False


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'seed': 'one'}, 'seed should be a int'),
        ({'num_envs': None}, 'num_envs should be a int, not None'),
        ({'num_env': 3}, 'unknown keys num_env'),
        ({'actor': {'hidden_dims': [64], 'activation': 'elu'}}, 'actor.hidden_dims is'),
        ({'actor': {'hidden_dims': [512, 256, 128], 'activation': 'relu'}}, 'actor.activation'),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changes: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_ppo_config(changed(tmp_path, **changes), CONTRACT)
