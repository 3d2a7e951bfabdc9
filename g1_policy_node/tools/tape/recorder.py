"""The node `g1_tape`: records the interface's topics into a rosbag2 folder.

It polls its subscriptions and writes what came as the bytes that came, ordered by receive time.
Once a second everything is on its way to the disk, so a killed recorder loses the last second
and the index, not the tape.
"""

import importlib
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.storage_mcap import McapWriter
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer
from rosbags.typesys import Stores, get_typestore

from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.contract import dump_contract
from g1_policy_node.newest import EVERY_LATCHED_QOS, NewestMessage
from g1_policy_node.ros_process import run_ros_process
from g1_policy_node.run_folder import write_json
from g1_policy_node.tools.tape.topics import MODE, TYPES
from g1_policy_node.types import UserError

POLL_S = 0.01
FLUSH_S = 1.0
QUEUE = 400
"""Messages that may wait: two seconds of a 200 Hz topic, should the disk stall."""

STORAGES: Mapping[str, StoragePlugin] = {
    'mcap': StoragePlugin.MCAP,
    'sqlite3': StoragePlugin.SQLITE3,
}
FACTS_FILE = 'tape.json'
CONTRACT_FILE = 'contract.yaml'


class TapeWriter:
    """A rosbag2 folder being written, with the contract and both hashes beside the messages.

    They are written first, as files and as the bag's custom data: metadata.yaml comes last, and
    never if the recorder is killed.
    """

    def __init__(self, path: Path, storage: str, policy: str) -> None:
        if storage not in STORAGES:
            raise UserError(f'storage: {storage!r} is none of {", ".join(STORAGES)}')
        if path.exists():
            raise UserError(f'{path} exists: a tape is never written over')
        bundle = load_bundle(resolve_bundle(policy))
        self.path = path
        self.counts: Counter[str] = Counter()
        self._types = get_typestore(Stores.ROS2_JAZZY)
        self._connections: dict[str, Connection] = {}
        self._writer = Writer(path, version=9, storage_plugin=STORAGES[storage])
        self.facts = {
            'policy': bundle.contract.name,
            'weights_sha256': bundle.weights_sha256,
            'contract_sha256': bundle.contract_sha256,
            'storage': storage,
            'started_utc': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
        }
        for name, value in self.facts.items():
            self._writer.set_custom_data(name, value)
        try:
            self._writer.open()
        except OSError as error:
            raise UserError(f'{path} cannot be made ({error.strerror})') from None
        dump_contract(bundle.contract, path / CONTRACT_FILE)
        write_json(path / FACTS_FILE, self.facts)

    def write(self, topic: str, kind: str, received: int, data: bytes) -> None:
        """Add a message of type `kind`, as CDR, with its receive time in ns of system time."""
        if topic not in self._connections:
            self._connections[topic] = self._writer.add_connection(
                topic, kind, typestore=self._types
            )
        self._writer.write(self._connections[topic], received, data)
        self.counts[topic] += 1

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        storage = self._writer.storage
        if isinstance(storage, McapWriter):
            if storage.chunk.msgs:
                storage.close_chunk()
            storage.bio.flush()
        elif isinstance(storage, Sqlite3Writer):
            storage.conn.commit()

    def close(self) -> None:
        """Write the index and metadata.yaml."""
        self._writer.close()


class Recorder:
    """Subscribes to what is recorded; `poll` writes what has come since."""

    def __init__(self, node: Node, writer: TapeWriter) -> None:
        self._node = node
        self._writer = writer
        self._topics: dict[str, tuple[NewestMessage[Any], str]] = {}
        self._waiting: list[tuple[int, str, str, bytes]] = []
        self._flushed = time.monotonic()
        self._looked = 0.0
        for name, kinds in TYPES.items():
            if len(kinds) == 1:
                self._subscribe(name, kinds[0])

    def poll(self) -> None:
        """Take and write, in the order of reception; flush once a second."""
        self._find_types()
        # What came during the round of takes waits for the next, or the order would be lost.
        until = time.time_ns()
        for topic, kind in self._topics.values():
            while taken := topic.take():
                self._waiting.append((taken.received, topic.topic, kind, taken.message))
        self._write(until)
        if time.monotonic() - self._flushed >= FLUSH_S:
            self._writer.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        """Write what waits, and finish the bag."""
        self.poll()
        self._write(sys.maxsize)
        self._writer.close()

    def _write(self, until: int) -> None:
        self._waiting.sort(key=lambda message: message[0])
        while self._waiting and self._waiting[0][0] <= until:
            received, topic, kind, data = self._waiting.pop(0)
            self._writer.write(topic, kind, received, data)

    def _find_types(self) -> None:
        """Subscribe to a topic of more than one possible type once the graph shows which."""
        if len(self._topics) == len(TYPES) or time.monotonic() - self._looked < 10 * POLL_S:
            return
        self._looked = time.monotonic()
        for name, kinds in TYPES.items():
            if name in self._topics:
                continue
            resolved = self._node.resolve_topic_name(name)
            for info in self._node.get_publishers_info_by_topic(resolved):
                if info.topic_type in kinds and name not in self._topics:
                    self._subscribe(name, info.topic_type)

    def _subscribe(self, name: str, kind: str) -> None:
        package, _, message = kind.split('/')
        message_type = getattr(importlib.import_module(f'{package}.msg'), message)
        # Best effort takes from every publisher there is; only the latched mode needs its own.
        qos = (
            EVERY_LATCHED_QOS
            if name == MODE
            else QoSProfile(depth=QUEUE, reliability=ReliabilityPolicy.BEST_EFFORT)
        )
        self._topics[name] = (NewestMessage(self._node, message_type, name, qos, raw=True), kind)


def record(node: Node, writer: TapeWriter, stop: threading.Event, duration: float = 0.0) -> None:
    """Record until `stop`, or for `duration` s (0: no limit); the tape is whole afterwards."""
    recorder = Recorder(node, writer)
    began = time.monotonic()
    try:
        while not stop.wait(POLL_S) and not 0 < duration <= time.monotonic() - began:
            recorder.poll()
    finally:
        recorder.close()


def record_command(out: Path, storage: str, policy: str, namespace: str, duration: float) -> int:
    """Record into the new folder `out`, and tell what came; 1 if nothing did."""

    def body(stop: threading.Event) -> int:
        node = Node('g1_tape', namespace=namespace, use_global_arguments=False)
        writer = TapeWriter(out, storage, policy)
        print(f'recording into {out}, until Ctrl-C', flush=True)
        record(node, writer, stop, duration)
        for topic, count in sorted(writer.counts.items()):
            print(f'  {count:>7}  {topic}')
        if not writer.counts:
            print('nothing came: is the robot in this ROS domain?', file=sys.stderr)
        return 0 if writer.counts else 1

    return run_ros_process('g1-policy', body, ['--ros-args'])


def _run(stop: threading.Event) -> int:
    node = Node('g1_tape')
    text = {
        name: str(node.declare_parameter(name, default).value)
        for name, default in (('policy', 'g1_walk'), ('storage', 'mcap'), ('run_dir', ''))
    }
    if not text['run_dir']:
        raise UserError('run_dir: the folder to record into is not set')
    writer = TapeWriter(Path(text['run_dir'], 'tape'), text['storage'], text['policy'])
    record(node, writer, stop)
    facts = {**writer.facts, 'messages': dict(writer.counts)}
    write_json(Path(text['run_dir'], FACTS_FILE), facts)
    return 0


def main() -> None:
    """Record into `run_dir`/tape until SIGINT or SIGTERM; 2 and one line for a mistake."""
    sys.exit(run_ros_process('tape_recorder', _run))


if __name__ == '__main__':
    main()
