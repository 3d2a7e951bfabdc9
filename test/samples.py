"""Builds contracts and samples for tests."""

import dataclasses
import os
from pathlib import Path

import numpy as np

from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.observation import projected_gravity
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
GOLDEN = load_bundle(resolve_bundle('g1_walk')).golden_observations


def stamps(received: int, header: int = 0) -> Stamps:
    return Stamps(header, 0, received, 0)


def tremor(received: int) -> float:
    """Return what keeps one sample's bits from being the next one's."""
    return 1e-9 * np.sin(received)


def joints(received: int = 0, **changes) -> JointSample:
    still = np.zeros(len(DEFAULT))
    sample = JointSample(
        CONTRACT.joint_names, DEFAULT.copy(), still + tremor(received), stamps(received)
    )
    return sample._replace(**changes)


def imu(received: int = 0, quat_xyzw: np.ndarray = UPRIGHT, **changes) -> ImuSample:
    """Return a sample at rest: the accelerometer feels 1 g against gravity by the orientation."""
    quat = quat_xyzw + np.array([tremor(received), 0.0, 0.0, 0.0])
    sample = ImuSample(
        'pelvis',
        quat,
        np.full(3, tremor(received)),
        -9.81 * projected_gravity(quat),
        '',
        stamps(received),
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
