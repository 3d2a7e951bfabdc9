"""What is on the topics is on the tape, in order, and outlives a recorder that is killed."""

import signal
import subprocess
import sys
import time

import pytest
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import JointState
from tapes import BUNDLE

from g1_policy_node.contract import load_contract
from g1_policy_node.newest import SENSOR_QOS
from g1_policy_node.tools.tape.bag import read_bag
from g1_policy_node.tools.tape.recorder import Recorder, TapeWriter
from g1_policy_node.types import UserError


@pytest.fixture
def node():
    rclpy.init()
    yield Node('tester', use_global_arguments=False)
    rclpy.shutdown()


def wait_for_recorder(publisher) -> None:
    deadline = time.monotonic() + 100
    while not publisher.get_subscription_count():
        assert time.monotonic() < deadline, 'the recorder did not subscribe'
        time.sleep(0.02)


@pytest.mark.ros
@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_every_message_is_recorded_with_contract_and_hashes(node, tmp_path, storage) -> None:
    writer = TapeWriter(tmp_path / 'tape', storage, 'g1_walk')
    recorder = Recorder(node, writer)
    publisher = node.create_publisher(JointState, 'joint_states', SENSOR_QOS)
    wait_for_recorder(publisher)
    for i in range(100):
        publisher.publish(JointState(name=[str(i)], position=[float(i)], velocity=[0.0]))
        recorder.poll()
        time.sleep(0.002)
    recorder.close()
    bag = read_bag(tmp_path / 'tape')
    assert bag.storage == storage
    assert [m.name[0] for _, m in bag.decoded('/joint_states')] == [str(i) for i in range(100)]
    assert bag.custom['weights_sha256'] == BUNDLE.weights_sha256
    assert load_contract(tmp_path / 'tape' / 'contract.yaml') == BUNDLE.contract


@pytest.mark.ros
def test_a_killed_recorder_loses_its_last_second_and_not_the_tape(node, tmp_path) -> None:
    code = 'from g1_policy_node.tools.tape.recorder import main; main()'
    options = ['--ros-args', '-r', '__node:=g1_tape', '-p', f'run_dir:={tmp_path}']
    process = subprocess.Popen([sys.executable, '-c', code, *options])
    try:
        publisher = node.create_publisher(JointState, 'joint_states', SENSOR_QOS)
        wait_for_recorder(publisher)
        for i in range(600):
            publisher.publish(JointState(name=[str(i)], position=[float(i)], velocity=[0.0]))
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    bag = read_bag(tmp_path / 'tape')
    assert bag.notes[0] == 'no metadata.yaml: the recorder did not finish'
    numbers = [int(m.name[0]) for _, m in bag.decoded('/joint_states')]
    assert numbers == sorted(numbers)
    assert len(numbers) >= 100


def test_a_tape_is_never_written_over_and_a_storage_has_to_exist(tmp_path) -> None:
    with pytest.raises(UserError, match='a tape is never written over'):
        TapeWriter(tmp_path, 'mcap', 'g1_walk')
    with pytest.raises(UserError, match="storage: 'tar' is none of mcap, sqlite3"):
        TapeWriter(tmp_path / 'new', 'tar', 'g1_walk')
    assert not (tmp_path / 'new').exists()
