"""A contract and a robot for every test of the simulators."""

from collections.abc import Iterator
from typing import Any

import pytest
from simulators import SIMULATORS

from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.paths import find_data
from g1_policy_node.sim.protocol import Robot
from g1_policy_node.sim.robot import MujocoRobot


@pytest.fixture(scope='session')
def contract() -> Contract:
    return load_contract(find_data('policies/g1_walk/policy.yaml'))


@pytest.fixture(scope='module', params=SIMULATORS)
def make_robot(request: pytest.FixtureRequest, contract: Contract) -> Iterator[Any]:
    """A new robot; of Isaac Lab there can be only one, so that is put back to its start."""
    if request.param == 'mujoco':
        yield lambda physics_dt: MujocoRobot(contract, physics_dt)
        return
    from g1_policy_node.sim.isaac_robot import IsaacRobot

    robot = IsaacRobot(contract)

    def again(physics_dt: float) -> Robot:
        assert physics_dt == robot.physics_dt
        robot.reset()
        return robot

    yield again
    robot.close()
