"""Switches the router's device back and forth while it walks, as `ros2 param set` would.

    g1-policy walk --duration 40 --record &
    python bench/switch_devices.py cuda:0 cpu --times 20

Waits for RUN, then sets the parameter every second; prints each answer and how long it took.
"""

import argparse
import sys
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient

from g1_policy_node.tools.monitor import Monitor

PATIENCE_S = 60.0


def wait_for_run(namespace: str) -> bool:
    """Wait until the router is in RUN; False if it does not come to that."""
    deadline = time.monotonic() + PATIENCE_S
    with Monitor(namespace) as monitor:
        while time.monotonic() < deadline:
            if monitor.poll().mode == 'RUN':
                return True
            time.sleep(0.1)
    return False


def main() -> int:
    """Switch, and return how many switches were refused or not answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('devices', nargs='+')
    parser.add_argument('--times', type=int, default=20)
    parser.add_argument('--pause', type=float, default=1.0)
    parser.add_argument('--namespace', default='')
    arguments = parser.parse_args()
    if not wait_for_run(arguments.namespace):
        print('no RUN')
        return 1
    rclpy.init(args=[])
    node = Node('g1_switch', namespace=arguments.namespace)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    client = AsyncParameterClient(node, 'g1_policy')
    client.wait_for_services(PATIENCE_S)
    failed = 0
    for i in range(arguments.times):
        device = arguments.devices[i % len(arguments.devices)]
        began = time.monotonic()
        future = client.set_parameters([Parameter('device', value=device)])
        executor.spin_until_future_complete(future, timeout_sec=10.0)
        answer = future.result().results[0] if future.done() else None
        failed += not (answer and answer.successful)
        said = 'no answer' if answer is None else (answer.reason or 'switched')
        print(
            f'{i + 1:>3} {device}: {said}, {(time.monotonic() - began) * 1e3:.1f} ms', flush=True
        )
        time.sleep(arguments.pause)
    rclpy.shutdown()
    return failed


if __name__ == '__main__':
    sys.exit(main())
