import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip('rclpy')

import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from g1_policy_node.newest import LATCHED_QOS, NewestMessage

PROGRAM = [sys.executable, '-m', 'g1_policy_node.cmd_source', '--ros-args']


@pytest.fixture
def router() -> Iterator[Node]:
    """A node under the router's name, in a context of its own."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('g1_policy', context=context)
    yield node
    node.destroy_node()
    rclpy.shutdown(context=context)


def start(*parameters: str) -> subprocess.Popen[str]:
    given = [item for parameter in parameters for item in ('-p', parameter)]
    return subprocess.Popen(
        [*PROGRAM, *given], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


def next_command(commands: NewestMessage[Twist], limit: float = 10.0) -> tuple[float, ...]:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if taken := commands.take():
            twist = taken.message
            return twist.linear.x, twist.linear.y, twist.angular.z
        time.sleep(0.005)
    raise AssertionError('no cmd_vel')


def until(true: Callable[[], object], limit: float = 20.0) -> None:
    deadline = time.monotonic() + limit
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.ros
def test_it_commands_in_run_alone_ends_after_its_duration_and_says_so(
    router: Node, tmp_path: Path
) -> None:
    mode = router.create_publisher(String, '~/mode', LATCHED_QOS)
    commands = NewestMessage(router, Twist, 'cmd_vel')
    mode.publish(String(data='READY: at the default pose'))
    with start('vx:=1', 'wz:=-0.5', 'duration:=1.0', f'run_dir:={tmp_path}') as process:
        assert next_command(commands) == (0.0, 0.0, 0.0)
        mode.publish(String(data='RUN: requested'))
        deadline = time.monotonic() + 10
        while next_command(commands) != (1.0, 0.0, -0.5):
            assert time.monotonic() < deadline
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, '')
    part = json.loads((tmp_path / 'cmd.json').read_text())
    assert (part['completed'], part['ended']) == (True, '1 s of RUN done')
    assert part['run_seconds'] == pytest.approx(1.0, abs=0.3)


@pytest.mark.ros
def test_without_a_clock_it_commands_nothing_and_counts_run_from_the_first_clock(
    router: Node, tmp_path: Path
) -> None:
    mode = router.create_publisher(String, '~/mode', LATCHED_QOS)
    clock = router.create_publisher(Clock, '/clock', 1)
    commands = NewestMessage(router, Twist, 'cmd_vel')
    mode.publish(String(data='RUN: auto_run'))

    def tell(seconds: int) -> None:
        clock.publish(Clock(clock=Time(sec=seconds)))

    with start('vx:=1', 'duration:=5.0', 'use_sim_time:=true', f'run_dir:={tmp_path}') as process:
        until(lambda: mode.get_subscription_count() and clock.get_subscription_count())
        time.sleep(0.5)  # it has heard RUN by now
        assert commands.take() is None
        tell(100)
        assert next_command(commands) == (1.0, 0.0, 0.0)
        tell(104)
        assert next_command(commands) == (1.0, 0.0, 0.0)
        assert process.poll() is None
        tell(105)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, '')
    assert json.loads((tmp_path / 'cmd.json').read_text())['run_seconds'] == 5.0


@pytest.mark.ros
def test_damp_ends_it_without_a_clock_too(router: Node) -> None:
    mode = router.create_publisher(String, '~/mode', LATCHED_QOS)
    mode.publish(String(data='RUN: auto_run'))
    with start('use_sim_time:=true') as process:
        until(mode.get_subscription_count)
        time.sleep(0.5)
        mode.publish(String(data='DAMP: tilted'))
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (1, 'cmd_source: RUN has ended: DAMP: tilted\n')


@pytest.mark.ros
def test_damp_after_run_ends_it_with_one_line(router: Node) -> None:
    mode = router.create_publisher(String, '~/mode', LATCHED_QOS)
    commands = NewestMessage(router, Twist, 'cmd_vel')
    mode.publish(String(data='RUN: requested'))
    with start('vx:=0.5') as process:
        assert next_command(commands)
        while next_command(commands) != (0.5, 0.0, 0.0):
            pass
        mode.publish(String(data='DAMP: tilted'))
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (1, 'cmd_source: RUN has ended: DAMP: tilted\n')


@pytest.mark.ros
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_being_stopped_is_no_failure(router: Node, tmp_path: Path, number: int) -> None:
    commands = NewestMessage(router, Twist, 'cmd_vel')
    with start('duration:=5.0', f'run_dir:={tmp_path}') as process:
        next_command(commands)
        process.send_signal(number)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, '')
    assert json.loads((tmp_path / 'cmd.json').read_text())['completed'] is False


@pytest.mark.ros
@pytest.mark.parametrize(
    ('parameter', 'expected'),
    [
        ('vx:=fast', "vx: expected a number, got 'fast'"),
        ('vx:=.nan', 'vx: expected a number, got nan'),
        ('vx:=true', 'vx: expected a number, got True'),
        ('rate:=0', 'rate 0 Hz: out of range'),
        ('duration:=-1.0', 'duration -1 s'),
        ('script:=/nowhere.yaml', '/nowhere.yaml: cannot be read'),
        ('vxx:=1.0', 'parameter vxx does not exist'),
        ('script:=3', 'script: expected text, got 3'),
    ],
)
def test_a_parameter_that_cannot_be_is_one_line_and_two(parameter: str, expected: str) -> None:
    with start(parameter) as process:
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert expected in errors
    assert errors.count('\n') == 1
