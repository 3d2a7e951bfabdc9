"""The node `g1_view`: what is heard goes to a browser on this machine, and answers come back."""

import time
from pathlib import Path
from typing import Any

from geometry_msgs.msg import Twist
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import SetBool, Trigger

from g1_policy_node.bundle import CONTRACT, resolve_bundle
from g1_policy_node.contract import load_contract
from g1_policy_node.newest import NewestMessage
from g1_policy_node.ros_process import declare
from g1_policy_node.run_folder import VIEW_URL, write_json
from g1_policy_node.tools.floor import read_live
from g1_policy_node.tools.monitor import Listener, Velocity
from g1_policy_node.view.loopback import LOOPBACK, serve
from g1_policy_node.view.panel import Button, Panel
from g1_policy_node.view.scene import UPRIGHT, Base, RobotScene

PLOT_PERIOD_S = 0.25

PARAMETERS: dict[str, tuple[Any, str]] = {
    'port': (8080, 'port on this machine; the next free one if it is taken'),
    'policy': ('g1_walk', 'bundle: its command ranges are those of the sliders'),
    'drive': (True, 'publish cmd_vel from sliders; false: another sender does'),
    'vx': (0.0, 'where the slider starts, m/s'),
    'vy': (0.0, 'where the slider starts, m/s'),
    'wz': (0.0, 'where the slider starts, rad/s'),
    'run_dir': ('', "the run's folder; empty: none"),
}

_SERVICES: dict[Button, tuple[str, Any, Any]] = {
    Button.ESTOP: ('g1_policy/estop', Trigger, Trigger.Request()),
    Button.RUN: ('g1_policy/run', SetBool, SetBool.Request(data=True)),
    Button.STAND: ('g1_policy/run', SetBool, SetBool.Request(data=False)),
    Button.PUSH: ('g1_sim/push', Trigger, Trigger.Request()),
    Button.RESET: ('g1_policy/reset', Trigger, Trigger.Request()),
}

_ZEROING = frozenset({Button.ESTOP, Button.STAND, Button.RESET})
"""The next Run starts from standing."""


class View:
    """The node `g1_view`. `update` is one pass: what was heard to the browser, and back."""

    def __init__(self, node: Node) -> None:
        self._node = node
        given = declare(node, PARAMETERS)
        contract = load_contract(resolve_bundle(given['policy']) / CONTRACT)
        run_dir, drives = given['run_dir'], given['drive']
        self._run_dir = Path(run_dir) if run_dir else None
        self._listener = Listener(node)
        self._joints = NewestMessage(node, JointState, 'joint_states')
        self._imu = NewestMessage(node, Imu, 'imu/data')
        self._commands = node.create_publisher(Twist, 'cmd_vel', 1) if drives else None
        self._clients = {b: node.create_client(s[1], s[0]) for b, s in _SERVICES.items()}
        self._robot_reset = node.create_client(Trigger, 'g1_sim/reset')
        self._server = serve(given['port'])
        self._scene = RobotScene(self._server)
        start = (given['vx'], given['vy'], given['wz'])
        self._panel = Panel(self._server, contract.commands, start, drives)
        self._base = UPRIGHT
        self._plotted = 0.0
        self._tell_where()

    def update(self) -> None:
        """Take what was heard and pressed, show it and pass it on."""
        while not self._panel.pressed.empty():
            self._ask(self._panel.pressed.get())
        self._command(self._panel.command())
        snapshot = self._listener.poll()
        self._move()
        now = time.monotonic()
        if now - self._plotted >= PLOT_PERIOD_S:
            self._plotted = now
            self._panel.plot(now, snapshot)
            self._panel.show(snapshot, read_live(self._run_dir) if self._run_dir else None)

    def close(self) -> None:
        """Stop serving."""
        self._server.stop()

    def _tell_where(self) -> None:
        url = f'http://{LOOPBACK}:{self._server.get_port()}'
        self._node.get_logger().info(f'view: {url}')
        if self._run_dir:
            write_json(self._run_dir / VIEW_URL, {'url': url})

    def _move(self) -> None:
        imu, joints = self._imu.take(), self._joints.take()
        if pose := self._listener.pose:
            p, q = pose.position, pose.orientation
            self._base = Base((p.x, p.y, p.z), (q.w, q.x, q.y, q.z))
        elif imu:
            q = imu.message.orientation
            self._base = UPRIGHT._replace(quat_wxyz=(q.w, q.x, q.y, q.z))
        if joints:
            self._scene.pose(self._base, joints.message.name, joints.message.position)

    def _command(self, velocity: Velocity | None) -> None:
        if velocity and self._commands:
            message = Twist()
            message.linear.x, message.linear.y, message.angular.z = velocity
            self._commands.publish(message)

    def _ask(self, button: Button) -> None:
        """Call the button's service; the answer is shown when it comes."""
        name = _SERVICES[button][0]
        if not self._clients[button].service_is_ready():
            self._panel.answer(f'**{button.value}**: no service {name}')
            return
        if button in _ZEROING:
            self._panel.zero()
        self._panel.answer(f'**{button.value}** …')
        if button is Button.RESET and self._robot_reset.service_is_ready():
            # A router refuses to leave DAMP while the robot lies on the floor.
            stood = self._robot_reset.call_async(Trigger.Request())
            stood.add_done_callback(lambda _: self._call(button))
        else:
            self._call(button)

    def _call(self, button: Button) -> None:
        asked = self._clients[button].call_async(_SERVICES[button][2])
        asked.add_done_callback(lambda done: self._answered(button, done))

    def _answered(self, button: Button, done: Future) -> None:
        response = done.result()
        outcome = 'done' if response.success else 'refused'
        self._panel.answer(f'**{button.value}** {outcome}: {response.message}')
