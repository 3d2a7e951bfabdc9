"""A ROS process from start to exit code: signals, arguments, and one line for a mistake."""

import signal
import sys
import threading
from collections.abc import Callable, Sequence

import rclpy
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.signals import SignalHandlerOptions

from g1_policy_node.types import UserError

BAD_USAGE = 2


def run_ros_process(
    name: str, body: Callable[[threading.Event], int], args: Sequence[str] | None = None
) -> int:
    """Run `body(stop)` with rclpy and return its exit code; SIGINT and SIGTERM set `stop`.

    A UserError is printed as one line, and the code is 2.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        _init(args)
        return body(stop)
    except UserError as error:
        print(f'{name}: {error}', file=sys.stderr)
        return BAD_USAGE
    finally:
        rclpy.try_shutdown()


def _init(args: Sequence[str] | None) -> None:
    """Start rclpy, which would otherwise answer a mistyped argument with a traceback."""
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except rclpy_implementation.UnknownROSArgsError as error:
        raise UserError(f'unknown ROS arguments: {error}') from None
    except rclpy_implementation.RCLError as error:
        raise UserError(str(error).splitlines()[0]) from None
