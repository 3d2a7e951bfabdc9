"""A policy node as the ROS tutorials teach it: callbacks, a timer, Python messages, names.

It checks nothing, has no modes and no history: it does less than the router does.
"""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import Twist
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Imu, JointState

from bench.record import CollectionLog, save_ticks
from g1_policy_node import gait
from g1_policy_node.contract import load_contract
from g1_policy_node.newest import SENSOR_QOS
from g1_policy_node.paths import find_data

BUNDLE = 'policies/g1_walk'
PERIOD_S = 0.02


class TeachingNode(Node):
    """The node `g1_policy` of the stock arms; a subclass loads and runs the network."""

    def __init__(self) -> None:
        super().__init__('g1_policy')
        self.contract = load_contract(find_data(f'{BUNDLE}/policy.yaml'))
        self.load_network()
        self.with_actor = os.environ.get('BENCH_ACTOR', '1') == '1'
        self.joints: JointState | None = None
        self.imu: Imu | None = None
        self.command = [0.0, 0.0, 0.0]
        self.last_action = [0.0] * len(self.contract.joint_names)
        self.tick_count = 0
        self.rows: list[tuple[int, int, int]] = []
        self.declare_parameter('device', 'cpu')
        self.add_on_set_parameters_callback(self.on_parameters)
        self.create_subscription(JointState, 'joint_states', self.on_joints, SENSOR_QOS)
        self.create_subscription(Imu, 'imu/data', self.on_imu, SENSOR_QOS)
        self.create_subscription(Twist, 'cmd_vel', self.on_command, SENSOR_QOS)
        self.publisher = self.create_publisher(JointState, 'joint_command', 1)
        self.timer = self.create_timer(PERIOD_S, self.on_timer)

    def load_network(self) -> None:
        """Build the network from the bundle's weights."""
        raise NotImplementedError

    def forward(self, observation: list[float]) -> list[float]:
        """Return the raw action of an observation."""
        raise NotImplementedError

    def on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Change the device the way it is taught: load the network again, in the callback."""
        if any(parameter.name == 'device' for parameter in parameters):
            self.load_network()
        return SetParametersResult(successful=True)

    def on_joints(self, message: JointState) -> None:
        """Keep the newest joints."""
        self.joints = message

    def on_imu(self, message: Imu) -> None:
        """Keep the newest inertial sample."""
        self.imu = message

    def on_command(self, message: Twist) -> None:
        """Keep the newest velocity command."""
        self.command = [message.linear.x, message.linear.y, message.angular.z]

    def on_timer(self) -> None:
        """One tick: observe, act, publish."""
        woken = time.monotonic_ns()
        scheduled = woken + self.timer.time_until_next_call() - round(PERIOD_S * 1e9)
        joints, imu = self.joints, self.imu
        if joints is None or imu is None:
            return
        if self.with_actor:
            self.last_action = self.forward(self.observation(joints, imu))
        self.tick_count += 1
        message = JointState()
        message.header.stamp = joints.header.stamp  # The bench finds its sample by it.
        action = self.contract.action
        for name, raw in zip(self.contract.joint_names, self.last_action, strict=True):
            message.name.append(name)
            message.position.append(action.offset[name] + action.scale[name] * raw)
        self.publisher.publish(message)
        self.rows.append((scheduled, woken, time.monotonic_ns()))

    def observation(self, joints: JointState, imu: Imu) -> list[float]:
        """Return the observation, joints found by name."""
        names, data = self.contract.joint_names, self.contract.joints
        position = dict(zip(joints.name, joints.position, strict=True))
        velocity = dict(zip(joints.name, joints.velocity, strict=True))
        q, w = imu.orientation, imu.angular_velocity
        command = np.array(self.command)
        clock = (self.contract.gait, self.tick_count, command)
        terms: dict[str, Sequence[float]] = {
            'base_ang_vel': [w.x, w.y, w.z],
            'projected_gravity': [
                2 * (q.w * q.y - q.x * q.z),
                -2 * (q.y * q.z + q.w * q.x),
                2 * (q.x * q.x + q.y * q.y) - 1,
            ],
            'velocity_commands': self.command,
            'joint_pos_rel': [position[n] - data[n].default_position for n in names],
            'joint_vel_rel': [velocity[n] for n in names],
            'last_action': self.last_action,
            'gait_phase_sin': gait.phase_sin(*clock).tolist(),
            'gait_phase_cos': gait.phase_cos(*clock).tolist(),
            'gait_contact': gait.contact(*clock).tolist(),
        }
        result: list[float] = []
        for row in self.contract.observations:
            values = terms[row.term]
            scales = row.scale if isinstance(row.scale, tuple) else [row.scale] * row.size
            result.extend(value * scale for value, scale in zip(values, scales, strict=True))
        return result


def serve(kind: type[TeachingNode], executor_kind: Any) -> None:
    """Spin the node until SIGINT, then write what it noted to $BENCH_FOLDER."""
    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: stop.append(received))
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    collections = CollectionLog()
    node = kind()
    executor = executor_kind()
    executor.add_node(node)
    ready = time.monotonic_ns()
    while not stop:
        executor.spin_once(timeout_sec=0.5)
    folder = Path(os.environ['BENCH_FOLDER'])
    save_ticks(folder, node.rows)
    (folder / 'ready').write_text(str(ready))
    collections.save(folder)
