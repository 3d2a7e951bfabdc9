"""A simulator's node over real DDS: lock-step, hoist, refusals, damping, its run folder.

The same for every simulator: where Isaac Lab is installed (`make test-train`) its half runs too.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from simulators import SIMULATORS
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from g1_policy_node.contract import Contract
from g1_policy_node.sim import sim_node
from g1_policy_node.sim.protocol import Robot
from g1_policy_node.sim.settings import PARAMETERS, SimSettings
from g1_policy_node.sim.sim_node import SimNode

pytestmark = pytest.mark.ros

MS = 1_000_000
EVERY_SENSOR = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def wait_until(true: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


class Partner:
    """Stands in for the policy node: sends commands and modes, keeps all that it receives."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.default = contract.per_joint('default_position')
        self.node = rclpy.create_node('g1_policy')
        self.received: dict[str, list[Any]] = {}
        for kind, topic in (
            (JointState, 'joint_states'),
            (Imu, 'imu/data'),
            (Odometry, 'odom'),
            (Clock, '/clock'),
        ):
            kept = self.received.setdefault(topic, [])
            self.node.create_subscription(kind, topic, kept.append, EVERY_SENSOR)
        self._commands = self.node.create_publisher(JointState, 'joint_command', 1)
        self._modes = self.node.create_publisher(String, '~/mode', LATCHED)

    def connected(self) -> bool:
        matched = self._commands.get_subscription_count() and self._modes.get_subscription_count()
        return bool(matched) and bool(self.received['joint_states'])

    def command(self, stamp: int, position: Any = None, **header: str) -> None:
        message = JointState(name=list(self.contract.joint_names))
        message.header.frame_id = header.get('frame_id', self.contract.sha256[:16])
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
        message.position = list(self.default if position is None else position)
        self._commands.publish(message)

    def mode(self, text: str) -> None:
        self._modes.publish(String(data=text))

    def clock(self) -> int:
        return ns(self.received['/clock'][-1].clock) if self.received['/clock'] else 0

    def call(self, kind: Any, name: str, request: Any) -> Any:
        client = self.node.create_client(kind, name)
        assert client.wait_for_service(5.0)
        future = client.call_async(request)
        assert wait_until(future.done)
        return future.result()


def ns(stamp: Any) -> int:
    return stamp.sec * 10**9 + stamp.nanosec


class World:
    """A simulator and its partner in one process, talking over DDS."""

    def __init__(
        self, contract: Contract, make_robot: Callable[[float], Robot], **parameters: Any
    ) -> None:
        values = {name: row.default for name, row in PARAMETERS.items()}
        values.update(run_dir=None, clock_listeners=())
        settings = SimSettings(**(values | parameters))
        rclpy.init()
        self.robot = make_robot(1.0 / settings.physics_hz)
        node = rclpy.create_node('g1_sim')
        self.sim = SimNode(node, self.robot, contract, settings)
        self.partner = Partner(contract)
        self._executors = [SingleThreadedExecutor(), SingleThreadedExecutor()]
        self._executors[0].add_node(node)
        self._executors[1].add_node(self.partner.node)
        targets = [executor.spin for executor in self._executors]
        self._threads = [threading.Thread(target=t, daemon=True) for t in (*targets, self.sim.run)]
        self.physics = self._threads[-1]
        for thread in self._threads:
            thread.start()
        if not settings.clock_listeners:
            assert wait_until(self.partner.connected)
            assert not settings.publish_clock or wait_until(self.partner.clock)

    @property
    def fallen(self) -> bool:
        return not self.robot.hoisted and self.robot.snapshot().fallen

    def listen(self, name: str, **options: str) -> list[Any]:
        """Add a node that listens to /clock as one under `use_sim_time` does."""
        node, heard = rclpy.create_node(name, **options), []
        node.create_subscription(Clock, '/clock', heard.append, EVERY_SENSOR)
        self._executors[1].add_node(node)
        return heard

    def close(self) -> None:
        self.sim.stop()
        self._threads.pop().join(5.0)
        for executor in self._executors:
            executor.shutdown()
        for thread in self._threads:
            thread.join(5.0)
        rclpy.shutdown()


@pytest.fixture
def open_world(contract: Contract, make_robot: Any) -> Iterator[Callable[..., World]]:
    worlds: list[World] = []

    def make(**parameters: Any) -> World:
        worlds.append(World(contract, make_robot, **parameters))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


def test_lockstep_advances_exactly_one_tick_per_command(open_world: Any) -> None:
    world = open_world(publish_clock=True, lockstep=True, lockstep_timeout=30.0)
    partner = world.partner
    first = partner.clock()
    partner.command(first)
    # It ran freely until then, so the first command may be a few steps old already.
    assert wait_until(lambda: partner.clock() >= first + 20 * MS)
    time.sleep(0.05)
    for _ in range(10):
        before = partner.clock()
        partner.received['/clock'].clear()
        partner.command(before)
        assert wait_until(lambda end=before + 20 * MS: partner.clock() >= end)
        time.sleep(0.01)
        steps = [ns(message.clock) - before for message in partner.received['/clock']]
        assert steps == [20 * MS]  # /clock tells of the boundary alone


def test_lockstep_runs_freely_again_without_commands_and_damps_in_its_own_time(
    open_world: Any, tmp_path: Path
) -> None:
    world = open_world(publish_clock=True, lockstep=True, lockstep_timeout=0.2, run_dir=tmp_path)
    partner = world.partner
    for _ in range(5):
        stamp = partner.clock()
        partner.command(stamp)
        assert wait_until(lambda end=stamp + 20 * MS: partner.clock() >= end)
    last = partner.clock()
    time.sleep(0.1)
    assert partner.clock() <= last + 20 * MS
    assert wait_until(lambda: partner.clock() > last + 300 * MS)
    world.sim.stop()
    world.sim.save()
    rows = np.load(tmp_path / 'sim.npz')
    following = rows['tick_ns'][~rows['damping']]
    assert len(following) >= 5
    # A command holds for 100 ms after it came; rows are 20 ms apart.
    assert 60 * MS <= following[-1] - stamp <= 120 * MS
    assert rows['damping'][-1]
    assert np.isnan(rows['target'][-1]).all()


WAITING = {'publish_clock': True, 'lockstep': True, 'clock_listeners': ('g1_policy', 'g1_cmd')}
"""The partner is the first of the two."""


def test_time_begins_once_all_its_listeners_are_there_and_strangers_do_not_count(
    open_world: Any,
) -> None:
    world = open_world(**WAITING)
    world.listen('stranger')
    world.listen('g1_cmd', namespace='another_robot')
    assert wait_until(lambda: world.partner.node.count_subscribers('/clock') == 3)
    time.sleep(0.5)
    assert world.sim.facts()['seconds'] == 0.0
    heard = world.listen('g1_cmd')
    assert wait_until(lambda: bool(heard))
    assert ns(heard[0].clock) == 5 * MS  # the very first step


def test_listeners_that_never_come_are_named_in_one_warning_and_time_begins(
    open_world: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sim_node, '_LISTENERS_LIMIT_S', 0.25)
    world = open_world(**WAITING)
    assert wait_until(lambda: world.partner.clock() > 0)
    warnings = [line for line in capfd.readouterr().err.splitlines() if '[WARN]' in line]
    assert len(warnings) == 1
    assert warnings[0].endswith(': after 0.25 s not listening to /clock: g1_cmd; it runs anyway')


def test_a_stop_ends_the_wait_for_listeners(open_world: Any) -> None:
    world = open_world(**WAITING)
    world.sim.stop()
    assert wait_until(lambda: not world.physics.is_alive())
    assert world.partner.clock() == 0


def test_same_commands_in_lockstep_give_the_same_motion_bit_for_bit(open_world: Any) -> None:
    world = open_world(publish_clock=True, lockstep=True, lockstep_timeout=30.0)
    partner = world.partner

    def advance(target: Any) -> None:
        stamp = partner.clock()
        partner.command(stamp, target)
        assert wait_until(lambda: partner.clock() >= stamp + 20 * MS)
        time.sleep(0.005)

    def motion() -> Any:
        partner.call(Trigger, 'g1_sim/reset', Trigger.Request())
        for k in range(10):
            advance(partner.default + 0.1 * np.sin(k + np.arange(29)))
        return world.robot.snapshot().joint_pos

    advance(partner.default)
    advance(partner.default)
    first = motion()
    assert np.abs(first - partner.default).max() > 0.03
    np.testing.assert_array_equal(motion(), first)


def test_stamps_of_another_clock_leave_it_in_real_time(open_world: Any) -> None:
    world = open_world(publish_clock=True, lockstep=True, lockstep_timeout=30.0)
    partner = world.partner
    partner.command(time.time_ns())
    before, wall = partner.clock(), time.monotonic()
    assert wait_until(lambda: partner.clock() >= before + 300 * MS)
    assert time.monotonic() - wall > 0.2  # no faster than real time


def test_sensors_of_an_instant_carry_its_time_and_are_complete(
    open_world: Any, contract: Contract
) -> None:
    world = open_world(publish_clock=True, lockstep=True, lockstep_timeout=30.0)
    partner = world.partner
    partner.command(partner.clock())
    time.sleep(0.3)  # It waits for the next command now.
    newest = {topic: kept[-1] for topic, kept in partner.received.items()}
    now = partner.clock()
    for topic in ('joint_states', 'imu/data', 'odom'):
        assert ns(newest[topic].header.stamp) == now
    joints, imu, odom = (newest[t] for t in ('joint_states', 'imu/data', 'odom'))
    assert tuple(joints.name) == contract.joint_names
    assert len(joints.position) == len(joints.velocity) == len(joints.effort) == 29
    assert any(joints.velocity) and any(joints.effort)
    assert imu.header.frame_id == odom.child_frame_id == 'pelvis'
    q, a = imu.orientation, imu.linear_acceleration
    assert (q.x, q.y, q.z, q.w) == (0.0, 0.0, 0.0, 1.0)
    assert a.z == pytest.approx(9.81, abs=0.01)
    assert odom.pose.pose.position.z == pytest.approx(0.79)


def test_real_time_stamps_are_ros_time_at_200_hz_without_a_clock(open_world: Any) -> None:
    world = open_world()
    partner = world.partner
    partner.received['joint_states'].clear()
    wall = time.time_ns()
    assert wait_until(lambda: len(partner.received['joint_states']) >= 100)
    stamps = np.array([ns(m.header.stamp) for m in partner.received['joint_states'][:100]])
    assert abs(stamps[0] - wall) < 1000 * MS
    period = np.median(np.diff(stamps))
    # Isaac Lab is slower than real time on a cpu, and simulated time falls behind.
    keeps_up = not world.robot.version.endswith(' on cpu')
    assert period == pytest.approx(5 * MS, rel=0.1) if keeps_up else period > 4.5 * MS
    assert not partner.received['/clock']


def test_hoist_follows_the_mode_of_the_node(open_world: Any) -> None:
    world = open_world()
    partner, robot = world.partner, world.robot
    assert robot.hoisted
    partner.mode('RUN: autorun')
    assert wait_until(lambda: not robot.hoisted)
    for mode in ('HOLD: stale', 'DAMP: stale'):
        partner.mode(mode)
        time.sleep(0.05)
        assert not robot.hoisted
    assert wait_until(lambda: world.fallen, 30.0)
    partner.mode('WAITING: no joint_states yet')
    assert wait_until(lambda: robot.hoisted)
    assert robot.snapshot().position[2] == pytest.approx(0.79)
    assert wait_until(lambda: partner.received['odom'][-1].pose.pose.position.z > 0.78)


def test_manual_hoist_ignores_the_mode(open_world: Any) -> None:
    world = open_world(hoist='manual')
    world.partner.mode('RUN: autorun')
    time.sleep(0.1)
    assert world.robot.hoisted


def test_wrong_contract_and_far_targets_are_ignored_and_counted(open_world: Any) -> None:
    world = open_world()
    partner = world.partner

    def rejected() -> dict[str, int]:
        return world.sim.facts()['commands']['rejected']

    partner.command(0, frame_id='0' * 16)
    assert wait_until(lambda: rejected() == {'contract': 1})
    partner.command(0, position=partner.default + 1.0)
    assert wait_until(lambda: rejected() == {'contract': 1, 'far': 1})
    assert world.sim.facts()['commands']['received'] == 2


def test_services_hoist_push_and_reset(open_world: Any) -> None:
    world = open_world(hoist='manual', push_speed=0.6)
    partner = world.partner
    refused = partner.call(Trigger, 'g1_sim/push', Trigger.Request())
    assert not refused.success
    assert 'hoist' in refused.message
    assert partner.call(SetBool, 'g1_sim/hoist', SetBool.Request(data=False)).success
    assert not world.robot.hoisted
    assert partner.call(Trigger, 'g1_sim/push', Trigger.Request()).success
    assert wait_until(lambda: world.fallen, 30.0)
    assert partner.call(Trigger, 'g1_sim/reset', Trigger.Request()).success
    assert world.robot.hoisted
    np.testing.assert_array_equal(world.robot.snapshot().position, [0.0, 0.0, 0.79])


def test_without_a_hoist_the_service_says_so(open_world: Any) -> None:
    world = open_world(hoist='none')
    assert not world.robot.hoisted
    answer = world.partner.call(SetBool, 'g1_sim/hoist', SetBool.Request(data=True))
    assert not answer.success
    assert answer.message == 'there is no hoist (hoist: none)'


def start(simulator: str, *parameters: str) -> subprocess.Popen[str]:
    arguments = [part for p in parameters for part in ('-p', p)]
    module = f'g1_policy_node.sim.{simulator}_sim'
    command = [sys.executable, '-m', module, '--ros-args', *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)


def wait_for_sensors() -> None:
    rclpy.init()
    node, received = rclpy.create_node('listener'), []
    node.create_subscription(JointState, 'joint_states', received.append, EVERY_SENSOR)
    while len(received) < 20:
        rclpy.spin_once(node, timeout_sec=0.1)
    rclpy.shutdown()


@pytest.mark.parametrize('simulator', SIMULATORS)
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_traceback_and_it_leaves_its_part(
    simulator: str, number: signal.Signals, tmp_path: Path
) -> None:
    process = start(simulator, f'run_dir:={tmp_path}', 'publish_clock:=true', 'lockstep:=true')
    assert process.stderr
    told = {'mujoco': 'mujoco 4', 'isaac': 'isaac 3.0.0 on '}[simulator]
    assert any(told in line for line in iter(process.stderr.readline, ''))
    wait_for_sensors()
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert 'Traceback' not in errors
    facts = json.loads((tmp_path / 'sim.json').read_text())
    assert facts['simulator'] == simulator
    assert facts['fell'] is False
    assert 0 < facts['real_time_factor'] < 1.5
    rows = np.load(tmp_path / 'sim.npz')
    assert len(rows['time']) == pytest.approx(facts['seconds'] * 50, abs=1)
    assert rows['joint_pos'].shape == rows['target'].shape == (len(rows['time']), 29)
    assert rows['hoisted'].all()
    assert sorted(p.name for p in tmp_path.iterdir()) == ['sim.json', 'sim.npz']


@pytest.mark.parametrize('simulator', SIMULATORS)
@pytest.mark.parametrize(
    ('parameter', 'told'),
    [
        ('rate:=fast', "parameter rate: expected a whole number, got 'fast'"),
        ('rate:=9000', 'parameter rate: 9000 is outside 50 to 1000'),
        ('rate:=90', 'parameter rate: 90 Hz does not divide 200 Hz'),
        ('hoist:=maybe', "parameter hoist: 'maybe' is none of auto, manual, none"),
        ('hoists:=auto', 'parameter hoists does not exist'),
        ('lockstep:=true', 'parameter lockstep needs publish_clock'),
        ('clock_listeners:=[a]', 'parameter clock_listeners needs publish_clock'),
        ('clock_listeners:=2', 'parameter clock_listeners: expected a list of texts, got 2'),
        ('clock_listeners:=[1, 2]', 'parameter clock_listeners: expected a list of texts, got'),
        ('policy:=/nowhere', '/nowhere'),
        ('run_dir:=/dev/null/runs', 'run_dir: /dev/null/runs cannot be made'),
        ('seed:=[1', 'failed to initialize rcl'),
    ],
)
def test_bad_parameter_is_one_line_and_exit_code_2(
    simulator: str, parameter: str, told: str
) -> None:
    process = start(simulator, parameter)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    ours = [line for line in errors.splitlines() if line.startswith('g1_sim: ')]
    assert len(ours) == 1
    assert told in ours[0]
    assert 'Traceback' not in errors
