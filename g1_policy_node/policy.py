"""The policy: observation, actor and action in one step. No clock, no modes, no safety."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.action import JointPositionAction
from g1_policy_node.actor import Actor
from g1_policy_node.contract import Contract
from g1_policy_node.observation import ObservationBuilder
from g1_policy_node.types import Array, RobotState


class PolicyStep(NamedTuple):
    """One step: what the network saw (n,), what it said (N,), and the joint targets (N,) rad."""

    observation: NDArray[np.float32]
    action: Array
    target: Array


class DeviceFailure(NamedTuple):
    """A device that failed in a step, and what it said."""

    device: str
    reason: str


class Policy:
    """Turns states into joint targets. `actor` may be replaced between two steps.

    Where `reserve` is given, it answers in the very step in which `actor` fails, and stays in
    place; `failure` keeps what happened until somebody replaces the actor and clears it.
    """

    def __init__(self, contract: Contract, actor: Actor, reserve: Actor | None = None) -> None:
        self.actor = actor
        self.failure: DeviceFailure | None = None
        self._reserve = reserve
        self._observation = ObservationBuilder(contract)
        self._action = JointPositionAction(contract)
        self._last_action = np.zeros(len(contract.joint_names))
        self._nothing = np.zeros(contract.observation_size, dtype=np.float32)

    def reset(self) -> None:
        """Forget the history and the last action."""
        self._observation.reset()
        self._last_action = np.zeros_like(self._last_action)

    def run_for_nothing(self) -> None:
        """Run the network on zeros and forget what it said, to have it in the caches."""
        self.actor(self._nothing)

    def observe(self, state: RobotState, command: Array, k: int) -> NDArray[np.float32]:
        """Return the observation (n,) of this tick; `k` is the gait tick."""
        return self._observation.build(state, command, k, self._last_action)

    def act(self, observation: NDArray[np.float32]) -> Array:
        """Return the raw action (N,), without remembering it."""
        try:
            return self.actor(observation).astype(np.float64)
        except RuntimeError as error:  # torch's type for everything CUDA reports
            if self._reserve is None or self.actor is self._reserve:
                raise
            reason = (str(error).splitlines() or [repr(error)])[0]
            self.failure = DeviceFailure(self.actor.device, reason)
            self.actor = self._reserve
            return self.actor(observation).astype(np.float64)

    def use(self, actor: Actor) -> None:
        """Replace the actor, between two steps; an earlier failure is forgotten."""
        self.actor, self.failure = actor, None

    def target(self, action: Array) -> Array:
        """Return the joint targets (N,) rad of a raw action, and remember the action."""
        self._last_action = action
        return self._action.target(action)

    def step(self, state: RobotState, command: Array, k: int) -> PolicyStep:
        """Observe, act and return the whole step."""
        observation = self.observe(state, command, k)
        action = self.act(observation)
        return PolicyStep(observation, action, self.target(action))
