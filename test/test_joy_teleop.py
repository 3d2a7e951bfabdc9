import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip('rclpy')

import rclpy
from geometry_msgs.msg import Twist
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import Joy
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from g1_policy_node.joy_teleop import PARAMETERS, Pad
from g1_policy_node.newest import LATCHED_QOS
from g1_policy_node.types import UserError

DEFAULTS = {name: default for name, (default, _) in PARAMETERS.items()}
LB, B, START = (DEFAULTS[f'button_{name}'] for name in ('dead_man', 'estop', 'run'))


def buttons(*down: int) -> list[int]:
    return [int(index in down) for index in range(11)]


def axes(**given: float) -> list[float]:
    values = [0.0] * 8
    for name, value in given.items():
        values[DEFAULTS[f'axis_{name}']] = value
    return values


def test_nothing_is_sent_unless_the_dead_man_button_is_held() -> None:
    pad = Pad(DEFAULTS)
    assert pad.read(axes(vx=1.0), buttons()).velocity is None
    assert pad.read(axes(vx=1.0, wz=-0.5), buttons(LB)).velocity == (0.8, 0.0, -0.4)
    assert pad.read(axes(vx=1.0), buttons()).velocity is None


def test_a_stick_at_rest_is_zero_although_it_is_never_quite_in_the_middle() -> None:
    assert Pad(DEFAULTS).read(axes(vx=0.09, vy=-0.1), buttons(LB)).velocity == (0, 0, 0)


def test_the_run_button_counts_once_and_only_if_pressed_for_us() -> None:
    pad = Pad(DEFAULTS)
    states = (buttons(START), buttons(), buttons(START), buttons(START))
    assert [pad.read(axes(), state).run for state in states] == [False, False, True, False]


def test_the_estop_button_counts_as_long_as_it_is_held() -> None:
    pad = Pad(DEFAULTS)
    assert [pad.read(axes(), buttons(B)).estop for _ in range(2)] == [True, True]


def test_a_mapping_that_the_gamepad_has_not_is_named() -> None:
    with pytest.raises(UserError, match='axis_wz is 3, but the gamepad has 2'):
        Pad(DEFAULTS).read([0.0, 0.0], buttons())
    with pytest.raises(UserError, match='button_estop: -1 is negative'):
        Pad(DEFAULTS | {'button_estop': -1})


class Router(Node):
    """Stands for the router, under its name, and for the driver of the gamepad."""

    def __init__(self, context: rclpy.Context) -> None:
        super().__init__('g1_policy', context=context)
        self.asked: list[Any] = []
        self.velocities: list[float] = []
        self._mode = self.create_publisher(String, '~/mode', LATCHED_QOS)
        self._joy = self.create_publisher(Joy, 'joy', 1)
        self.create_subscription(Twist, 'cmd_vel', self._on_command, 1)
        self.create_service(Trigger, '~/estop', self._on_estop)
        self.create_service(SetBool, '~/run', self._on_run)
        self.mode('RUN: requested')
        self.executor_ = SingleThreadedExecutor(context=context)
        self.executor_.add_node(self)

    def mode(self, text: str) -> None:
        self._mode.publish(String(data=text))

    def hold(self, sticks: list[float], down: list[int], until: Callable[[], bool]) -> None:
        """Publish this state of the gamepad at 20 Hz, until something has come of it."""
        deadline = time.monotonic() + 30
        while not until():
            assert time.monotonic() < deadline
            self._joy.publish(Joy(axes=sticks, buttons=down))
            self.executor_.spin_once(timeout_sec=0.05)

    def _on_command(self, message: Twist) -> None:
        self.velocities.append(message.linear.x)

    def _on_estop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.asked.append('estop')
        self.mode('DAMP: e-stop requested')
        return response

    def _on_run(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self.asked.append(request.data)
        response.success = True
        return response


@pytest.fixture
def router() -> Iterator[Router]:
    context = rclpy.Context()
    rclpy.init(context=context)
    node = Router(context)
    yield node
    node.destroy_node()
    rclpy.shutdown(context=context)


@pytest.mark.ros
def test_over_dds_a_gamepad_drives_stands_walks_on_and_stops(router: Router) -> None:
    command = [sys.executable, '-m', 'g1_policy_node.joy_teleop']
    with subprocess.Popen(command, env=dict(os.environ)) as process:
        router.hold(axes(vx=1.0), buttons(LB), lambda: bool(router.velocities))
        assert router.velocities[0] == pytest.approx(0.8)
        released = time.monotonic() + 0.5
        router.hold(axes(vx=1.0), buttons(), lambda: time.monotonic() > released)
        router.velocities.clear()
        released = time.monotonic() + 0.5
        router.hold(axes(vx=1.0), buttons(), lambda: time.monotonic() > released)
        assert router.velocities == []
        router.hold(axes(), buttons(START), lambda: router.asked == [False])
        router.hold(axes(), buttons(), lambda: time.monotonic() > released + 0.5)
        router.hold(axes(), buttons(START), lambda: router.asked == [False, True])
        router.hold(axes(vx=1.0), buttons(B, LB), lambda: 'estop' in router.asked)
        process.terminate()
        assert process.wait(20) == 0
    assert router.velocities == []
