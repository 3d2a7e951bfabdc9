"""Reads plain YAML and JSON into typed dataclasses, refusing whatever does not fit by name."""

import dataclasses
import json
import math
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal

import yaml

from g1_policy_node.types import UserError

MAX_TEXT_BYTES = 250_000
MAX_YAML_DEPTH = 20


def read_yaml(path: Path) -> object:
    """Read a small file of plain YAML: no tags, no aliases, no key twice in a map.

    Raises UserError with what is wrong, whatever the bytes are.
    """
    raw = read_small_file(path, MAX_TEXT_BYTES)
    try:
        return yaml.load(raw.decode(), Loader=_PlainLoader)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, or no number or date
        first_line = ' '.join(str(error).split())
        raise UserError(f'{path}: not plain YAML ({first_line:.200})') from None


def read_json(path: Path) -> object:
    """Read a small JSON file of finite numbers, no key twice; UserError says what is wrong."""
    raw = read_small_file(path, MAX_TEXT_BYTES)
    try:
        data = json.loads(raw.decode(), object_pairs_hook=_unique_keys)
        return _plain_data(data, str(path))
    except ValueError as error:
        raise UserError(f'{path}: not plain JSON ({error!s:.200})') from None
    except RecursionError:
        raise UserError(f'{path}: not plain JSON (nested too deep)') from None


def read_small_file(path: Path, limit: int) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes; UserError otherwise."""
    try:
        if path.exists() and not path.is_file():
            raise UserError(f'{path}: not a file')
        with path.open('rb') as stream:
            raw = stream.read(limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, 'strerror', None) or error
        raise UserError(f'{path}: cannot be read ({reason})') from None
    if len(raw) > limit:
        raise UserError(f'{path}: more than the {limit} bytes allowed')
    return raw


class _PlainLoader(yaml.SafeLoader):
    """A SafeLoader without the parts of YAML that surprise: tags, aliases, repeated keys."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise yaml.YAMLError('aliases are not allowed here')
        if event.tag is not None:
            raise yaml.YAMLError(f'the tag {event.tag!r:.80} is not allowed here')
        self.depth += 1
        if self.depth > MAX_YAML_DEPTH:
            raise yaml.YAMLError(f'more than {MAX_YAML_DEPTH} levels deep')
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value == '<<' or not isinstance(key, yaml.ScalarNode):
                raise yaml.YAMLError(f'line {key.start_mark.line + 1}: a key is not a plain name')
            if key.value in seen:
                raise yaml.YAMLError(f'line {key.start_mark.line + 1}: {key.value!r:.80} twice')
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError(f'a key is there twice among {", ".join(key for key, _ in pairs):.120}')
    return data


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
    if kind is Any:
        return _plain_data(value, where)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return _finite(value, where)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise UserError(f'{where}: expected {kind.__name__}, got {value!r:.80}')


def _finite(value: float, where: str) -> float:
    try:
        number = float(value)
    except OverflowError:  # an int beyond the largest float
        number = math.inf
    if not math.isfinite(number):
        raise UserError(f'{where}: {value!r:.80} is not finite')
    return number


def _plain_data(value: object, where: str) -> Any:
    """Check data of no given type: what JSON can carry exactly, and nothing else."""
    if isinstance(value, Mapping):
        return build(Mapping[str, Any], value, where)
    if isinstance(value, list | tuple):
        return [_plain_data(item, f'{where}[{i}]') for i, item in enumerate(value)]
    if isinstance(value, float):
        return _finite(value, where)
    if value is None or isinstance(value, bool | int | str):
        return value
    raise UserError(f'{where}: {value!r:.80} is not plain data')


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
