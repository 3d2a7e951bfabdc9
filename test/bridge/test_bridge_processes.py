"""The bridge's own processes, killed from each side, against LowState of the test's own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from g1_policy_node.bridge.dds import LOW_CMD_TOPIC, LOW_STATE_TOPIC, Network
from g1_policy_node.bridge.link import Link, Orders, Report, pack_command
from g1_policy_node.bridge.messages import LOW_CMD, LOW_STATE, Message
from g1_policy_node.bridge.writer_settings import WriterSettings
from g1_policy_node.bridge.writers import Writers
from g1_policy_node.driver import JointCommand
from g1_policy_node.joints import G1_JOINT_NAMES
from g1_policy_node.paths import find_data
from g1_policy_node.tools.ros_environment import bound_udp_ports, free_domain

pytestmark = pytest.mark.ros
PATIENCE_S = 40.0

# A node that starts writers and then only waits: to be killed.
NODE = """
import sys, time
from g1_policy_node.bridge.writers import Writers
from g1_policy_node.bridge.writer_settings import WriterSettings
writers = Writers(WriterSettings.parse(sys.argv[1]))
while True:
    writers.tend()
    time.sleep(0.02)
"""


class Robot:
    """Sends LowState and hears LowCmd, on loopback in a domain of its own."""

    def __init__(self, sha256: str) -> None:
        self.domain = free_domain(bound_udp_ports())
        self.network = Network(self.domain, 'lo')
        self._states = self.network.writer(LOW_STATE_TOPIC)
        self._commands = self.network.reader(LOW_CMD_TOPIC)
        self._state = Message(LOW_STATE)
        self.fault: Callable[[Any], str] | None = None
        self.said = ''
        self.orders = Orders()
        self.link = Link()
        self.report: Report | None = None
        self.last: Message | None = None
        self.commanding = True
        self.sha256 = sha256

    def settings(self) -> WriterSettings:
        policy = str(find_data('policies/g1_walk'))
        values = (self.link.descriptors, 'test', policy, self.domain, 'lo', 0.5, 0.4, ())
        return WriterSettings(*values)

    def live(self) -> None:
        """Send a state and, as a router would, a command; hear what comes."""
        now = time.monotonic_ns()
        self._send_state(now)
        if self.commanding:
            command = JointCommand(G1_JOINT_NAMES, np.full(29, 0.1), self.sha256[:16], 0, now, 0)
            self.link.command.write(pack_command(command))
        if data := self._commands.newest():
            self.last = Message(LOW_CMD)
            self.last.load(data)
        if payload := self.link.report.take():
            self.report = Report.unpack(payload)

    def order(self, estops: int = 0, resets: int = 0) -> None:
        self.orders = Orders(self.orders.estops + estops, self.orders.resets + resets)
        self.link.orders.write(self.orders.pack())

    def _send_state(self, now: int) -> None:
        fields = self._state.fields
        fields['mode_machine'] = 5
        fields['wireless_remote'] = 0
        fields['motor_state']['motorstate'] = 0
        fields['motor_state']['temperature'] = 35
        fields['tick'] = now // 1_000_000 % 2**32
        if self.fault:
            self.said = self.fault(fields)
        self._state.seal()
        if self.fault is damage:
            damage(fields)
        self._states.write(self._state.data)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, f'{what}: {self.report and self.report.note!r}'
            self.live()
            time.sleep(0.002)

    def stiff(self) -> bool:
        return self.last is not None and bool(self.last.fields['motor_cmd']['kp'].any())

    def damped(self) -> bool:
        return self.last is not None and not self.last.fields['motor_cmd']['kp'].any()

    def hear_nothing(self) -> bool:
        self.live()  # Takes what came before.
        self.last = None
        for _ in range(100):
            self.live()
            time.sleep(0.002)
        return self.last is None


@pytest.fixture
def robot(contract) -> Robot:
    return Robot(contract.sha256)


@pytest.fixture
def writers(robot: Robot) -> Iterator[Writers]:
    writers = Writers(robot.settings())
    yield writers
    writers.stop()


def start(robot: Robot, writers: Writers) -> int:
    """Start both writers and have the robot followed; return who sends."""
    end = time.monotonic() + PATIENCE_S
    while len(writers._processes) < 2 or not robot.stiff():
        writers.tend()
        robot.live()
        time.sleep(0.002)
        assert time.monotonic() < end, robot.report
        if robot.report and robot.report.armed and not robot.report.following:
            # This process was stopped for so long that the state was missed.
            robot.order(resets=1)
    assert robot.report is not None
    return robot.report.pid


def refollow(robot: Robot) -> None:
    """Have the robot followed again."""
    robot.order(resets=1)
    robot.until(robot.stiff, 'following again')


def test_a_target_reaches_the_motors_sealed_and_with_the_mode_echoed(robot, writers) -> None:
    start(robot, writers)
    assert robot.last.intact()
    assert robot.last.fields['mode_machine'] == 5
    np.testing.assert_allclose(robot.last.fields['motor_cmd']['q'][:29], 0.1, rtol=1e-6)


def test_a_killed_writer_is_followed_by_one_that_damps_until_it_is_reset(robot, writers) -> None:
    sender = start(robot, writers)
    os.kill(sender, signal.SIGKILL)
    robot.until(robot.damped, 'damping')
    robot.until(lambda: robot.report.pid != sender, 'the other writer')
    assert f'writer {sender} having died' in robot.report.notes()['cause']
    refollow(robot)


def test_an_estop_outlives_the_writer_that_was_told(robot, writers) -> None:
    sender = start(robot, writers)
    robot.order(estops=1)
    robot.until(robot.damped, 'damping')
    os.kill(sender, signal.SIGKILL)
    robot.until(lambda: robot.report.pid != sender, 'the other writer')
    for _ in range(50):
        robot.live()
        time.sleep(0.002)
    assert robot.damped()


def test_a_writer_that_hangs_is_ended_and_the_other_one_damps(robot, writers) -> None:
    sender = start(robot, writers)
    os.kill(sender, signal.SIGSTOP)
    heard_nothing = robot.hear_nothing()
    writers.end(sender)
    assert heard_nothing
    robot.until(robot.damped, 'damping')
    assert robot.report.pid != sender


def press_l2_and_b(fields) -> str:
    fields['wireless_remote'][2:4] = (1 << 5, 1 << 1)
    return 'estop by the gamepad'


def break_a_motor(fields) -> str:
    fields['motor_state']['motorstate'][3] = 0x20
    return 'left_knee_joint reports fault 0x20'


def heat_a_motor(fields) -> str:
    fields['motor_state']['temperature'][12] = (40, 95)
    return 'waist_yaw_joint is at 95 C'


def change_the_robot(fields) -> str:
    fields['mode_machine'] = 2
    return 'mode_machine was 5, now 2'


def set_the_tick_back(fields) -> str:
    fields['tick'] -= 5_000
    return 'tick of LowState went back'


def damage(fields) -> str:
    fields['crc'] ^= 1
    return 'in a row with a wrong CRC'


FAULTS = [
    press_l2_and_b,
    break_a_motor,
    heat_a_motor,
    change_the_robot,
    set_the_tick_back,
    damage,
]


def damp_by(robot: Robot, fault: Callable[[Any], str]) -> None:
    """Show the writer a fault; anew where this process was stopped, so that silence came first."""
    for _ in range(5):
        robot.fault = fault
        robot.until(lambda: robot.damped() and not robot.report.following, fault.__name__)
        if 'no new LowState' not in robot.report.notes()['cause']:
            return
        robot.fault = None
        refollow(robot)


def test_what_low_state_says_damps_latches_and_is_told_over_the_wire(robot, writers) -> None:
    sender = start(robot, writers)
    for fault in FAULTS:
        damp_by(robot, fault)
        assert robot.said in robot.report.notes()['cause']
        assert robot.last.intact()
        robot.fault = None
        # The tick must have risen again for a second.
        after = time.monotonic() + (1.5 if fault is set_the_tick_back else 0.05)
        robot.until(lambda end=after: time.monotonic() > end, 'a while')
        assert robot.damped(), fault
        refollow(robot)
    assert robot.report.pid == sender


def test_a_rival_that_starts_late_is_damped_against_until_it_is_gone(robot, writers) -> None:
    start(robot, writers)
    rival = robot.network.writer(LOW_CMD_TOPIC, 'somebody')
    robot.until(robot.damped, 'damping')
    robot.order(resets=1)
    robot.until(lambda: robot.report.resets == robot.orders.resets, 'the answer')
    assert 'somebody else sends LowCmd' in robot.report.notes()['answer']
    del rival
    for _ in range(200):
        robot.order(resets=1)
        robot.until(lambda: robot.report.resets == robot.orders.resets, 'the answer')
        if not robot.report.notes()['answer']:
            break
    robot.until(robot.stiff, 'following again')


def test_silence_damps_and_commands_end_it(robot, writers) -> None:
    start(robot, writers)
    for _ in range(5):
        robot.commanding = False
        robot.until(lambda: robot.damped() and not robot.report.following, 'damping')
        silent = robot.report.notes()['cause'] == 'no joint_command'
        robot.commanding = True
        if silent:
            break
        refollow(robot)
    robot.until(robot.stiff, 'following again')


def test_on_leaving_damping_is_sent_for_a_while(robot, writers) -> None:
    sender = start(robot, writers)
    frames = robot.report.frames
    for process in writers._processes:
        process.terminate()
    robot.until(robot.damped, 'damping')
    robot.until(lambda: not Path(f'/proc/{sender}').exists() or _gone(writers), 'the end')
    # 0.4 s at 500 Hz are 200 frames; a loaded machine sends fewer.
    assert robot.report.frames > frames + 20
    assert robot.hear_nothing()


def test_writers_whose_node_was_killed_damp_and_then_leave(robot) -> None:
    settings = robot.settings().text()
    node = subprocess.Popen(
        [sys.executable, '-c', NODE, settings], pass_fds=robot.link.descriptors
    )
    try:
        robot.until(robot.stiff, 'following')
    finally:
        node.kill()
        node.wait()
    robot.until(robot.damped, 'damping')
    assert 'the node having died' in robot.report.notes()['cause']
    robot.until(lambda: not Path(f'/proc/{robot.report.pid}').exists(), 'the end')
    assert robot.hear_nothing()


def test_another_sender_keeps_the_bridge_silent(robot, writers) -> None:
    rival = robot.network.writer(LOW_CMD_TOPIC, 'somebody')
    end = time.monotonic() + PATIENCE_S
    while robot.report is None or b'somebody else sends' not in robot.report.note:
        writers.tend()
        robot.live()
        time.sleep(0.002)
        assert time.monotonic() < end, robot.report
    assert robot.report.frames == 0
    # Nor does one whose predecessor was killed beside the robot's own controller.
    sender = robot.report.pid
    while len(writers._processes) < 2:
        writers.tend()
        robot.live()
        time.sleep(0.002)
        assert time.monotonic() < end
    os.kill(sender, signal.SIGKILL)
    robot.until(lambda: robot.report.pid != sender, 'the other writer')
    robot.until(lambda: robot.report.frames or b'listening' not in robot.report.note, 'a look')
    assert robot.hear_nothing()
    assert robot.report.frames == 0
    del rival


def _gone(writers: Writers) -> bool:
    return all(process.poll() is not None for process in writers._processes)
