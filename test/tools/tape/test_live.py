"""Tapes over DDS, as commands: a replay is heard whole, and recorded again it is the same."""

import json
import signal
import subprocess
import sys
import time

import pytest
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from tapes import T0, messages, write_tape

from g1_policy_node.newest import NewestMessage
from g1_policy_node.tools.tape.bag import read_bag

TICKS = 60
SENSORS = ('/joint_states', '/imu/data')
pytestmark = pytest.mark.ros


@pytest.fixture
def node():
    rclpy.init()
    yield Node('tester', use_global_arguments=False)
    rclpy.shutdown()


def tape_command(*arguments) -> subprocess.Popen:
    command = [sys.executable, '-m', 'g1_policy_node.cli', 'tape', *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Ears:
    """Everything that comes on the sensor topics, /clock and the joint targets."""

    def __init__(self, node: Node) -> None:
        deep = QoSProfile(depth=4 * TICKS * 4)
        kinds = {
            'joint_states': JointState,
            'imu/data': Imu,
            'joint_command': JointState,
            '/clock': Clock,
        }
        self._topics = {
            name: NewestMessage(node, kind, name, deep) for name, kind in kinds.items()
        }
        self.heard: dict[str, list] = {name: [] for name in kinds}

    def listen(self) -> None:
        for name, topic in self._topics.items():
            while taken := topic.take():
                self.heard[name].append(taken.message)

    def listen_until(self, enough, patience_s: float = 60.0) -> None:
        deadline = time.monotonic() + patience_s
        while not enough():
            assert time.monotonic() < deadline, {n: len(m) for n, m in self.heard.items()}
            self.listen()
            time.sleep(0.01)


def stamps(heard) -> list[int]:
    return [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec - T0 for m in heard]


def test_a_replay_is_heard_whole_in_order_with_its_clock_and_no_target(node, tmp_path) -> None:
    tape, ears = write_tape(tmp_path / 'a', messages(ticks=TICKS)), Ears(node)
    replay = tape_command('replay', tape, '--clock', '--rate', '0.5', '--json')
    ears.listen_until(lambda: replay.poll() is not None)
    facts = json.loads(replay.communicate()[0])
    # The machine may be too busy for the timing, which then says so; never for the messages.
    assert replay.returncode == (0 if facts['timing_kept'] else 1)
    sent = [i * 5_000_000 for i in range(4 * TICKS)]
    ears.listen_until(lambda: len(ears.heard['imu/data']) >= len(sent))
    assert stamps(ears.heard['joint_states']) == sent
    assert stamps(ears.heard['imu/data']) == sent
    assert facts['published'] == facts['of'] == 2 * len(sent)
    assert not ears.heard['joint_command']
    clock = [m.clock.sec * 10**9 + m.clock.nanosec for m in ears.heard['/clock']]
    assert clock == sorted(clock)
    assert clock[-1] - 10**9 == sent[-1]


def test_a_loop_begins_again_until_it_is_stopped(node, tmp_path) -> None:
    tape, ears = write_tape(tmp_path / 'a', messages(ticks=10)), Ears(node)
    replay = tape_command('replay', tape, '--loop')
    ears.listen_until(lambda: len(ears.heard['joint_states']) > 100)
    assert replay.poll() is None
    replay.send_signal(signal.SIGINT)
    replay.communicate(timeout=60)
    heard = stamps(ears.heard['joint_states'])
    assert heard[:80] == 2 * [i * 5_000_000 for i in range(40)]


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_what_is_replayed_is_recorded_by_the_command(tmp_path, storage: str) -> None:
    tape, out = write_tape(tmp_path / 'a', messages(ticks=TICKS)), tmp_path / 'b'
    record = tape_command('record', '--out', out, '--storage', storage)
    assert 'recording into' in record.stdout.readline()
    replay = tape_command('replay', tape)
    replay.communicate(timeout=100)
    time.sleep(0.5)
    record.send_signal(signal.SIGINT)
    said, _ = record.communicate(timeout=60)
    assert record.returncode == 0
    assert f'{4 * TICKS}  /joint_states' in said
    played, recorded = read_bag(tape), read_bag(out)
    assert recorded.storage == storage
    for topic in SENSORS:
        one, other = ([m for _, m in bag.decoded(topic)] for bag in (played, recorded))
        assert stamps(other) == stamps(one)
    assert recorded.custom['contract_sha256'] == played.custom['contract_sha256']
