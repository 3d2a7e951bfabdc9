"""Rows of the observation table from the names that other projects give their terms."""

from collections.abc import Mapping
from typing import Any

from g1_policy_node.observation import TERMS
from g1_policy_node.types import UserError

ALIASES = {
    'joint_pos': 'joint_pos_rel',
    'joint_vel': 'joint_vel_rel',
    'actions': 'last_action',
    'command': 'velocity_commands',
}
"""mjlab's names, where they differ from Isaac Lab's, which are this package's."""


def term_named(name: str, extras: Mapping[str, Any], where: str) -> str:
    """Return this package's term for a source's name; UserError where there is none."""
    said = extras.get('terms', {})
    if not isinstance(said, Mapping):
        raise UserError(f'{where}: terms: expected a map, got {said!r:.80}')
    term = said.get(name, ALIASES.get(name, name))
    if term not in TERMS:
        raise UserError(
            f'{where}: observation {name} is none of {", ".join(TERMS)}; if it is one under '
            'another name, say so under `terms`'
        )
    return str(term)


def term_size(term: str, joints: int) -> int | None:
    """Return how many values a term has; None where the gait's feet decide."""
    kind = TERMS[term]
    return None if kind.needs_gait else kind.size or joints
