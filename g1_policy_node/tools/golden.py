"""Makes golden vectors: a closed-loop rollout in MuJoCo, its actions by a float64 forward.

The forward here shares no code with the actors that are checked against it.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.contract import Contract, NetworkContract
from g1_policy_node.golden_vectors import Golden
from g1_policy_node.policy import Policy
from g1_policy_node.types import Array, UserError
from g1_policy_node.weights import Tensors

if TYPE_CHECKING:
    from g1_policy_node.sim.robot import MujocoRobot

COMMANDS: tuple[tuple[float, float, float], ...] = (
    (0.0, 0.0, 0.0),
    (0.5, 0.0, 0.0),
    (1.0, 0.0, 0.0),
    (-0.8, 0.0, 0.0),
    (0.0, 0.75, 0.0),
    (0.0, 0.0, 0.75),
    (0.0, 0.0, -0.75),
    (0.5, -0.5, 0.6),
)
"""vx, vy, yaw rate as parts of the contract's range on that side of zero."""

SECONDS = 2.5
PUSH_SPEED = 0.5
"""Of the push in the middle of each rollout, m/s, in a random direction."""

_LONGEST_PHYSICS_DT = 0.005


class GoldenRun(NamedTuple):
    """Golden vectors, a sentence on how they were made, and in how many rollouts it fell."""

    golden: Golden
    source: str
    falls: int


def forward(
    network: NetworkContract, weights: Tensors, observations: NDArray[np.float32]
) -> Array:
    """Return the raw actions (T, N) for observations (T, n), every step in float64."""
    x = observations.astype(np.float64)
    if 'normalizer.mean' in weights:
        mean, divisor = weights['normalizer.mean'], weights['normalizer.divisor']
        x = (x - mean.astype(np.float64)) / divisor.astype(np.float64)
    depth = len(network.sizes) - 1
    for i in range(depth):
        weight, bias = weights[f'layers.{i}.weight'], weights[f'layers.{i}.bias']
        x = x @ weight.astype(np.float64).T + bias.astype(np.float64)
        if i < depth - 1:
            x = _ACTIVATIONS[network.activation](x)
    return x


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    'elu': lambda x: np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))),
    'relu': lambda x: np.where(x > 0.0, x, 0.0),
    'tanh': np.tanh,
}


class ReferenceActor:
    """The float64 forward as an Actor, so that the policy walks on it."""

    device = 'float64 numpy'

    def __init__(self, network: NetworkContract, weights: Tensors) -> None:
        self._network = network
        self._weights = weights

    def __call__(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the raw action (N,) for one observation (n,)."""
        return forward(self._network, self._weights, observation[np.newaxis])[0].astype(np.float32)


def record_golden(
    contract: Contract,
    weights: Tensors,
    seed: int = 0,
    commands: tuple[tuple[float, float, float], ...] = COMMANDS,
    progress: Callable[[str], None] = lambda line: None,
) -> GoldenRun:
    """Walk the policy at each command and keep every second tick.

    Each rollout starts at a random gait tick and is pushed once; one that falls ends there.
    """
    try:
        from g1_policy_node.sim.robot import MujocoRobot
    except ImportError as error:
        raise UserError(f'golden vectors need MuJoCo ({error}): pip install mujoco') from None
    substeps = math.ceil(contract.step_dt / _LONGEST_PHYSICS_DT - 1e-9)
    robot = MujocoRobot(contract, physics_dt=contract.step_dt / substeps)
    policy = Policy(contract, ReferenceActor(contract.network, weights))
    random = np.random.default_rng(seed)
    rows: list[NDArray[np.float32]] = []
    falls = 0
    for i, parts in enumerate(commands):
        command = command_from_parts(contract, parts)
        shown = ', '.join(f'{value:.2f}' for value in command)
        progress(f'golden vectors: rollout {i + 1} of {len(commands)} at ({shown})')
        observations, fell = _roll_out(contract, robot, policy, command, substeps, random)
        rows += observations[::2]
        falls += fell
    observed = np.array(rows, dtype=np.float32)
    source = (
        f'MuJoCo {robot.version} closed loop: {len(commands)} commands x {SECONDS} s, one push '
        f'each, every second tick, seed {seed}, fell in {falls}; actions by a float64 numpy '
        'forward'
    )
    actions = forward(contract.network, weights, observed)
    return GoldenRun(Golden(observed, actions), source, falls)


def command_from_parts(contract: Contract, parts: tuple[float, float, float]) -> Array:
    """Return the command (3,) that is these parts of the range on each side of zero."""
    lower, upper = contract.command_limits.T
    p = np.asarray(parts)
    return np.where(p < 0, -p * lower, p * upper)


def _roll_out(
    contract: Contract,
    robot: 'MujocoRobot',
    policy: Policy,
    command: Array,
    substeps: int,
    random: np.random.Generator,
) -> tuple[list[NDArray[np.float32]], bool]:
    """Return the observation of every tick, and whether the robot fell."""
    robot.reset()
    policy.reset()
    ticks = round(SECONDS / contract.step_dt)
    start = int(random.integers(contract.gait.period)) if contract.gait else 0
    angle = random.uniform(0.0, 2.0 * math.pi)
    observations = []
    for tick in range(ticks):
        if tick == ticks // 2:
            robot.push(PUSH_SPEED * np.array([math.cos(angle), math.sin(angle)]))
        step = policy.step(robot.state(), command, start + tick)
        observations.append(step.observation)
        for _ in range(substeps):
            robot.step(step.target)
        if robot.fallen:
            return observations, True
    return observations, False
