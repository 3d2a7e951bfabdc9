"""A ROS process from start to exit code: signals, arguments, and one line for a mistake."""

import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rclpy
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from g1_policy_node.fast_dds import use_sockets
from g1_policy_node.types import UserError

BAD_USAGE = 2

KINDS: Mapping[type, str] = {
    bool: 'true or false',
    int: 'a whole number',
    float: 'a number',
    str: 'a text',
}
"""What a parameter of a type is called in messages."""


def declare(node: Node, parameters: Mapping[str, tuple[Any, str]]) -> dict[str, Any]:
    """Declare read-only parameters of (default, description) by name; return their values.

    A UserError says what is wrong with a value given, or that nobody asks for it.
    """
    # rclpy has no public way to see overrides of parameters that nobody declares.
    for name in node._parameter_overrides:
        known = name in parameters or node.has_parameter(name)
        if not known and not name.startswith('qos_overrides.'):
            raise UserError(f'parameter {name} does not exist')
    return {name: _declare(node, name, *row) for name, row in parameters.items()}


def _declare(node: Node, name: str, default: Any, description: str) -> Any:
    # With any type: 1 is a fine velocity, and a wrong type gets our own words.
    form = ParameterDescriptor(description=description, read_only=True, dynamic_typing=True)
    value = node.declare_parameter(name, default, form).value
    if isinstance(default, float) and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if type(value) is not type(default):
        raise UserError(f'{name}: expected {KINDS[type(default)]}, got {value!r}')
    if isinstance(default, float):
        raise UserError(f'{name}: expected a number, got {value!r}')
    return value


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
    use_sockets(os.environ)
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except rclpy_implementation.UnknownROSArgsError as error:
        raise UserError(f'unknown ROS arguments: {error}') from None
    except rclpy_implementation.RCLError as error:
        raise UserError(str(error).splitlines()[0]) from None
