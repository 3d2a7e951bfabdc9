"""A gamepad drives: `sensor_msgs/Joy` to `cmd_vel`, with a dead-man and an e-stop button.

While the dead-man button is held, the sticks are the command. Released, or when the gamepad
falls silent, nothing is sent any more, and the router ramps its command to zero by itself.
"""

import sys
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import rclpy
from geometry_msgs.msg import Twist
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import Joy
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from g1_policy_node.newest import EVERY_LATCHED_QOS
from g1_policy_node.ros_process import declare, run_ros_process
from g1_policy_node.types import Mode, UserError

PARAMETERS: dict[str, tuple[Any, str]] = {
    'axis_vx': (1, 'axis of the forward velocity'),
    'axis_vy': (0, 'axis of the velocity to the left'),
    'axis_wz': (3, 'axis of the yaw rate to the left'),
    'scale_vx': (0.8, 'm/s at the end of the axis; negative: the other way'),
    'scale_vy': (0.3, 'm/s at the end of the axis'),
    'scale_wz': (0.8, 'rad/s at the end of the axis'),
    'dead_zone': (0.1, 'part of an axis around its middle that means zero'),
    'button_dead_man': (4, 'held: the sticks are the command'),
    'button_estop': (1, 'damps at once'),
    'button_run': (7, 'changes between the policy following the command and standing'),
}

_IN_RUN = frozenset({Mode.RUN.value, Mode.HOLD.value})


class Pressed(NamedTuple):
    """What a message of the gamepad asks for; `velocity` None: nothing is to be sent."""

    velocity: tuple[float, float, float] | None
    estop: bool
    run: bool


class Pad:
    """Reads Joy messages by the mapping in PARAMETERS. Buttons count when they go down."""

    def __init__(self, mapping: dict[str, Any]) -> None:
        for name, value in mapping.items():
            if name.startswith(('axis', 'button')) and value < 0:
                raise UserError(f'{name}: {value} is negative')
        if not 0.0 <= mapping['dead_zone'] < 1.0:
            raise UserError(f'dead_zone: {mapping["dead_zone"]:g} is not in [0, 1)')
        self._m = mapping
        self._down: frozenset[int] | None = None

    def read(self, axes: Sequence[float], buttons: Sequence[int]) -> Pressed:
        """Return what is asked for; a UserError names an axis or button that is not there."""
        for name, index in self._m.items():
            there = {'axis': len(axes), 'button': len(buttons)}.get(name.split('_')[0])
            if there is not None and index >= there:
                raise UserError(f'{name} is {index}, but the gamepad has {there}')
        down = frozenset(index for index, state in enumerate(buttons) if state)
        # A button held since before the first message was not pressed for us.
        new = frozenset() if self._down is None else down - self._down
        self._down = down
        held = self._m['button_dead_man'] in down
        velocity = (self._axis(axes, 'vx'), self._axis(axes, 'vy'), self._axis(axes, 'wz'))
        return Pressed(
            velocity if held else None,
            self._m['button_estop'] in down,
            self._m['button_run'] in new,
        )

    def _axis(self, axes: Sequence[float], name: str) -> float:
        value = float(axes[self._m[f'axis_{name}']])
        return 0.0 if abs(value) <= self._m['dead_zone'] else value * self._m[f'scale_{name}']


class JoyTeleop:
    """The node `joy_teleop`."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._pad = Pad(declare(node, PARAMETERS))
        self._mode = ''
        self._following = False
        self._publisher = node.create_publisher(Twist, 'cmd_vel', 1)
        self._estop = node.create_client(Trigger, 'g1_policy/estop')
        self._run = node.create_client(SetBool, 'g1_policy/run')
        node.create_subscription(Joy, 'joy', self._on_joy, 1)
        node.create_subscription(String, 'g1_policy/mode', self._on_mode, EVERY_LATCHED_QOS)

    def _on_mode(self, message: String) -> None:
        mode = message.data.partition(':')[0]
        in_run = mode in _IN_RUN
        if in_run != (self._mode in _IN_RUN):
            self._following = in_run
        self._mode = mode

    def _on_joy(self, message: Joy) -> None:
        try:
            pressed = self._pad.read(message.axes, message.buttons)
        except UserError as error:
            self._node.get_logger().error(str(error), throttle_duration_sec=5.0)
            return
        if pressed.estop:
            # Again with every message while it is held, until the router says that it damps.
            if self._mode != Mode.DAMP.value:
                self._estop.call_async(Trigger.Request())
            return
        if pressed.run:
            self._ask_run(not self._following)
        if pressed.velocity:
            twist = Twist()
            twist.linear.x, twist.linear.y, twist.angular.z = pressed.velocity
            self._publisher.publish(twist)

    def _ask_run(self, on: bool) -> None:
        if not self._run.service_is_ready():
            self._node.get_logger().warning('there is no service g1_policy/run')
            return
        asked = self._run.call_async(SetBool.Request(data=on))
        asked.add_done_callback(lambda done: self._answered(on, done.result()))

    def _answered(self, on: bool, response: SetBool.Response) -> None:
        if response.success:
            self._following = on
        self._node.get_logger().info(response.message)


def _run(stop: threading.Event) -> int:
    node = rclpy.create_node('joy_teleop')
    JoyTeleop(node)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while not stop.is_set():
        executor.spin_once(timeout_sec=0.1)
    return 0


def main() -> None:
    """Run the node until stopped; 2 and one line for a wrong parameter."""
    sys.exit(run_ros_process('joy_teleop', _run))


if __name__ == '__main__':
    main()
