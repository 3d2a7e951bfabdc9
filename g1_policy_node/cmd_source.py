"""Publishes a fixed or scripted `cmd_vel` and ends after so many seconds of RUN."""

import math
import sys
import threading
from pathlib import Path
from typing import Any

from geometry_msgs.msg import Twist
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.clock import Clock, ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import String

from g1_policy_node.newest import EVERY_LATCHED_QOS
from g1_policy_node.ros_process import run_ros_process
from g1_policy_node.run_folder import write_json
from g1_policy_node.script import Player, Script, constant, load_script
from g1_policy_node.types import UserError


class CommandSource(Node):
    """The node `g1_cmd`. Raises UserError for a parameter that cannot be."""

    def __init__(self, **options: Any) -> None:
        super().__init__('g1_cmd', **options)
        script = self._read_script()
        duration = self._number('duration', 0.0, 'seconds of RUN; 0: until stopped')
        rate = self._number('rate', 20.0, 'messages per second')
        if duration < 0 or not 0 < rate <= 1000:
            raise UserError(f'duration {duration:g} s, rate {rate:g} Hz: out of range')
        self.player = Player(script, duration)
        self._run_dir = self._text('run_dir', 'folder for the evidence; empty: none')
        self._refuse_unknown()
        simulated = self.get_parameter('use_sim_time').value
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._tick_clock = self.get_clock() if simulated else steady
        self._publisher = self.create_publisher(Twist, 'cmd_vel', 1)
        self.create_subscription(String, 'g1_policy/mode', self._on_mode, EVERY_LATCHED_QOS)
        self.create_timer(1 / rate, self._publish, clock=self._tick_clock)

    def write_part(self) -> None:
        """Write cmd.json: how long RUN lasted and why this process ended."""
        if not self._run_dir:
            return
        part = {
            'duration': self.player.duration,
            'run_seconds': self.player.run_seconds,
            'last_tick_ns': self.player.last,
            'completed': self.player.completed,
            'ended': self.player.ended,
        }
        write_json(Path(self._run_dir, 'cmd.json'), part)

    def _on_mode(self, message: String) -> None:
        self.player.hear(message.data)
        self._publish()

    def _publish(self) -> None:
        now = self._tick_clock.now().nanoseconds
        if not now:  # no /clock yet: RUN is counted, and commanded, from the first one on
            return
        message = Twist()
        velocity = self.player.velocity(now)
        message.linear.x, message.linear.y, message.angular.z = velocity
        self._publisher.publish(message)

    def _read_script(self) -> Script:
        vx = self._number('vx', 0.0, 'forward velocity, m/s')
        vy = self._number('vy', 0.0, 'velocity to the left, m/s')
        wz = self._number('wz', 0.0, 'yaw rate to the left, rad/s')
        path = self._text('script', 'YAML list of {t, vx, vy, wz}; empty: vx, vy, wz')
        return load_script(Path(path)) if path else constant(vx, vy, wz)

    def _number(self, name: str, default: float, description: str) -> float:
        value = self._declared(name, default, description)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise UserError(f'{name}: expected a number, got {value!r}')
        return float(value)

    def _text(self, name: str, description: str) -> str:
        value = self._declared(name, '', description)
        if not isinstance(value, str):
            raise UserError(f'{name}: expected text, got {value!r}')
        return value

    def _refuse_unknown(self) -> None:
        # rclpy has no public way to see overrides of parameters that nobody declares.
        for name in self._parameter_overrides:
            if not self.has_parameter(name) and not name.startswith('qos_overrides.'):
                raise UserError(f'parameter {name} does not exist')

    def _declared(self, name: str, default: float | str, description: str) -> Any:
        """Declare with any type: 1 is a fine velocity, and a wrong type gets our own words."""
        form = ParameterDescriptor(description=description, read_only=True, dynamic_typing=True)
        return self.declare_parameter(name, default, form).value


def _run(stop: threading.Event) -> int:
    """Spin until the player is done or the process is told to stop, which is no failure."""
    node = CommandSource()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    player = node.player
    while player.exit_code is None and not stop.is_set():
        executor.spin_once(timeout_sec=0.1)
    if player.exit_code == 1:
        print(f'cmd_source: RUN has ended: {player.ended}', file=sys.stderr)
    node.write_part()
    return player.exit_code or 0


def main() -> None:
    """Run the node until it is done or stopped; 2 and one line for a wrong parameter."""
    sys.exit(run_ros_process('cmd_source', _run))


if __name__ == '__main__':
    main()
