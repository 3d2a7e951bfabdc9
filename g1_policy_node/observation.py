"""The observation: a table of small pure terms, in the order the contract gives."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.contract import Contract, ObservationTerm
from g1_policy_node.gait import GaitNow, GaitTable
from g1_policy_node.types import Array, RobotState, UserError


class Context(NamedTuple):
    """What a term may read at one tick; at T ticks, each but the default has T rows.

    `default_joint_pos` (N,) rad and `state` are in policy order, `command` is (3,) m/s, m/s,
    rad/s, `last_action` (N,) the network's previous output, unclipped.
    """

    state: RobotState
    default_joint_pos: Array
    command: Array
    gait: GaitNow | None
    last_action: Array


class Term(NamedTuple):
    """A term: its function, its size (None: one per joint or foot), and what it needs.

    `function` takes a Context, or training's of the same names with torch tensors in it.
    """

    function: Callable[[Any], Any]
    size: int | None = None
    needs_gait: bool = False
    needs_odom: bool = False


TERMS: dict[str, Term] = {
    'base_lin_vel': Term(lambda c: c.state.lin_vel, 3, needs_odom=True),
    'base_ang_vel': Term(lambda c: c.state.ang_vel, 3),
    'projected_gravity': Term(lambda c: c.state.gravity, 3),
    'velocity_commands': Term(lambda c: c.command, 3),
    'joint_pos_rel': Term(lambda c: c.state.joint_pos - c.default_joint_pos),
    'joint_vel_rel': Term(lambda c: c.state.joint_vel),
    'last_action': Term(lambda c: c.last_action),
    'gait_phase_sin': Term(lambda c: c.gait.sin, needs_gait=True),
    'gait_phase_cos': Term(lambda c: c.gait.cos, needs_gait=True),
    'gait_contact': Term(lambda c: c.gait.contact, needs_gait=True),
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

    A frame is every term's newest values, one after another; the observation picks its values
    out of the last frames. Raises UserError for a term that does not exist, does not fit the
    contract, or has parameters (no term here takes any).
    """

    def __init__(self, contract: Contract) -> None:
        rows = _checked(contract)
        self.size = contract.observation_size
        self._default = contract.per_joint('default_position')
        self._gait = GaitTable(contract.gait) if contract.gait else None
        self._terms = [TERMS[row.term].function for row in rows]
        self._scale = np.concatenate([np.broadcast_to(row.scale, row.size) for row in rows])
        self._bounds = _bounds(rows)
        self._depth = max(row.history for row in rows)
        self._past = np.zeros((self._depth, len(self._scale)))  # the oldest frame first
        self._picked = _picked(rows, self._depth)
        self._fresh = True

    def reset(self) -> None:
        """Forget the history; the next frame fills all of it."""
        self._fresh = True

    def build(
        self, state: RobotState, command: Array, k: int, last_action: Array
    ) -> NDArray[np.float32]:
        """Return the observation (size,) for this tick and remember its frame."""
        gait = self._gait.now(k, command) if self._gait else None
        frame = self._frame(Context(state, self._default, command, gait, last_action))
        if self._depth == 1:
            return frame.astype(np.float32)
        if self._fresh:
            self._past[:] = frame
        else:
            self._past[:-1] = self._past[1:]
            self._past[-1] = frame
        self._fresh = False
        return self._past.ravel()[self._picked].astype(np.float32)

    def build_rows(
        self, states: RobotState, command: Array, k: NDArray[np.int64], last_action: Array
    ) -> NDArray[np.float32]:
        """Return the observations (T, size) of T ticks in a row, from a reset on.

        `states` has arrays of T rows, as have `command`, `k` and `last_action`.
        """
        gait = self._gait.rows(k, command) if self._gait else None
        frames = self._frame(Context(states, self._default, command, gait, last_action))
        padded = np.concatenate((np.repeat(frames[:1], self._depth - 1, axis=0), frames))
        windows = np.arange(len(frames))[:, None] * frames.shape[1] + self._picked
        rows: NDArray[np.float32] = padded.ravel()[windows].astype(np.float32)
        return rows

    def _frame(self, context: Context) -> Array:
        frame = np.concatenate([term(context) for term in self._terms], axis=-1)
        if self._bounds is not None:
            low, high = self._bounds
            np.minimum(np.maximum(frame, low, out=frame), high, out=frame)
        frame *= self._scale
        return frame


def _bounds(rows: tuple[ObservationTerm, ...]) -> Array | None:
    """Return the clip of every value of a frame (2, F), None where no term has one."""
    if not any(row.clip for row in rows):
        return None
    clips = [row.clip or (-np.inf, np.inf) for row in rows]
    return np.repeat(np.array(clips), [row.size for row in rows], axis=0).T


def _picked(rows: tuple[ObservationTerm, ...], depth: int) -> NDArray[np.intp]:
    """Return where each value of the observation is in `depth` frames, the oldest first."""
    sizes = np.array([row.size for row in rows])
    width, starts = sizes.sum(), np.cumsum(sizes) - sizes
    blocks = []
    for row, start in zip(rows, starts, strict=True):
        frames = np.arange(depth - row.history, depth)
        if row.history_order == 'newest_first':
            frames = frames[::-1]
        blocks.append((frames[:, None] * width + start + np.arange(row.size)).ravel())
    return np.concatenate(blocks)


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
