"""ONNX metadata as mjlab 1.6 writes them: strings of values with commas, rounded.

Format: mjlab/rl/exporter_utils.py. Numbers have 3 decimals, so a part from here gives way to any
other that rounds to the same.
"""

from collections.abc import Mapping
from typing import Any

from g1_policy_node.tools.formats.said import UNSAID, Part
from g1_policy_node.tools.formats.terms import term_named, term_size
from g1_policy_node.types import UserError

KEYS = ('joint_names', 'joint_stiffness', 'joint_damping', 'default_joint_pos', 'action_scale')
ROUNDING = 0.0005000001
"""Half of the last decimal, and the float error of comparing with it."""


def is_mjlab(metadata: Mapping[str, str]) -> bool:
    """Tell mjlab's metadata by their keys."""
    return {*KEYS, 'observation_names'} <= set(metadata)


def mjlab_part(metadata: Mapping[str, str], extras: Mapping[str, Any], where: str) -> Part:
    """Return what the metadata say of a contract; UserError names what does not fit."""
    names = metadata['joint_names'].split(',')
    kp, kd, default, scale = (_per_joint(metadata, key, names, where) for key in KEYS[1:])
    data: dict[str, Any] = {
        'joint_names': names,
        'joints': {
            name: {'default_position': default[name], 'stiffness': kp[name], 'damping': kd[name]}
            for name in names
        },
        'action': {'scale': scale},
        'observations': _rows(metadata, len(names), extras, where),
    }
    if extras.get('offset_is_default_pose') is True:
        data['action']['offset'] = default
    return Part(where, data, ROUNDING)


def precision_lost(part: Part) -> str:
    """Say what the rounding may have done to the smallest values, in one line."""
    worst = 0.0
    of = ''
    for key, values in (
        ('action scale', part.data['action']['scale']),
        *((key, {n: j[key] for n, j in part.data['joints'].items()})
          for key in ('stiffness', 'damping')),
    ):  # fmt: skip
        for name, value in values.items():
            if value and ROUNDING / abs(value) > worst:
                worst, of = ROUNDING / abs(value), f'{key} of {name}, {value}'
    return (
        f'precision lost: the metadata have 3 decimals; at worst {100 * worst:.2g} % ({of}). '
        'Give the exact values with --contract'
    )


def _per_joint(
    metadata: Mapping[str, str], key: str, names: list[str], where: str
) -> dict[str, float]:
    values = _numbers(metadata[key], key, where)
    if key == 'action_scale' and len(values) == 1:
        values *= len(names)
    if len(values) != len(names):
        raise UserError(f'{where}: {key} has {len(values)} values for {len(names)} joints')
    return dict(zip(names, values, strict=True))


def _numbers(text: str, key: str, where: str) -> list[float]:
    try:
        return [float(word) for word in text.split(',')]
    except ValueError:
        raise UserError(f'{where}: {key} is not a list of numbers: {text:.60}') from None


def _rows(
    metadata: Mapping[str, str], joints: int, extras: Mapping[str, Any], where: str
) -> list[dict[str, Any]]:
    names = metadata['observation_names'].split(',')
    columns = [
        _column(metadata, f'observation_terms_{key}', len(names), where)
        for key in ('scale', 'history_length', 'clip', 'flatten_history_dim')
    ]
    rows = []
    for name, scale, history, clip, flat in zip(names, *columns, strict=True):
        term = term_named(name, extras, where)
        if flat not in (None, 'True', '1.000'):
            raise UserError(f'{where}: history of {name} is not flattened')
        row: dict[str, Any] = {'term': term, 'size': term_size(term, joints)}
        row['scale'] = _scale(scale, where)
        row['clip'] = _clip(clip, where)
        row['history'] = UNSAID if history is None else max(1, round(float(history)))
        if row['history'] != 1:
            row['history_order'] = extras.get('history_order', UNSAID)
        rows.append(
            {key: value for key, value in row.items() if value is not None or key == 'clip'}
        )
    return rows


def _column(
    metadata: Mapping[str, str], key: str, count: int, where: str
) -> list[str] | list[None]:
    if key not in metadata:  # before mjlab 1.x there were none of these
        return [None] * count
    words = metadata[key].split(',')
    if len(words) != count:
        raise UserError(f'{where}: {key} has {len(words)} values for {count} observations')
    return words


def _scale(word: str | None, where: str) -> Any:
    if word is None:
        return UNSAID
    values = _numbers(word.replace(';', ','), 'observation_terms_scale', where)
    return values[0] if len(values) == 1 else values


def _clip(word: str | None, where: str) -> Any:
    if word is None:
        return UNSAID
    lower, upper = _numbers(word.replace(';', ','), 'observation_terms_clip', where)
    return None if (lower, upper) == (float('-inf'), float('inf')) else [lower, upper]
