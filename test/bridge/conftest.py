"""What tests of the bridge share."""

import pytest

from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.paths import find_data


@pytest.fixture(scope='session')
def contract() -> Contract:
    return load_contract(find_data('policies/g1_walk/policy.yaml'))
