"""The node as a process of its own, and a driver with the injector behind it in this one."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'test')]
import conftest  # noqa: E402  a ROS domain of our own, before rclpy
import numpy as np  # noqa: E402
from faults.injector import FAULTS, Injector  # noqa: E402
from faults.watch import CommandWatch, Episode  # noqa: E402
from geometry_msgs.msg import Twist  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rig import stamp  # noqa: E402
from samples import CONTRACT, DEFAULT, LIMITS, tremor  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from g1_policy_node.newest import COMMAND_QOS, LATCHED_QOS, SENSOR_QOS, NewestMessage  # noqa: E402

assert conftest
PERIOD_S = 0.005
QUIET_S = 0.4
"""How long a fault that must change nothing is kept up."""


class Line(threading.Thread):
    """The driver at 200 Hz with the injector behind it; it watches every command."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.node = Node('driver', use_global_arguments=False)
        self.stranger = Node('stranger', use_global_arguments=False)
        make = self.node.create_publisher
        self.out = {
            'joint_states': make(JointState, 'joint_states', SENSOR_QOS),
            'imu/data': make(Imu, 'imu/data', SENSOR_QOS),
        }
        self.cmd_vel = make(Twist, 'cmd_vel', SENSOR_QOS)
        self.extra = {
            'second sensors': self.stranger.create_publisher(
                JointState, 'joint_states', SENSOR_QOS
            ),
            'second command': self.stranger.create_publisher(
                JointState, 'joint_command', COMMAND_QOS
            ),
        }
        self.commands = NewestMessage(self.node, JointState, 'joint_command', COMMAND_QOS)
        self.modes = NewestMessage(self.node, String, 'g1_policy/mode', LATCHED_QOS)
        self.injector = Injector(FAULTS['no stamps'], 0)
        self.told: list[tuple[int, str]] = []
        self.watch = CommandWatch(CONTRACT, LIMITS)
        self.began = 0
        self.stopping = False
        self.asking = threading.Lock()
        self.clients = {
            service: self.node.create_client(Trigger, f'g1_policy/{service}')
            for service in ('reset', 'estop')
        }
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)

    def run(self) -> None:
        waiting: list[tuple[int, str, Any]] = []
        due = time.monotonic()
        while not self.stopping:
            now = self.now()
            for topic, message in self._sample(now):
                sent = self.injector(topic, message)
                if self.injector.on and not self.began:
                    self.began = time.time_ns()
                waiting += [(now + delay, topic, each) for delay, each in sent]
            for when, topic, message in waiting:
                if when <= now:
                    self.out[topic].publish(message)
            waiting = [item for item in waiting if item[0] > now]
            act = self.injector.fault.act
            if self.injector.on and act in self.extra:
                self.extra[act].publish(self._zeros(now))
            self.cmd_vel.publish(Twist())
            self.tell(now)
            self._listen()
            due = max(due + PERIOD_S, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))

    def now(self) -> int:
        """Return the time of the stamps, ns."""
        return time.time_ns()

    def tell(self, now: int) -> None:
        """Say what time it is, after the sensors of that time: nothing, in real time."""

    def _sample(self, now: int) -> list[tuple[str, Any]]:
        joints, imu = JointState(name=list(CONTRACT.joint_names)), Imu()
        joints.header.stamp = imu.header.stamp = stamp(now)
        joints.position = [float(v) for v in DEFAULT + tremor(now)]
        joints.velocity = [tremor(now)] * 29
        imu.header.frame_id = 'pelvis'
        imu.orientation.w, imu.orientation.x = 1.0, tremor(now)
        imu.angular_velocity.x = tremor(now)
        imu.linear_acceleration.z = 9.81
        return [('joint_states', joints), ('imu/data', imu)]

    def _zeros(self, now: int) -> JointState:
        message = JointState(name=list(CONTRACT.joint_names), position=[0.0] * 29)
        message.velocity = [0.0] * 29
        message.header.stamp = stamp(now)
        return message

    def _listen(self) -> None:
        while taken := self.modes.take():
            self.told.append((taken.source, taken.message.data))
        command = self.commands.take()
        if command and command.message.header.frame_id:  # the stranger's has none
            m = command.message
            self.watch.look(
                command.sequence, command.source, list(m.name), np.array(m.position), DEFAULT
            )

    @property
    def mode(self) -> str:
        return self.told[-1][1].partition(':')[0] if self.told else ''

    def first(self, modes: tuple[str, ...], since: int, patience_s: float) -> int | None:
        """Return the source stamp of the first of `modes` told after `since`."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            for at, text in list(self.told):
                if at >= since and text.partition(':')[0] in modes:
                    return at
            time.sleep(0.002)
        return None

    def trigger(self, service: str) -> bool:
        with self.asking:  # the e-stop is asked for on a thread of its own
            future = self.clients[service].call_async(Trigger.Request())
            self.executor.spin_until_future_complete(future, timeout_sec=10.0)
            return bool(future.done() and future.result().success)


class Measurement:
    """The node under test, and one episode after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.episodes: list[Episode] = []
        arguments = ['--ros-args', '-p', 'auto_run:=true', '-p', f'run_dir:={folder}']
        self.log = (folder / 'node.log').open('w')
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'g1_policy_node.node', *arguments],
            stdout=self.log,
            stderr=self.log,
        )
        self.line = Line()
        self.line.start()

    def __enter__(self) -> 'Measurement':
        assert self.line.first(('RUN',), 0, 60.0), self.line.told
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def recover(self) -> None:
        """End the fault, and wait until the policy runs."""
        self.line.injector.on = False
        if self.episodes and not self.episodes[-1].ended:
            self.episodes[-1].ended = time.monotonic_ns()
        deadline = time.monotonic() + 60.0
        while self.line.mode != 'RUN':
            assert time.monotonic() < deadline, self.line.told[-5:]
            time.sleep(0.1)
            if self.line.mode == 'DAMP':
                self.line.trigger('reset')

    def episode(self, name: str, seed: int) -> tuple[bool, float | None, float | None]:
        """Return whether it ended as it must, and the ms to HOLD or DAMP, and to DAMP."""
        fault = FAULTS[name]
        self.recover()
        time.sleep(0.3 + 0.02 * np.random.default_rng(seed).random())  # any phase of a tick
        line = self.line
        line.told = line.told[-1:]
        line.began, line.injector = 0, Injector(fault, seed, round(1 / PERIOD_S))
        self.episodes.append(Episode(name, fault.explains, time.monotonic_ns()))
        if fault.act == 'stop':
            self.process.send_signal(signal.SIGSTOP)
            time.sleep(0.4)
        began = time.time_ns()
        if fault.act == 'stop':
            self.process.send_signal(signal.SIGCONT)
        elif fault.act == 'estop':
            threading.Thread(target=line.trigger, args=('estop',)).start()
        else:
            line.injector.on = True
        if fault.outcome == 'RUN':
            time.sleep(QUIET_S)
            return not any(at > began for at, _ in line.told), None, None
        safe = line.first(('HOLD', 'DAMP'), began, 3.0)
        damped = line.first(('DAMP',), began, 3.0)
        if safe is None or damped is None:
            return False, None, None
        began = line.began or began
        return True, (safe - began) * 1e-6, (damped - began) * 1e-6

    def rss_mb(self) -> float:
        pages = int(Path(f'/proc/{self.process.pid}/statm').read_text().split()[1])
        return pages * os.sysconf('SC_PAGESIZE') / 1e6

    def close(self) -> int:
        self.line.stopping = True
        self.line.join()
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(30)
        self.log.close()
        return code
