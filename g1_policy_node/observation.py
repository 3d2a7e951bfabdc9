"""The observation: a table of small pure terms, in the order the contract gives."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node import gait
from g1_policy_node.contract import Contract, GaitContract, ObservationTerm
from g1_policy_node.types import Array, RobotState, UserError


class Context(NamedTuple):
    """What a term may read at one tick.

    `default_joint_pos` (N,) rad and `state` are in policy order, `command` is (3,) m/s, m/s,
    rad/s, `k` the gait tick, `last_action` (N,) the network's previous output, unclipped.
    """

    state: RobotState
    default_joint_pos: Array
    command: Array
    k: int
    gait: GaitContract | None
    last_action: Array


class Term(NamedTuple):
    """A term: its function, its size (None: one per joint or foot), and what it needs."""

    function: Callable[[Context], Array]
    size: int | None = None
    needs_gait: bool = False
    needs_odom: bool = False


def _base_lin_vel(c: Context) -> Array:
    assert c.state.lin_vel is not None  # `Inputs` without odom never reach a contract needing it
    return c.state.lin_vel


def _gait(function: Callable[[GaitContract, int, Array], Array]) -> Callable[[Context], Array]:
    def term(c: Context) -> Array:
        assert c.gait is not None  # refused in ObservationBuilder
        return function(c.gait, c.k, c.command)

    return term


TERMS: dict[str, Term] = {
    'base_lin_vel': Term(_base_lin_vel, 3, needs_odom=True),
    'base_ang_vel': Term(lambda c: c.state.ang_vel, 3),
    'projected_gravity': Term(lambda c: c.state.gravity, 3),
    'velocity_commands': Term(lambda c: c.command, 3),
    'joint_pos_rel': Term(lambda c: c.state.joint_pos - c.default_joint_pos),
    'joint_vel_rel': Term(lambda c: c.state.joint_vel),
    'last_action': Term(lambda c: c.last_action),
    'gait_phase_sin': Term(_gait(gait.phase_sin), needs_gait=True),
    'gait_phase_cos': Term(_gait(gait.phase_cos), needs_gait=True),
    'gait_contact': Term(_gait(gait.contact), needs_gait=True),
}
"""Names as in isaaclab.envs.mdp.observations; the gait terms are this package's own."""


def needs_odom(contract: Contract) -> bool:
    """Tell whether any term of the contract reads the base's linear velocity."""
    return any(TERMS[t.term].needs_odom for t in contract.observations if t.term in TERMS)


def projected_gravity(quat_xyzw: Array) -> Array:
    """Return the inverse of the unit quaternion (4,) x, y, z, w applied to (0, 0, -1)."""
    x, y, z, w = quat_xyzw.tolist()  # floats: numpy's scalars are ten times slower
    return np.array(
        [2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1], dtype=float
    )


class ObservationBuilder:
    """Builds the observation of a contract, one frame a tick; it holds the history alone.

    Raises UserError for a term that does not exist, does not fit the contract, or has
    parameters (no term here takes any).
    """

    def __init__(self, contract: Contract) -> None:
        rows = _checked(contract)
        self.size = contract.observation_size
        self._default = contract.per_joint('default_position')
        self._gait = contract.gait
        self._values = np.zeros(self.size)
        self._fresh = True
        blocks = np.split(self._values, np.cumsum([row.width for row in rows])[:-1])
        self._rows = [
            (TERMS[row.term], row, _frames(row, block))
            for row, block in zip(rows, blocks, strict=True)
        ]

    def reset(self) -> None:
        """Forget the history; the next frame fills all of it."""
        self._fresh = True

    def build(
        self, state: RobotState, command: Array, k: int, last_action: Array
    ) -> NDArray[np.float32]:
        """Return the observation (size,) for this tick and remember its frame."""
        context = Context(state, self._default, command, k, self._gait, last_action)
        for term, row, frames in self._rows:
            value = term.function(context)
            if row.clip is not None:
                value = np.clip(value, *row.clip)
            if self._fresh:
                frames[:] = value * row.scale
            else:
                frames[:-1] = frames[1:]
                np.multiply(value, row.scale, out=frames[-1])
        self._fresh = False
        return self._values.astype(np.float32)


def _frames(row: ObservationTerm, block: Array) -> Array:
    """Return a term's place in the observation as (history, size), the oldest frame first."""
    frames = block.reshape(row.history, row.size)
    return frames if row.history_order == 'oldest_first' else frames[::-1]


def _checked(contract: Contract) -> tuple[ObservationTerm, ...]:
    joints, feet = len(contract.joint_names), len(contract.gait.offsets) if contract.gait else 0
    for row in contract.observations:
        term = TERMS.get(row.term)
        if term is None:
            raise UserError(f'observation term {row.term} is none of {", ".join(TERMS)}')
        if term.needs_gait and contract.gait is None:
            raise UserError(f'observation term {row.term} needs the contract to have a gait')
        size = term.size or (feet if term.needs_gait else joints)
        if row.size != size:
            raise UserError(
                f'observation term {row.term} has {size} values, the contract says {row.size}:\n'
                + contract.table()
            )
        if row.parameters:
            raise UserError(f'observation term {row.term} takes no parameters')
    return contract.observations
