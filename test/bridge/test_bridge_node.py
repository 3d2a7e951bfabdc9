"""The bridge's node over real DDS, with a link whose other end is the test."""

import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from g1_policy_node.bridge.bridge_node import BridgeNode
from g1_policy_node.bridge.link import Link, Orders, Report, pack_note, unpack_command
from g1_policy_node.bridge.messages import LOW_STATE, Message
from g1_policy_node.joints import G1_JOINT_NAMES
from g1_policy_node.newest import COMMAND_QOS, LATCHED_QOS, SENSOR_QOS

pytestmark = pytest.mark.ros


class NoWriters:
    deaths = 0

    def __init__(self) -> None:
        self.ended: list[int] = []

    def end(self, pid: int) -> None:
        self.ended.append(pid)

    def tend(self) -> None:
        pass


class Bench:
    def __init__(self, contract) -> None:
        rclpy.init()
        self.node, self.tester = Node('g1_bridge'), Node('tester')
        self.link = Link()
        self.writer = Link(self.link.descriptors)
        self.writers = NoWriters()
        self.bridge = BridgeNode(self.node, contract, self.link, self.writers, 200.0)
        self.got: dict[type, list] = {JointState: [], Imu: [], String: []}
        for kind, topic, qos in (
            (JointState, 'joint_states', SENSOR_QOS),
            (Imu, 'imu/data', SENSOR_QOS),
            (String, 'g1_bridge/status', LATCHED_QOS),
        ):
            self.tester.create_subscription(kind, topic, self.got[kind].append, qos)
        self.commands = self.tester.create_publisher(JointState, 'joint_command', COMMAND_QOS)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.executor.add_node(self.tester)
        self.stop = threading.Event()
        self.threads = [
            threading.Thread(target=self.bridge.run, args=(self.stop,)),
            threading.Thread(target=self._spin),
        ]
        for thread in self.threads:
            thread.start()

    def _spin(self) -> None:
        while not self.stop.is_set():
            self.executor.spin_once(timeout_sec=0.02)

    def close(self) -> None:
        self.stop.set()
        self.bridge.wake()
        for thread in self.threads:
            thread.join()
        self.node.destroy_node()
        self.tester.destroy_node()
        rclpy.shutdown()

    def report(self, cause: str = 'no joint_command', resets: int = 0, answer: str = '') -> None:
        """Say what a writer would, with a LowState in which each joint has its own numbers."""
        state = Message(LOW_STATE)
        state.fields['mode_machine'] = 5
        state.fields['motor_state']['q'] = 0.01 * np.arange(1, 36)
        state.fields['motor_state']['dq'] = 0.1 * np.arange(1, 36)
        state.fields['imu_state']['quaternion'] = (0.9, 0.1, -0.2, 0.3)
        state.seal()
        now = time.monotonic_ns()
        data, note = bytes(state.data), pack_note(cause, answer)
        following = not cause
        report = Report(7, 1, now, now, 0, following, following, 0, 0, 0, resets, 0, data, note)
        self.writer.report.write(report.pack())

    def until(self, condition: Callable[[], object], **says) -> None:
        end = time.monotonic() + 20.0
        while not condition():
            assert time.monotonic() < end, self.got[String]
            self.report(**says)
            time.sleep(0.005)

    def trigger(self, name: str):
        client = self.tester.create_client(Trigger, f'g1_bridge/{name}')
        assert client.wait_for_service(20.0)
        return client.call_async(Trigger.Request())


@pytest.fixture
def bench(contract) -> Iterator[Bench]:
    bench = Bench(contract)
    yield bench
    bench.close()


def test_a_low_state_becomes_joint_states_and_imu_data(bench) -> None:
    bench.until(lambda: len(bench.got[JointState]) > 5 and len(bench.got[Imu]) > 5)
    joints, imu = bench.got[JointState][-1], bench.got[Imu][-1]
    assert tuple(joints.name) == G1_JOINT_NAMES
    np.testing.assert_allclose(joints.position, 0.01 * np.arange(1, 30), rtol=1e-6)
    np.testing.assert_allclose(joints.velocity, 0.1 * np.arange(1, 30), rtol=1e-6)
    assert imu.header.frame_id == 'pelvis'
    q = imu.orientation
    np.testing.assert_allclose((q.x, q.y, q.z, q.w), (0.1, -0.2, 0.3, 0.9), rtol=1e-6)
    stamps = [m.header.stamp for m in bench.got[JointState]]
    assert any(m.header.stamp in stamps for m in bench.got[Imu])
    assert abs(time.time() - joints.header.stamp.sec) < 30


def test_a_joint_command_reaches_the_writer_as_it_was_sent(bench) -> None:
    names = list(G1_JOINT_NAMES[::-1])
    message = JointState(name=names, position=[0.5] * 29)
    message.header.frame_id = 'whoever'
    payload = None

    def arrived() -> bool:
        nonlocal payload
        bench.commands.publish(message)
        payload = bench.writer.command.take()
        return payload is not None

    bench.until(arrived)
    command = unpack_command(payload)
    assert (list(command.names), command.frame_id) == (names, 'whoever')
    np.testing.assert_array_equal(command.position, 0.5)


def test_the_status_says_why_it_damps_and_when_it_does_not(bench) -> None:
    def said(text: str) -> bool:
        return any(message.data == text for message in bench.got[String])

    bench.until(lambda: said('DAMPING: the reason'), cause='the reason')
    bench.until(lambda: said('FOLLOWING'), cause='')


def test_a_writer_that_says_nothing_any_more_is_killed(bench) -> None:
    bench.report()
    end = time.monotonic() + 20.0
    while not bench.writers.ended and time.monotonic() < end:
        time.sleep(0.01)
    assert set(bench.writers.ended) == {7}


def test_an_estop_is_passed_on(bench) -> None:
    future = bench.trigger('estop')
    bench.until(future.done)
    assert future.result().success
    assert Orders.unpack(bench.writer.orders.take()) == Orders(1, 0)


@pytest.mark.parametrize('reason', ['', 'left_knee_joint reports fault 0x20'])
def test_a_reset_is_answered_by_the_writer(bench, reason) -> None:
    future = bench.trigger('reset')
    bench.until(future.done, resets=1, answer=reason)
    assert future.result().success is (not reason)
    assert reason in future.result().message
