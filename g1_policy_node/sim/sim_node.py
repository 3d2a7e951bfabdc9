"""The ROS node of a simulated robot: the same topics and services as the real one.

The physics has a thread of its own, which reads commands, steps, publishes and waits. Services
are answered on another; both hold one lock while they touch the robot.
"""

import math
import threading
import time
from typing import Any

import numpy as np
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from g1_policy_node.command_inbox import Inbox
from g1_policy_node.contract import Contract
from g1_policy_node.driver import CommandWatch, JointCommand
from g1_policy_node.pacing import LockStep, RealTimePace
from g1_policy_node.sim.protocol import Robot
from g1_policy_node.sim.recorder import Moment, Recorder
from g1_policy_node.sim.sensors import SensorPublisher
from g1_policy_node.sim.settings import SimSettings, steps_per_tick
from g1_policy_node.types import Array, Mode

_ON_HOIST = frozenset({Mode.INACTIVE, Mode.WAITING, Mode.RAMP, Mode.READY})
_RUNNING = frozenset({Mode.RUN, Mode.HOLD})
_SLOW = 0.95
"""A real-time factor below this is worth a warning."""
_PACE_WINDOW_S = 5
_LOOK_PERIOD_S = 0.02
_LISTENERS_LIMIT_S = 15.0
"""Longest wait for those who live by /clock: some of DDS's announcements, one every 3 s."""


class SimNode:
    """Drives `robot` for `contract`. `run` is the physics loop; `stop` ends it."""

    def __init__(
        self, node: Node, robot: Robot, contract: Contract, settings: SimSettings
    ) -> None:
        hz = settings.physics_hz
        self._hz = hz
        self._per_tick = steps_per_tick(contract.step_dt, hz)
        self._per_sample = hz // settings.rate
        self._node, self._robot, self._settings = node, robot, settings
        self._contract_sha256 = contract.sha256
        self._inbox = Inbox(node)
        self._sensors = SensorPublisher(node, robot.joint_names, settings.publish_clock)
        timeout = round(settings.command_timeout * 1e9)
        self._watch = CommandWatch(robot.joint_names, contract.sha256, timeout)
        self._pace = RealTimePace(10**9 // hz)
        self._lockstep = LockStep(round(contract.step_dt * 1e9), 10**9 // hz)
        self._recorder = Recorder(settings.run_dir) if settings.run_dir else None
        self._rng = np.random.default_rng(settings.seed)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._steps = 0
        self._began_ns = self._ended_ns = self._pace_checked_ns = time.monotonic_ns()
        self._mode: Mode | None = None
        self._target: Array | None = None
        self._fell_at: float | None = None
        self._unstamped = False
        robot.set_hoist(settings.hoist != 'none')
        self._snapshot = robot.snapshot()
        node.create_service(SetBool, '~/hoist', self._on_hoist)
        node.create_service(Trigger, '~/reset', self._on_reset)
        node.create_service(Trigger, '~/push', self._on_push)
        what = f'{robot.simulator} {robot.version}, physics {hz} Hz, sensors {settings.rate} Hz'
        node.get_logger().info(f'{what}, hoist {settings.hoist}')

    def run(self) -> None:
        """Simulate until `stop`: in real time, or in lock-step with the commands."""
        self._wait_for_listeners()
        self._began_ns = self._pace_checked_ns = time.monotonic_ns()
        self._pace.restart()
        while not self._stopping.is_set():
            self._advance()
            self._publish()
            if self._lockstep.engaged:
                self._wait_for_command()
            else:
                self._pace.wait()
        self._ended_ns = time.monotonic_ns()

    def stop(self) -> None:
        """End `run` from another thread."""
        self._stopping.set()
        self._inbox.wake()

    def save(self) -> None:
        """Write this process's part of the run folder, if there is one."""
        if self._recorder:
            self._recorder.save(self.facts())

    def facts(self) -> dict[str, Any]:
        """Return what sim.json says about the run."""
        wall = (self._ended_ns - self._began_ns) * 1e-9
        return {
            'simulator': self._robot.simulator,
            'version': self._robot.version,
            'rate': self._settings.rate,
            'physics_dt': self._robot.physics_dt,
            'seconds': self._steps / self._hz,
            'real_time_factor': self._steps / self._hz / wall if wall > 0 else None,
            'rebases': self._pace.rebases,
            'lost_s': self._pace.lost_ns * 1e-9,
            'commands': {
                'received': self._watch.received,
                'rejected': dict(self._watch.rejected),
            },
            'fell': self._fell_at is not None,
            'fell_at_s': self._fell_at,
            'lockstep': self._settings.lockstep,
            'contract_sha256': self._contract_sha256,
            'joint_names': list(self._robot.joint_names),
        }

    @property
    def _sim_ns(self) -> int:
        return self._steps * 10**9 // self._hz

    def _tick_now(self) -> int:
        """Return ns on the tick clock: simulated time if it is published, else steady time."""
        return self._sim_ns if self._settings.publish_clock else time.monotonic_ns()

    def _advance(self) -> None:
        """Make one physics step with the newest command."""
        with self._lock:
            self._look()
            self._target = self._watch.target(self._tick_now())
            self._robot.step(self._target)
            self._steps += 1
            self._snapshot = self._robot.snapshot()
            if self._fell_at is None and not self._robot.hoisted and self._snapshot.fallen:
                self._fell_at = self._steps / self._hz
                self._node.get_logger().warning(f'the robot fell at {self._fell_at:.2f} s')
        self._log_reports()
        if self._steps % (self._hz * _PACE_WINDOW_S) == 0:
            self._check_pace()

    def _look(self) -> None:
        """Read the newest command, then the mode: the node announces RUN before it commands."""
        command = self._inbox.command(self._tick_now())
        if command:
            self._watch.consider(command, self._snapshot.joint_pos)
            self._note(command)
        for mode in self._inbox.modes():
            self._mode = mode
            if self._settings.hoist == 'auto' and mode in _ON_HOIST | {Mode.RUN}:
                self._robot.set_hoist(mode in _ON_HOIST)

    def _note(self, command: JointCommand) -> None:
        if self._recorder:
            self._recorder.transport_ns.append(command.transport)
        if not self._settings.lockstep:
            return
        stamped = self._lockstep.command(command.stamp, self._sim_ns)
        if not stamped and not self._unstamped:
            self._watch.reports.append('joint_command is not stamped with simulated time')
        self._unstamped = not stamped

    def _publish(self) -> None:
        """Publish this instant, its /clock last, and record it once a policy tick."""
        now = self._sim_ns
        if self._steps % self._per_sample == 0:
            stamp = now if self._settings.publish_clock else time.time_ns()
            self._sensors.publish(self._snapshot, stamp)
        # In lock-step nobody can act before the boundary, so /clock tells of nothing else.
        if not self._lockstep.engaged or self._lockstep.must_wait(now):
            self._sensors.publish_clock(now)
        if self._recorder and self._steps % self._per_tick == 0:
            self._recorder.add(self._moment(), self._snapshot)

    def _moment(self) -> Moment:
        target = self._target
        return Moment(
            time=self._steps / self._hz,
            mono_ns=time.monotonic_ns(),
            tick_ns=self._tick_now(),
            target=np.full(len(self._robot.joint_names), np.nan) if target is None else target,
            damping=target is None,
            hoisted=self._robot.hoisted,
            running=self._mode in _RUNNING,
        )

    def _wait_for_listeners(self) -> None:
        """Keep time from running while who lives by it does not hear it, within the limit."""
        deadline = time.monotonic() + _LISTENERS_LIMIT_S
        while deaf := self._sensors.deaf(self._settings.clock_listeners):
            if time.monotonic() >= deadline:
                missing = f'not listening to /clock: {", ".join(deaf)}'
                self._node.get_logger().warning(
                    f'after {_LISTENERS_LIMIT_S:g} s {missing}; it runs anyway'
                )
                return
            if self._stopping.wait(_LOOK_PERIOD_S):
                return

    def _wait_for_command(self) -> None:
        """Sleep until a command lets simulated time go on, or for `lockstep_timeout` at most."""
        deadline = time.monotonic() + self._settings.lockstep_timeout
        while self._lockstep.must_wait(self._sim_ns) and not self._stopping.is_set():
            left = deadline - time.monotonic()
            if left <= 0.0:
                self._lockstep.give_up()
                self._pace.restart()
                self._node.get_logger().info('lock-step: no command in time, running freely')
                return
            self._inbox.wait(left)
            with self._lock:
                self._look()

    def _log_reports(self) -> None:
        for line in self._watch.reports:
            self._node.get_logger().info(line)
        self._watch.reports.clear()

    def _check_pace(self) -> None:
        """Warn where the machine did not keep up with real time over the last seconds."""
        now, last = time.monotonic_ns(), self._pace_checked_ns
        self._pace_checked_ns = now
        factor = _PACE_WINDOW_S / ((now - last) * 1e-9)
        if factor < _SLOW and not self._lockstep.engaged:
            self._node.get_logger().warning(
                f'too slow: real-time factor {factor:.2f}; in lock-step the others wait for it'
            )

    def _on_hoist(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if self._settings.hoist == 'none':
            response.message = 'there is no hoist (hoist: none)'
            return response
        with self._lock:
            self._robot.set_hoist(request.data)
        response.success = True
        response.message = 'held by the hoist' if request.data else 'let go'
        return response

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            self._robot.reset()
            on_hoist = self._settings.hoist != 'none' and self._mode not in _RUNNING
            self._robot.set_hoist(on_hoist)
            self._snapshot = self._robot.snapshot()
        response.success = True
        response.message = f'at the default pose, {"on" if on_hoist else "off"} the hoist'
        return response

    def _on_push(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        angle = self._rng.uniform(-math.pi, math.pi)
        speed = self._settings.push_speed
        with self._lock:
            if self._robot.hoisted:
                response.message = 'on the hoist: a push would move nothing'
                return response
            self._robot.push(speed * np.array([math.cos(angle), math.sin(angle)]))
        response.success = True
        response.message = f'pushed by {speed:g} m/s towards {math.degrees(angle):.0f} deg'
        return response
