"""Plain YAML and JSON into typed data: what fits is exact, what does not is refused by name."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from g1_policy_node.schema import MAX_TEXT_BYTES, build, read_json, read_small_file, read_yaml
from g1_policy_node.types import UserError


@dataclass(frozen=True)
class Inner:
    size: int
    scale: float | tuple[float, ...] = 1.0


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    kind: Literal['a', 'b'] = 'a'
    pair: tuple[float, float] | None = None
    values: Mapping[str, float] | None = None
    extra: Any = None
    flag: bool = False


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / 'file'
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ('content', 'names'),
    [
        ('a: &x [1]\nb: *x\n', 'aliases'),
        ('a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n', 'aliases'),
        ('a: !!python/object/apply:builtins.slice [null, null]', 'python/object/apply'),
        ('a: !!binary aGk=', 'binary'),
        ('a: !!bool perhaps', 'bool'),
        ('a: !!timestamp never', 'timestamp'),
        ('a: !local 1', '!local'),
        ('a: 1\nb: 2\na: 3\n', "line 3: 'a' twice"),
        ('x: {deep: 1, deep: 2}', "'deep' twice"),
        ('<<: {a: 1}', 'not a plain name'),
        ('? [1, 2]\n: 3', 'not a plain name'),
        ('[' * 5000, 'levels deep'),
        ('- ' * 5000, 'levels deep'),
        ('a: 0x_', 'not plain YAML'),
        ('a: 2026-99-99', 'not plain YAML'),
        ('a: ' + '9' * 5000, 'not plain YAML'),
        ('a: [1', 'not plain YAML'),
        ('a: 1\n---\nb: 2\n', 'not plain YAML'),
        (b'\xff\xfe\x00', 'not plain YAML'),
        ('a: "\x00"', 'not plain YAML'),
        ('#' * (MAX_TEXT_BYTES + 1), str(MAX_TEXT_BYTES)),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_yaml_that_is_not_plain_is_refused_in_one_line(
    tmp_path: Path, content: str | bytes, names: str
) -> None:
    path = written(tmp_path, content)
    with pytest.raises(UserError) as refusal:
        read_yaml(path)
    message = str(refusal.value)
    assert names in message
    assert message.startswith(str(path))
    assert '\n' not in message


def test_a_yaml_tag_runs_no_code(tmp_path: Path) -> None:
    witness = tmp_path / 'witness'
    path = written(tmp_path, f'a: !!python/object/apply:os.system ["touch {witness}"]')
    with pytest.raises(UserError, match='not allowed'):
        read_yaml(path)
    assert not witness.exists()


@pytest.mark.parametrize(
    ('content', 'names'),
    [
        ('{"a": 1, "a": 2}', 'twice'),
        ('{"a": NaN}', 'not finite'),
        ('{"a": [1, {"b": -Infinity}]}', 'a[1].b'),
        ('{"a": 1e999}', 'not finite'),
        ('[' * 100_000, 'too deep'),
        ('[' * 900 + ']' * 900, 'too deep'),
        ('{"a": ' + '9' * 5000 + '}', 'not plain JSON'),
        ('{"a": ', 'not plain JSON'),
        (b'\xff', 'not plain JSON'),
        ('', 'not plain JSON'),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_json_that_is_not_plain_is_refused(
    tmp_path: Path, content: str | bytes, names: str
) -> None:
    with pytest.raises(UserError) as refusal:
        read_json(written(tmp_path, content))
    assert names in str(refusal.value)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, b: bytes) -> None:
    path = written(tmp_path_factory.getbasetemp(), b)
    for read in (read_yaml, read_json):
        try:
            read(path)
        except UserError as refusal:
            assert str(path) in str(refusal)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)  # fmt: skip


@settings(deadline=None)
@given(PLAIN)
def test_json_reads_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, data: object
) -> None:
    path = written(tmp_path_factory.getbasetemp(), json.dumps(data))
    assert read_json(path) == data


@settings(deadline=None)
@given(PLAIN)
def test_data_of_any_shape_is_built_or_refused(data: object) -> None:
    with pytest.raises(UserError, match='where'):
        build(Inner, {'size': 'no number', 'scale': data}, 'where')


@pytest.mark.parametrize('given_path', ['absent', '.', 'pipe', 'null\x00', 'x' * 5000])
def test_what_is_no_file_is_refused(tmp_path: Path, given_path: str) -> None:
    os.mkfifo(tmp_path / 'pipe')
    with pytest.raises(UserError):
        read_small_file(tmp_path / given_path, 10)


def test_a_file_of_the_limit_is_read_and_one_byte_more_refused(tmp_path: Path) -> None:
    assert read_small_file(written(tmp_path, b'x' * 10), 10) == b'x' * 10
    with pytest.raises(UserError, match='10 bytes'):
        read_small_file(written(tmp_path, b'x' * 11), 10)


def test_what_fits_is_built_with_ints_as_floats_and_lists_as_tuples() -> None:
    built = build(
        Outer,
        {
            'name': 'n',
            'inner': {'size': 3, 'scale': [1, 2.5]},
            'pair': [0, 1],
            'values': {'a': 1},
            'extra': {'k': [1, None, 'x', True]},
        },
        'w',
    )
    assert built == Outer(
        'n', Inner(3, (1.0, 2.5)), 'a', (0.0, 1.0), {'a': 1.0}, {'k': [1, None, 'x', True]}
    )
    assert type(built.pair[0]) is float


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'name': None}, 'w.name: expected str, got None'),
        ({'name': 1}, 'w.name: expected str, got 1'),
        ({'inner': []}, 'w.inner: expected a map'),
        ({'inner': {}}, 'w.inner: missing size'),
        ({'inner': {'size': 1, 'typo': 2, 'other': 3}}, 'w.inner: unknown typo, other'),
        ({'inner': {'sise': 1}}, 'w.inner: missing size; unknown sise'),
        ({'inner': {'size': True}}, 'w.inner.size: expected int, got True'),
        ({'inner': {'size': 1.0}}, 'w.inner.size: expected int, got 1.0'),
        ({'inner': {'size': 1, 'scale': '1e-3'}}, "expected float, got '1e-3'"),
        ({'inner': {'size': 1, 'scale': [1, 'x']}}, 'w.inner.scale[1]: expected float'),
        ({'inner': {'size': 1, 'scale': float('nan')}}, 'w.inner.scale: nan is not finite'),
        ({'inner': {'size': 1, 'scale': 10**400}}, 'is not finite'),
        ({'kind': 'c'}, "w.kind: 'c' is none of 'a', 'b'"),
        ({'kind': ['a']}, 'w.kind'),
        ({'pair': [1, 2, 3]}, 'w.pair: expected 2 values, got 3'),
        ({'pair': 1}, 'w.pair: expected a list'),
        ({'values': {1: 2}}, 'w.values: expected a map from names'),
        ({'values': {'a': 'b'}}, 'w.values.a: expected float'),
        ({'extra': {'deep': [0, float('inf')]}}, 'w.extra.deep[1]: inf is not finite'),
        ({'extra': b'bytes'}, 'w.extra'),
        ({'flag': 1}, 'w.flag: expected bool, got 1'),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_does_not_fit_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as refusal:
        build(Outer, {'name': 'n', 'inner': {'size': 1}} | change, 'w')
    assert message in str(refusal.value)
