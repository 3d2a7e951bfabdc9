"""The managed node `g1_policy`: lifecycle, services, parameters and diagnostics.

All of it runs on the main thread, but for the ticks (loop.py) and the e-stop (estop.py).
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.logging import get_logging_directory
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from g1_policy_node.black_box import BlackBox
from g1_policy_node.clock import SimulatedClock, SteadyClock, TickClock
from g1_policy_node.devices import check_device_name
from g1_policy_node.diagnostics import diagnostic_array, tell_device_failure
from g1_policy_node.estop import PromptTrigger
from g1_policy_node.evidence import RunPart, run_facts, trip_facts
from g1_policy_node.loop import ControlLoop
from g1_policy_node.modes import ModeLatch
from g1_policy_node.newest import LATCHED_QOS
from g1_policy_node.parameters import declare_parameters, read_settings
from g1_policy_node.paths import find_data
from g1_policy_node.prepared import Prepared, Settings, prepare
from g1_policy_node.ros_io import RouterIo
from g1_policy_node.ros_process import BAD_USAGE, run_ros_process
from g1_policy_node.router import Answer, Router
from g1_policy_node.timing import Recorder
from g1_policy_node.types import Mode, UserError

STOP_POLL_S = 0.1


class PolicyNode(LifecycleNode):
    """The router as a managed node. Raises UserError for a parameter that cannot be."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('g1_policy', **node_options)
        declare_parameters(self, find_data('config/safety.yaml'))
        self._started = f'{time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())}-{os.getpid()}'
        self._transitions: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        simulated = self.get_parameter('use_sim_time').value
        self._tick_clock: TickClock = SimulatedClock(self) if simulated else SteadyClock()
        self._mode_publisher = self.create_publisher(String, '~/mode', LATCHED_QOS)
        self.modes = ModeLatch(self._on_mode)
        self._on_mode(self.modes.mode, self.modes.reason)
        self._prepared: Prepared | None = None
        self._loop: ControlLoop | None = None
        self._io: RouterIo | None = None
        self._recorder = Recorder()
        self._part: RunPart | None = None
        self._settings: Settings | None = None
        self._diagnostics = self.create_publisher(
            DiagnosticArray, '/diagnostics', QoSProfile(depth=10)
        )
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0, self._once_a_second, clock=steady)
        self.create_service(SetBool, '~/run', self._serve_run)
        self._estop = PromptTrigger(self, '~/estop', self._serve_estop)
        self.create_service(Trigger, '~/reset', self._serve_reset)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._use_parameters)

    # --- lifecycle ----------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Load, check and warm everything that a tick will use; refuse with one line."""
        try:
            self._configure()
        except UserError as error:
            self.get_logger().error(f'not configured: {error}')
            self._drop()
            return TransitionCallbackReturn.FAILURE
        self.modes.enter(Mode.INACTIVE, 'configured, not active')
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start ticking, in WAITING (or in DAMP, where that is latched)."""
        assert self._prepared and self._io and self._settings
        result = super().on_activate(state)
        router, contract = self._prepared.router, self._prepared.bundle.contract
        router.activate()
        folder = self._trip_folder()
        if (run_dir := self._settings.run_dir) and not self._part:
            self._part = RunPart(run_dir, self._started, self._recorder, self._warn)
        self._loop = ControlLoop(
            router,
            self._io,
            self._tick_clock,
            self._recorder,
            BlackBox(folder, contract.step_dt, partial(trip_facts, self._prepared), self._warn),
            round(contract.step_dt * 1e9),
            self._lock,
            self._warn,
            self._settings.realtime,
        )
        self._loop.start()
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop ticking; silence means damp."""
        self._stop('deactivated')
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the bundle and the settings."""
        self._drop()
        self.modes.enter(Mode.INACTIVE, 'not configured')
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop ticking, for good."""
        self._stop('shut down')
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop ticking after an error in a transition."""
        self._stop('error in a transition')
        return super().on_error(state)

    def _configure(self) -> None:
        self._settings = settings = read_settings(self)
        self._prepared = prepared = prepare(settings, self.modes)
        contract = prepared.bundle.contract
        self._io = RouterIo(self, contract, settings.cmd_vel_stamped)
        for device, difference in prepared.actors.differences.items():
            self.get_logger().info(f'{device}: prepared, golden actions within {difference:.1e}')
        self.get_logger().info(f'{prepared.title()}; {settings.realtime}')

    def _stop(self, reason: str) -> None:
        if not (self._loop and self._prepared):
            return
        loop, self._loop = self._loop, None
        loop.stop()
        self._prepared.router.deactivate(reason)
        if self._part:
            facts = run_facts(self._prepared, self._recorder, loop)
            facts['use_sim_time'] = self.get_parameter('use_sim_time').value
            self._part.write({**facts, 'transitions': self._transitions})

    def _drop(self) -> None:
        if self._io:
            self._io.destroy(self)
        if self._part:
            self._part.close()
        self._prepared = self._io = self._settings = self._part = None

    # --- services -----------------------------------------------------------------------------

    def _serve_run(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        return self._answer(response, lambda router: router.request_run(request.data))

    def _serve_estop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            self.modes.enter(Mode.DAMP, 'e-stop requested')
        response.success, response.message = True, 'damped; ~/reset leaves DAMP'
        return response

    def _serve_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._loop is None and self.modes.mode is Mode.DAMP:
            self.modes.unlatch(Mode.INACTIVE, 'reset while not active')
            response.success, response.message = True, 'reset; not active'
            return response
        return self._answer(response, lambda router: router.reset(self._tick_clock.now()))

    def _answer(self, response: Any, ask: Callable[[Router], Answer]) -> Any:
        if self._loop is None or self._prepared is None:
            answer = Answer(False, f'refused in {self.modes.mode.value}: {self.modes.reason}')
        else:
            with self._lock:
                answer = ask(self._prepared.router)
        response.success, response.message = answer
        if answer.done:
            self.get_logger().info(f'request: {answer.message}')
        else:  # rclpy ties a line of code to one severity
            self.get_logger().warning(f'request: {answer.message}')
        return response

    # --- parameters ---------------------------------------------------------------------------

    def _check_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Refuse what cannot be, with the reason; a new device is compared here, off the tick."""
        try:
            for parameter in parameters:
                self._check_parameter(parameter)
        except UserError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _check_parameter(self, parameter: Parameter) -> None:
        if parameter.name == 'use_sim_time':
            raise UserError('use_sim_time is fixed once the node has started')
        if parameter.name == 'policy' and self._prepared:
            raise UserError('policy is fixed while configured: clean up first')
        if parameter.name == 'device':
            check_device_name(parameter.value)
            if self._prepared:
                in_use = self._prepared.router.policy.actor.device
                self._prepared.actors.recheck(parameter.value, in_use)

    def _use_parameters(self, parameters: list[Parameter]) -> None:
        for parameter in parameters:
            if parameter.name == 'device' and self._prepared:
                actor = self._prepared.actors.get(parameter.value)
                with self._lock:
                    self._prepared.router.policy.use(actor)
                self._prepared.log.switched(self._tick_clock.now(), parameter.value)
                self.get_logger().info(f'the actor runs on {parameter.value}')

    # --- telling ------------------------------------------------------------------------------

    def _on_mode(self, mode: Mode, reason: str) -> None:
        now = self._tick_clock.now()
        self._transitions.append({'tick_ns': now, 'mode': mode.value, 'reason': reason})
        self._mode_publisher.publish(String(data=f'{mode.value}: {reason}'))
        self.get_logger().info(f'{mode.value}: {reason}')

    def _warn(self, text: str) -> None:
        self.get_logger().warning(text)

    def _once_a_second(self) -> None:
        loop, prepared, io = self._loop, self._prepared, self._io
        if not (loop and prepared and io):
            return
        prepared.router.inputs.senders = io.senders(self)
        if self.modes.mode is Mode.WAITING:
            prepared.router.inputs.hints = io.hints(self)
        tell_device_failure(self, prepared, self._tick_clock.now())
        self._diagnostics.publish(
            diagnostic_array(
                self.get_clock().now(),
                self.get_fully_qualified_name(),
                self.modes,
                self._recorder,
                loop.misses,
                prepared,
                bool(self.get_parameter('use_sim_time').value),
            )
        )

    def _trip_folder(self) -> Path:
        """Return where the black box writes: in the run's folder, or beside ROS's own logs."""
        if self._settings and (run_dir := self._settings.run_dir):
            return run_dir / 'trips'
        return Path(get_logging_directory()) / 'g1_policy_trips' / self._started

    def destroy_node(self) -> None:
        """End the threads first: they use what goes."""
        self._estop.close()
        self._drop()
        super().destroy_node()


def _serve(executor: SingleThreadedExecutor, node: PolicyNode) -> None:
    """Serve one request; an error in it must not take the robot's router down."""
    try:
        executor.spin_once(timeout_sec=STOP_POLL_S)
    except Exception as error:
        node.get_logger().error(f'error while serving a request: {error!r}')


def _run(stop: threading.Event) -> int:
    node = PolicyNode()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        if node.get_parameter('autostart').value:
            if node.trigger_configure() is not TransitionCallbackReturn.SUCCESS:
                return BAD_USAGE
            node.trigger_activate()
        while not stop.is_set():
            _serve(executor, node)
        node.trigger_shutdown()
        return 0
    finally:
        node.destroy_node()


def main() -> None:
    """Run the node until SIGINT or SIGTERM; exit code 2 for a mistake in what was given."""
    sys.exit(run_ros_process('g1_policy', _run))


if __name__ == '__main__':
    main()
