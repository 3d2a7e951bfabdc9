"""A stand-in for the robot: publishes stamped sensors at a rate and keeps what comes back.

Commands are timed by DDS on arrival and collected later, so this process' own wake-ups do not
count. Run as `python -m bench.source FOLDER RATE LINK SWAPS NAMESPACE...`; prints one line when
every namespace has answered for the first time, and writes source.npz on SIGINT.
"""

import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import Twist
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray

from g1_policy_node.contract import load_contract
from g1_policy_node.newest import SENSOR_QOS, NewestMessage
from g1_policy_node.paths import find_data

KEPT_QOS = QoSProfile(
    history=HistoryPolicy.KEEP_LAST, depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT
)
SWAP_PERIOD_S = 0.25
PHASES = 1000
"""Samples of one second of swaying."""
SWAY_RAD = 0.01
_STAMP = struct.Struct('<iI')
_STAMP_AT = 4  # Behind the encapsulation header: every message here starts with its stamp.
_STEP_SENSOR_STAMP, _STEP_CHECKED, _STEP_PUBLISHED = 9, 7, 8
"""Where `~/step` has these: behind slot and gait, the seven times, then the stamps."""


class Robot:
    """The topics of one namespace."""

    def __init__(self, node: Node, namespace: str, link: str) -> None:
        prefix = f'{namespace}/' if namespace else ''
        self._joints = node.create_publisher(JointState, f'{prefix}joint_states', SENSOR_QOS)
        self._imu = node.create_publisher(Imu, f'{prefix}imu/data', SENSOR_QOS)
        self._cmd = node.create_publisher(Twist, f'{prefix}cmd_vel', SENSOR_QOS)
        self._commands = NewestMessage(node, JointState, f'{prefix}joint_command', KEPT_QOS)
        steps = f'{prefix}g1_policy/step'
        self._steps = (
            NewestMessage(node, Float64MultiArray, steps, KEPT_QOS) if link == 'step' else None
        )
        self._client = node.create_client(SetParameters, f'{prefix}g1_policy/set_parameters')
        self.commands: list[tuple[int, int]] = []  # header stamp, received: system ns
        self.steps: list[tuple[float, float, float]] = []  # sensor, checked, published: s
        self.answers: list[Any] = []

    @property
    def acting(self) -> bool:
        """Whether a command, and a step where there are steps, has come."""
        return bool(self.commands) and (self._steps is None or bool(self.steps))

    def publish(self, joints: bytearray, imu: bytearray) -> None:
        """Publish both sensors, stamped now."""
        for publisher, buffer in ((self._imu, imu), (self._joints, joints)):
            _STAMP.pack_into(buffer, _STAMP_AT, *divmod(time.time_ns(), 1_000_000_000))
            publisher.publish(bytes(buffer))

    def publish_command(self, message: Twist) -> None:
        """Publish the velocity command."""
        self._cmd.publish(message)

    def collect(self) -> None:
        """Keep what has come since the last time."""
        while taken := self._commands.take():
            stamp = taken.message.header.stamp
            self.commands.append((stamp.sec * 1_000_000_000 + stamp.nanosec, taken.received))
        while self._steps and (taken := self._steps.take()):
            d = taken.message.data
            self.steps.append((d[_STEP_SENSOR_STAMP], d[_STEP_CHECKED], d[_STEP_PUBLISHED]))

    def change_device(self, device: str) -> None:
        """Ask the node to run its actor on `device`."""
        request = SetParameters.Request()
        request.parameters = [Parameter('device', value=device).to_parameter_msg()]
        self.answers.append(self._client.call_async(request))


def sensor_messages() -> list[tuple[bytearray, bytearray]]:
    """Return PHASES samples of a robot that sways a little around its default pose, serialized.

    It has to move, and to agree with itself: the router takes nothing else for a robot.
    """
    contract = load_contract(find_data('policies/g1_walk/policy.yaml'))
    default = contract.per_joint('default_position')
    joints, imu = JointState(name=list(contract.joint_names)), Imu()
    imu.header.frame_id = joints.header.frame_id = contract.imu_frame
    joints.effort = [0.0] * len(default)
    samples = []
    for phase in range(PHASES):
        angle = 2 * np.pi * phase / PHASES
        sway, rate = SWAY_RAD * np.sin(angle), SWAY_RAD * 2 * np.pi * np.cos(angle)  # at 1 Hz
        joints.position = (default + sway).tolist()
        joints.velocity = [float(rate)] * len(default)
        imu.orientation.x, imu.orientation.w = np.sin(sway / 2), np.cos(sway / 2)
        imu.angular_velocity.x = float(rate)
        imu.linear_acceleration.y = float(9.81 * np.sin(sway))
        imu.linear_acceleration.z = float(9.81 * np.cos(sway))
        samples.append((bytearray(serialize_message(joints)), bytearray(serialize_message(imu))))
    return samples


def main() -> None:
    """Publish until SIGINT."""
    folder, rate, link, swaps = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4]
    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: stop.append(received))
    rclpy.init(args=[], signal_handler_options=rclpy.SignalHandlerOptions.NO)
    node = Node('bench_source')
    robots = [Robot(node, namespace, link) for namespace in sys.argv[5:]]
    published, swap_times = publish(node, robots, rate, swaps.split(',') if swaps else [], stop)
    refused = sum(
        not (answer.done() and answer.result().results[0].successful)
        for robot in robots
        for answer in robot.answers
    )
    arrays = {'published': np.array(published), 'swaps': np.array(swap_times, np.int64)}
    arrays['offset'] = np.array(time.time_ns() - time.monotonic_ns())
    arrays['refused'] = np.array(refused)
    for i, robot in enumerate(robots):
        arrays[f'commands{i}'] = np.array(robot.commands, np.int64).reshape(-1, 2)
        arrays[f'steps{i}'] = np.array(robot.steps).reshape(-1, 3)
    np.savez(folder / 'source.npz', allow_pickle=False, **arrays)


def publish(
    node: Node, robots: list[Robot], rate: float, devices: list[str], stop: list[int]
) -> tuple[list[int], list[int]]:
    """Publish on absolute deadlines until `stop`; return when, and when a device changed (ns).

    With `devices` the device changes to the next of them every SWAP_PERIOD_S once asked to by
    a file `swap` in the folder.
    """
    samples = sensor_messages()
    command = Twist()
    command.linear.x = 0.5
    often, swap_every = max(1, round(rate / 20)), max(1, round(rate * SWAP_PERIOD_S))
    start, i, told = time.monotonic_ns(), 0, False
    published: list[int] = []
    swap_times: list[int] = []
    begin = Path(sys.argv[1], 'swap')
    while not stop:
        i += 1
        left = start + round(i * 1e9 / rate) - time.monotonic_ns()
        if left > 0:
            time.sleep(left * 1e-9)
        sample = samples[round(i * PHASES / rate) % PHASES]
        for robot in robots:
            robot.publish(*sample)
        published.append(time.monotonic_ns())
        if i % often == 0:
            for robot in robots:
                robot.publish_command(command)
                robot.collect()
            if not told and all(robot.acting for robot in robots):
                told = True
                print('acting', flush=True)
        if devices and i % swap_every == 0 and begin.exists():
            swap_times.append(time.monotonic_ns())
            for robot in robots:
                robot.change_device(devices[len(swap_times) % len(devices)])
    for robot in robots:
        robot.collect()
    for _ in robots * (1 + len(swap_times)):
        rclpy.spin_once(node, timeout_sec=0.05)
    return published, swap_times


if __name__ == '__main__':
    main()
