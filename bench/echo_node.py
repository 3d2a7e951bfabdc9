"""The floor of sensor-to-action: sends every n-th JointState back as it came, unread."""

import os
import signal
import sys

import rclpy
from rclpy.experimental import EventsExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from g1_policy_node.newest import COMMAND_QOS, SENSOR_QOS


def main(every: int) -> None:
    """Echo until SIGINT."""
    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: stop.append(received))
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node('g1_policy')
    publisher = node.create_publisher(JointState, 'joint_command', COMMAND_QOS)
    count = 0

    def on_message(raw: bytes) -> None:
        nonlocal count
        count += 1
        if count % every == 0:
            publisher.publish(raw)

    node.create_subscription(JointState, 'joint_states', on_message, SENSOR_QOS, raw=True)
    executor = EventsExecutor()
    executor.add_node(node)
    while not stop:
        executor.spin_once(timeout_sec=0.5)


if __name__ == '__main__':
    main(max(1, int(os.environ.get('BENCH_RATE', '50')) // 50))
    sys.exit(0)
