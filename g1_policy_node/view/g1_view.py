"""The executable g1_view: a live view in a browser, as a process that gives way to all others."""

import importlib.util
import os
import sys
import threading
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor

from g1_policy_node.ros_process import BAD_USAGE, run_ros_process

PERIOD_S = 0.05
NICENESS = 10
"""Compiling the meshes takes a core for a second, just when the router starts."""


def _run(stop: threading.Event) -> int:
    """Update until told to stop; the executor only waits for answers of services."""
    from g1_policy_node.view.view_node import View  # takes a core for seconds, so once it is nice

    node = rclpy.create_node('g1_view')
    view = View(node)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        due = time.monotonic()
        while not stop.is_set():
            executor.spin_once(timeout_sec=max(due - time.monotonic(), 0.0))
            if time.monotonic() >= due:
                view.update()
                due = time.monotonic() + PERIOD_S
    finally:
        view.close()
    return 0


def main() -> None:
    """Serve the view until stopped; 2 and one line for a wrong parameter."""
    os.nice(NICENESS)
    if importlib.util.find_spec('viser') is None:
        print('g1_view: viser is not installed: pip install viser==1.1.1', file=sys.stderr)
        sys.exit(BAD_USAGE)
    sys.exit(run_ros_process('g1_view', _run))


if __name__ == '__main__':
    main()
