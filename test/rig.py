"""A router under test and a driver of the test's own, over real DDS, in simulated time."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rosgraph_msgs.msg import Clock
from samples import CONTRACT, DEFAULT, tremor
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from g1_policy_node.newest import EVERY_LATCHED_QOS, SENSOR_QOS, NewestMessage
from g1_policy_node.node import PolicyNode
from g1_policy_node.observation import projected_gravity

TICK_NS = 20_000_000
PATIENCE_S = 20.0
SOFTNESS = 0.05
"""Share of the way to its target that the robot goes in a tick: slow, so that a policy without
a body to balance stays within what training saw."""


def stamp(nanoseconds: int) -> Time:
    return Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)


class Rig:
    """Runs PolicyNode in this process; `step` is one tick of simulated time."""

    def __init__(self, start: bool = True, **parameters: Any) -> None:
        rclpy.init()
        values = {'use_sim_time': True, 'autostart': False, **parameters}
        self.node = PolicyNode(
            parameter_overrides=[Parameter(name, value=value) for name, value in values.items()],
            use_global_arguments=False,
        )
        self.tester = Node('tester', use_global_arguments=False)
        make = self.tester.create_publisher
        self.joint_states = make(JointState, 'joint_states', SENSOR_QOS)
        self.imu = make(Imu, 'imu/data', SENSOR_QOS)
        self.odom = make(Odometry, 'odom', SENSOR_QOS)
        stamped = bool(parameters.get('cmd_vel_stamped'))
        self.cmd_vel = make(TwistStamped if stamped else Twist, 'cmd_vel', SENSOR_QOS)
        self.clock = make(Clock, '/clock', SENSOR_QOS)
        self.commands = NewestMessage(self.tester, JointState, 'joint_command')
        self.steps = NewestMessage(self.tester, Float64MultiArray, 'g1_policy/step')
        self.told: list[str] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.tester.create_subscription(
            String, 'g1_policy/mode', lambda m: self.told.append(m.data), EVERY_LATCHED_QOS
        )
        self.tester.create_subscription(
            DiagnosticArray, '/diagnostics', self.diagnostics.append, 10
        )
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.executor.add_node(self.tester)
        self.stopping = False
        self.thread = threading.Thread(target=self._spin)
        self.thread.start()
        self.now = 10**9
        self.names = list(CONTRACT.joint_names)
        self.pose = DEFAULT.copy()
        self._before = (self.now, self.pose)
        self.quat = [0.0, 0.0, 0.0, 1.0]
        self.velocity = [0.5, 0.0, 0.0]
        if start:
            self.node.trigger_configure()
            self.node.trigger_activate()
            self.until(lambda: self.commands_matched, 'discovery')

    def start_clock(self, now: int) -> None:
        """Publish the first /clock, or one that jumped back: the slots start there."""
        self.now = now
        self.clock.publish(Clock(clock=stamp(now)))
        self.until(lambda: self.node._loop.grid.t0 == now, 'the start of the slots')

    @property
    def commands_matched(self) -> bool:
        return all(
            publisher.get_subscription_count() > 0
            for publisher in (self.joint_states, self.imu, self.cmd_vel, self.clock)
        ) and bool(self.tester.count_publishers('joint_command'))

    @property
    def mode(self) -> str:
        return self.node.modes.mode.value

    @property
    def reason(self) -> str:
        return self.node.modes.reason

    def close(self) -> None:
        self.node.trigger_shutdown()
        self.stopping = True
        self.thread.join()
        self.node.destroy_node()
        self.tester.destroy_node()
        rclpy.shutdown()

    def publish_sensors(self, joints: bool = True, imu: bool = True) -> None:
        """Publish a sample of each topic, stamped now."""
        header = {'stamp': stamp(self.now), 'frame_id': 'pelvis'}
        state, inertial = JointState(name=self.names), Imu()
        state.header.stamp = inertial.header.stamp = header['stamp']
        inertial.header.frame_id = 'pelvis'
        by_name = dict(zip(CONTRACT.joint_names, self.pose, strict=True))
        state.position = [float(by_name.get(name, 0.0)) for name in self.names]
        before, last = self._before
        elapsed = max(self.now - before, TICK_NS) * 1e-9
        speed = dict(zip(CONTRACT.joint_names, (self.pose - last) / elapsed, strict=True))
        state.velocity = [float(speed.get(name, 0.0)) for name in self.names]
        if joints:
            self._before = (self.now, self.pose)
        q, w, a = inertial.orientation, inertial.angular_velocity, inertial.linear_acceleration
        q.x, q.y, q.z, q.w = self.quat
        q.x += tremor(self.now)
        w.x = tremor(self.now)
        a.x, a.y, a.z = -9.81 * projected_gravity(np.array(self.quat))
        if joints:
            self.joint_states.publish(state)
        if imu:
            self.imu.publish(inertial)
        message = self.cmd_vel.msg_type()
        twist = message.twist if isinstance(message, TwistStamped) else message
        twist.linear.x, twist.linear.y, twist.angular.z = self.velocity
        self.cmd_vel.publish(message)

    def step(self, sensors: bool = True, **which: bool) -> JointState | None:
        """Advance by one tick; return the command of this instant, or None if none is due."""
        if not self.node._loop.grid.t0:
            self.start_clock(self.now)
        self.now += TICK_NS
        if sensors:
            self.publish_sensors(**which)
        rows = self.node._recorder.rows
        self.clock.publish(Clock(clock=stamp(self.now)))
        self.until(lambda: self.node._recorder.rows > rows, 'a tick')
        if self.mode not in ('RAMP', 'READY', 'RUN', 'HOLD'):
            return None
        got: list[JointState] = []

        def arrived() -> bool:
            taken = self.commands.take()
            if taken:
                got.append(taken.message)
            return bool(got) and got[-1].header.stamp == stamp(self.now)

        self.until(arrived, 'the command of this tick')
        self.pose = self.pose + SOFTNESS * (np.array(got[-1].position) - self.pose)
        return got[-1]

    def until_mode(self, mode: str, limit: int = 200) -> None:
        for _ in range(limit):
            if self.mode == mode:
                return
            self.step()
        raise AssertionError(f'{mode} not reached: {self.told}')

    def call(self, kind: type, service: str, request: Any) -> Any:
        client = self.tester.create_client(kind, service)
        assert client.wait_for_service(PATIENCE_S), service
        return self.wait(client.call_async(request))

    def trigger(self, service: str) -> Trigger.Response:
        return self.call(Trigger, f'g1_policy/{service}', Trigger.Request())

    def run(self, on: bool) -> SetBool.Response:
        return self.call(SetBool, 'g1_policy/run', SetBool.Request(data=on))

    def set_parameter(self, name: str, value: Any) -> Any:
        """Set a parameter as `ros2 param set` does; return the result with its reason."""
        client = AsyncParameterClient(self.tester, 'g1_policy')
        assert client.wait_for_services(PATIENCE_S)
        return self.wait(client.set_parameters([Parameter(name, value=value)])).results[0]

    def wait(self, future: Any) -> Any:
        self.until(future.done, 'an answer')
        return future.result()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait, as long as a loaded machine may take, for what must come."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f'{what} did not come: {self.told}'
            time.sleep(0.0005)

    def _spin(self) -> None:
        while not self.stopping:
            self.executor.spin_once(timeout_sec=0.02)
