"""Builds contracts and samples for tests."""

import dataclasses
import os
from pathlib import Path

import numpy as np

from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.paths import find_data
from g1_policy_node.safety import SafetyLimits, load_limits
from g1_policy_node.types import CommandSample, ImuSample, Inputs, JointSample, RobotState, Stamps

MS = 1_000_000
CONTRACT: Contract = load_contract(find_data('config/g1_walk_contract.yaml'))
DEFAULT = CONTRACT.per_joint('default_position')
UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])
LIMITS = SafetyLimits(
    **{name: entry.value for name, entry in load_limits(find_data('config/safety.yaml')).items()}
)


def stamps(received: int, header: int = 0) -> Stamps:
    return Stamps(header, 0, received, 0)


def joints(received: int = 0, **changes) -> JointSample:
    sample = JointSample(
        CONTRACT.joint_names, DEFAULT.copy(), np.zeros(len(DEFAULT)), stamps(received)
    )
    return sample._replace(**changes)


def imu(received: int = 0, **changes) -> ImuSample:
    sample = ImuSample(
        'pelvis', UPRIGHT.copy(), np.zeros(3), np.array([0, 0, 9.81]), '', stamps(received)
    )
    return sample._replace(**changes)


def command(velocity, received: int = 0) -> CommandSample:
    return CommandSample(np.array(velocity, dtype=float), stamps(received))


def inputs(received: int = 0, velocity=None) -> Inputs:
    wanted = None if velocity is None else command(velocity, received)
    return Inputs(joints(received), imu(received), wanted, None)


def tilted(angle: float) -> np.ndarray:
    """Return the quaternion x, y, z, w of a roll by `angle` rad."""
    return np.array([np.sin(angle / 2), 0.0, 0.0, np.cos(angle / 2)])


def random_state(rng: np.random.Generator, lin_vel: bool = False) -> RobotState:
    gravity = rng.normal(size=3)
    return RobotState(
        DEFAULT + 0.3 * rng.normal(size=29),
        rng.normal(size=29),
        rng.normal(size=3),
        gravity / np.linalg.norm(gravity),
        rng.normal(size=3) if lin_vel else None,
    )


def with_terms(*terms, **changes) -> Contract:
    """Return the contract with other observation terms, its network sized to fit."""
    width = sum(term.width for term in terms)
    network = dataclasses.replace(CONTRACT.network, sizes=(width, 8, 29))
    return dataclasses.replace(CONTRACT, observations=terms, network=network, **changes)


REPOSITORY = Path(__file__).resolve().parents[1]
UNITREE_POLICY = Path(
    os.environ.get('G1_UNITREE_POLICY', '')
    or REPOSITORY.parent / 'shared/reference/unitree_rl_lab_g1_velocity'
)
"""unitree_rl_lab's published policy, which is not part of this repository."""
