"""Puts a contract together from what several files say of it.

Each file says a part: a map in the contract's own form, with fields left out. Where two say the
same field they must agree; what nobody says is refused by name. Beside the contract's fields a
part may say what other formats lack, the keys of EXTRAS.
"""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from typing import Any

from g1_policy_node.contract import Contract, ObservationTerm, contract_from_mapping
from g1_policy_node.types import UserError

UNSAID = '(not said)'
"""In place of a value that has a default in the contract, but must not be guessed here."""

EXTRAS = {
    'sdk_joint_names': 'joint names in SDK motor order',
    'terms': 'observation term by the name the source has for it',
    'history_order': 'oldest_first or newest_first',
    'offset_is_default_pose': 'true: actions are offsets from the default pose',
}


@dataclass(frozen=True)
class Part:
    """What one file says. Numbers within `tolerance` of another part's give way to it."""

    label: str
    data: Mapping[str, Any]
    tolerance: float = 0.0
    extras: Mapping[str, Any] = field(default_factory=dict)


def part_of(label: str, data: object) -> Part:
    """Split a map, read from `label`, into contract fields and extras; UserError otherwise."""
    if not isinstance(data, Mapping):
        raise UserError(f'{label}: expected a map, got {data!r:.80}')
    known = {f.name for f in dataclasses.fields(Contract)}
    if unknown := [str(key) for key in data if key not in known and key not in EXTRAS]:
        raise UserError(f'{label}: unknown {", ".join(unknown)}')
    fields = {key: value for key, value in data.items() if key in known}
    return Part(label, fields, extras={k: v for k, v in data.items() if k in EXTRAS})


def merged_extras(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the extras of all parts, which must agree."""
    out: dict[str, Any] = {}
    for part in parts:
        for key, value in part.extras.items():
            if out.setdefault(key, value) != value:
                raise UserError(f'{part.label}: {key} is {value!r:.80}, said before: {out[key]!r}')
    return out


def needed(extras: Mapping[str, Any], key: str, where: str) -> Any:
    """Return an extra; UserError where nobody says it."""
    if key not in extras:
        raise UserError(f'{where} does not say {key} ({EXTRAS[key]}): add it with --contract FILE')
    return extras[key]


def contract_of(parts: Sequence[Part], where: str) -> Contract:
    """Merge the parts and check the whole; UserError names conflicts, and what is missing."""
    data: dict[str, Any] = {}
    tolerance = 0.0
    for part in parts:
        data = _merge(data, part.data, '', part.label, max(tolerance, part.tolerance))
        tolerance = max(tolerance, part.tolerance)
    if missing := _missing(Contract, data, ''):
        raise UserError(f'{where} does not say {", ".join(missing)}: add it with --contract FILE')
    return contract_from_mapping(data, where)


def simple_scale(scale: Any) -> Any:
    """Return a list of equal scales as the one number; anything else as it is."""
    if isinstance(scale, list | tuple) and scale and all(value == scale[0] for value in scale):
        return scale[0]
    return scale


def _merge(old: Any, new: Any, name: str, label: str, tolerance: float) -> Any:
    """Return `new` laid over `old`."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        inner = {k: _merge(old[k], v, f'{name}.{k}', label, tolerance) if k in old else v
                 for k, v in new.items()}  # fmt: skip
        return {**old, **inner}
    if isinstance(old, list | tuple) and isinstance(new, list | tuple) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [_merge(a, b, f'{name}[{i}]', label, tolerance) for i, (a, b) in pairs]
    if _agree(old, new, name, tolerance):
        return new
    shown = f'{name.removeprefix(".")} is {new!r:.60}'
    raise UserError(f'{label}: {shown}, but the source says {old!r:.60}')


def _agree(old: Any, new: Any, name: str, tolerance: float) -> bool:
    if old == UNSAID:
        return True
    if name.endswith('.scale'):
        old, new = simple_scale(old), simple_scale(new)
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (old, new))
    if numbers:
        return bool(abs(old - new) <= tolerance)
    return bool(old == new)


def _missing(kind: Any, data: Mapping[str, Any], name: str) -> list[str]:
    """Name the required fields that are not there, `joints.*.armature` once for all joints."""
    hints = typing.get_type_hints(kind)
    out = []
    for f in dataclasses.fields(kind):
        full = f'{name}{f.name}'
        if f.name not in data:
            if f.default is MISSING and f.default_factory is MISSING:
                out.append(full)
        elif data[f.name] == UNSAID:
            out.append(full)
        elif dataclasses.is_dataclass(hints[f.name]) and isinstance(data[f.name], Mapping):
            out += _missing(hints[f.name], data[f.name], f'{full}.')
    if kind is Contract:
        joints, terms = data.get('joints'), data.get('observations')
        if isinstance(joints, Mapping):
            kind_of_joint = typing.get_args(hints['joints'])[1]
            out += _missing_in_all(kind_of_joint, list(joints.values()), 'joints.*.')
        if isinstance(terms, list | tuple):
            out += _missing_in_all(ObservationTerm, list(terms), 'observations.*.')
    return out


def _missing_in_all(kind: Any, items: Sequence[Any], name: str) -> list[str]:
    found = [_missing(kind, item, name) for item in items if isinstance(item, Mapping)]
    return list(dict.fromkeys(field for one in found for field in one))
