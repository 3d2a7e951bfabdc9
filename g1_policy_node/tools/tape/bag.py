"""Reads a rosbag2 bag, ours or `ros2 bag record`'s, whole or left behind by a dead recorder.

Order: receive time, and the file's own order where two times are equal.
"""

import sqlite3
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rosbags.rosbag2 import Reader, ReaderError
from rosbags.rosbag2.storage_mcap import McapReader
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_typestore

from g1_policy_node.schema import read_yaml
from g1_policy_node.types import UserError

MAGIC = b'\x89MCAP0\r\n'
_DATA_END, _FOOTER = 0x0F, 0x02
_RECORD = struct.Struct('<BQ')
_STORAGES = ('mcap', 'sqlite3')


class Message(NamedTuple):
    """One message: when it was received (system time, ns) and its CDR bytes."""

    received: int
    data: bytes


class Topic(NamedTuple):
    """A topic's type and its messages in order."""

    kind: str
    messages: tuple[Message, ...]


class Bag(NamedTuple):
    """A bag in memory. `notes` says, a line each, what was wrong with it and got around."""

    path: Path
    storage: str
    topics: Mapping[str, Topic]
    custom: Mapping[str, str]
    notes: tuple[str, ...]

    def decoded(self, topic: str) -> Iterator[tuple[int, Any]]:
        """Yield receive time in ns and the decoded message, arrays as numpy."""
        kind, messages = self.topics[topic]
        for received, data in messages:
            yield received, decode(data, kind, f'{self.path}: {topic}')


_TYPES = get_typestore(Stores.ROS2_JAZZY)


def decode(data: bytes, kind: str, where: str) -> Any:
    """Return the message of type `kind`; UserError, beginning with `where`, if it is none.

    A serializer may leave room behind the last field (Fast CDR does, up to eight bytes), which
    ROS reads over and rosbags does not.
    """
    for room in (0, 4, 8):
        try:
            return _TYPES.deserialize_cdr(data[: len(data) - room], kind)
        except SerdeError as error:
            reason = str(error)
    raise UserError(f'{where}: {reason}')


def read_bag(path: Path) -> Bag:
    """Read a bag's folder or storage file; UserError says in one line why it cannot be read."""
    if not path.exists():
        raise UserError(f'{path}: no such bag')
    try:
        bag = _read(path)
    except UserError:
        raise
    except (ReaderError, OSError, sqlite3.Error) as error:
        raise UserError(f'{path}: {" ".join(str(error).split())}') from None
    except Exception as error:  # a broken file raises whatever its bytes lead to
        raise UserError(f'{path} cannot be read: {error!r:.200}') from None
    if not any(topic.messages for topic in bag.topics.values()):
        raise UserError(f'{path}: zero messages in it')
    return bag


def _read(path: Path) -> Bag:
    metadata = path / 'metadata.yaml'
    if path.is_dir() and metadata.exists():
        facts = _metadata(metadata)
        files = [path / Path(name).name for name in facts.get('relative_file_paths') or ()]
        present = [file for file in files if file.suffix == '.mcap' and file.exists()]
        broken = [file for file in present if not _is_closed(file)]
        if not broken:
            return _whole(path, facts)
        return _salvaged(path, files, (f'{broken[0].name} is truncated',))
    if path.is_file():
        return _salvaged(path, [path], ())
    files = sorted(item for item in path.iterdir() if item.suffix in ('.mcap', '.db3'))
    if not files:
        raise UserError(f'{path}: no bag: neither metadata.yaml nor a .mcap or .db3 file')
    return _salvaged(path, files, ('no metadata.yaml: the recorder did not finish',))


def _metadata(path: Path) -> Mapping[str, Any]:
    try:
        data: Any = read_yaml(path)
        facts: Mapping[str, Any] = data['rosbag2_bagfile_information']
        storage = facts['storage_identifier']
    except (KeyError, TypeError) as error:
        raise UserError(f'{path} is not readable: {" ".join(str(error).split())}') from None
    if storage not in _STORAGES:
        raise UserError(f'{path}: storage {storage!r} is none of {", ".join(_STORAGES)}')
    return facts


def _whole(path: Path, facts: Mapping[str, Any]) -> Bag:
    with Reader(path) as reader:
        found: dict[str, tuple[str, list[Message]]] = {
            c.topic: (c.msgtype, []) for c in reader.connections
        }
        for connection, received, data in reader.messages():
            found[connection.topic][1].append(Message(received, bytes(data)))
    custom = facts.get('custom_data') or {}
    return Bag(path, str(facts['storage_identifier']), _sorted(found), custom, ())


def _salvaged(path: Path, files: list[Path], notes: tuple[str, ...]) -> Bag:
    """Read storage files without their metadata.yaml, each as far as it goes."""
    found: dict[str, tuple[str, list[Message]]] = {}
    for file in files:
        notes += _read_file(file, found)
    storage = 'mcap' if files[0].suffix == '.mcap' else 'sqlite3'
    return Bag(path, storage, _sorted(found), {}, notes)


def _read_file(file: Path, found: dict[str, tuple[str, list[Message]]]) -> tuple[str, ...]:
    if file.suffix not in ('.mcap', '.db3'):
        raise UserError(f'{file}: neither a .mcap nor a .db3 file')
    if file.suffix == '.db3':
        with Reader(file) as reader:
            for connection, received, data in reader.messages():
                _add(found, connection.topic, connection.msgtype, received, data)
        return ()
    if _is_closed(file):
        _scan(file, found)
        return ()
    with TemporaryDirectory() as folder:
        closed = Path(folder, 'closed.mcap')
        lost = close_mcap(file, closed)
        _scan(closed, found)
    return (f'{file.name} has no index or end: read up to its last {lost} bytes',)


def _scan(file: Path, found: dict[str, tuple[str, list[Message]]]) -> None:
    reader = McapReader(file)
    reader.open()
    try:
        # Not messages(), which insists on an index or on sorted times; they are sorted here.
        for connection, received, data in reader.messages_scan(reader.connections):
            _add(found, connection.topic, connection.msgtype, received, data)
    finally:
        reader.close()


def _add(
    found: dict[str, tuple[str, list[Message]]], topic: str, kind: str, received: int, data: bytes
) -> None:
    found.setdefault(topic, (kind, []))[1].append(Message(received, bytes(data)))


def _sorted(found: dict[str, tuple[str, list[Message]]]) -> dict[str, Topic]:
    return {
        name: Topic(kind, tuple(sorted(messages, key=lambda message: message.received)))
        for name, (kind, messages) in found.items()
    }


def _is_closed(file: Path) -> bool:
    size = file.stat().st_size if file.exists() else 0
    if size < 2 * len(MAGIC):
        return False
    with file.open('rb') as stream:
        stream.seek(-len(MAGIC), 2)
        return stream.read() == MAGIC


def close_mcap(file: Path, closed: Path) -> int:
    """Copy the whole records of an unfinished mcap and close the copy; return the bytes lost."""
    data = file.read_bytes()
    if not data.startswith(MAGIC):
        raise UserError(f'{file}: not an mcap file')
    end = len(MAGIC)
    while end + _RECORD.size <= len(data):
        operation, length = _RECORD.unpack_from(data, end)
        if operation in (_DATA_END, _FOOTER) or end + _RECORD.size + length > len(data):
            break
        end += _RECORD.size + length
    tail = _RECORD.pack(_DATA_END, 4) + bytes(4) + _RECORD.pack(_FOOTER, 20) + bytes(20) + MAGIC
    closed.write_bytes(data[:end] + tail)
    return len(data) - end
