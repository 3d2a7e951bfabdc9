"""Reads plain YAML into typed dataclasses, refusing whatever does not fit by name."""

import dataclasses
import math
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal

import yaml

from g1_policy_node.types import UserError

MAX_YAML_BYTES = 1_000_000


def read_yaml(path: Path) -> object:
    """Read a small file of plain YAML: no tags, no aliases; UserError says what is wrong."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f'{path}: cannot be read ({error.strerror})') from None
    if len(raw) > MAX_YAML_BYTES:
        raise UserError(f'{path}: {len(raw)} bytes, more than the {MAX_YAML_BYTES} allowed')
    try:
        text = raw.decode()
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)):
            raise UserError(f'{path}: YAML aliases are not allowed here')
        return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        first_line = str(error).replace('\n', ' ')
        raise UserError(f'{path}: not plain YAML ({first_line})') from None


def build(kind: Any, value: object, where: str) -> Any:
    """Turn plain data into `kind`; UserError where a field is unknown, missing or mistyped.

    `kind` is a dataclass, or a type made of dataclasses, Literal, unions with None, tuples, maps
    from str, and plain types. An int is taken for a float; nothing else is converted.
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, value, where)
    if origin is Literal:
        if value in args:
            return value
        raise UserError(f'{where}: {value!r} is none of {", ".join(map(repr, args))}')
    if origin in (typing.Union, UnionType):
        return _build_union(args, value, where)
    if origin is tuple:
        return _build_tuple(args, value, where)
    if origin is Mapping:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise UserError(f'{where}: expected a map from names, got {value!r:.80}')
        return {key: build(args[1], item, f'{where}.{key}') for key, item in value.items()}
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise UserError(f'{where}: {value} is not finite')
        return float(value)
    if kind is Any or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
        return value
    raise UserError(f'{where}: expected {kind.__name__}, got {value!r:.80}')


def _build_dataclass(kind: Any, value: object, where: str) -> Any:
    if not isinstance(value, Mapping):
        raise UserError(f'{where}: expected a map, got {value!r:.80}')
    fields = {f.name: f for f in dataclasses.fields(kind)}
    required = [
        name
        for name, f in fields.items()
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    missing = [name for name in required if name not in value]
    unknown = [str(name) for name in value if name not in fields]
    if missing or unknown:
        parts = [f'missing {", ".join(missing)}'] * bool(missing)
        parts += [f'unknown {", ".join(unknown)}'] * bool(unknown)
        raise UserError(f'{where}: {"; ".join(parts)}')
    hints = typing.get_type_hints(kind)
    return kind(**{k: build(hints[k], v, f'{where}.{k}') for k, v in value.items()})


def _build_union(args: Sequence[Any], value: object, where: str) -> Any:
    if value is None and NoneType in args:
        return None
    options = [arg for arg in args if arg is not NoneType]
    wants_list = [arg for arg in options if typing.get_origin(arg) is tuple]
    kind = wants_list[0] if wants_list and isinstance(value, list | tuple) else options[0]
    return build(kind, value, where)


def _build_tuple(args: Sequence[Any], value: object, where: str) -> Any:
    if not isinstance(value, list | tuple):
        raise UserError(f'{where}: expected a list, got {value!r:.80}')
    kinds = [args[0]] * len(value) if args[-1] is Ellipsis else list(args)
    if len(kinds) != len(value):
        raise UserError(f'{where}: expected {len(kinds)} values, got {len(value)}')
    pairs = enumerate(zip(kinds, value, strict=True))
    return tuple(build(k, v, f'{where}[{i}]') for i, (k, v) in pairs)
