"""Renders the bring-up for `ros2 launch`: arguments, processes and how a walk ends."""

import sys
from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import Event, LaunchContext
from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    LogInfo,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit, OnShutdown
from launch.events import matches_action
from launch.events.process import ProcessExited, ShutdownProcess
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.substitutions import ExecutableInPackage

from g1_policy_node.bringup import (
    Options,
    ProcessSpec,
    Table,
    choices,
    command_line,
    default_text,
    descriptions,
    kinds,
    processes,
    read_options,
    simulator,
    write_parameters,
)
from g1_policy_node.bringup import replay as replay_processes
from g1_policy_node.isaac_python import train_command
from g1_policy_node.paths import PACKAGE
from g1_policy_node.run_folder import create_run_folder, write_plan
from g1_policy_node.training.options import INTERRUPTED, TrainOptions
from g1_policy_node.types import UserError

_SIMULATED = ('sim', 'isaac_python')
WALK = tuple(item.name for item in fields(Options))
REAL = tuple(name for name in WALK if name not in (*_SIMULATED, 'lockstep', 'use_sim_time'))
"""The options that mean something with a real robot."""

REAL_DEFAULTS = {'auto_run': 'false', 'cmd_source': 'false', 'duration': '0.0'}
"""What differs there: the operator asks for RUN, and somebody else for velocities."""

SIM = (
    'sim', 'isaac_python', 'policy', 'lockstep', 'use_sim_time', 'params_file', 'namespace',
    'log_level', 'run_dir',
)  # fmt: skip
"""The options that mean something to the simulator alone."""

ISAAC_PYTHON = 'isaac_python'
"""The option of a launch file for the Python to train in: ROS's own has no Isaac Lab."""

REPLAY = (
    'policy',
    'device',
    'devices',
    'autostart',
    'auto_run',
    'use_sim_time',
    'params_file',
    'namespace',
    'log_level',
    'run_dir',
)
"""The options that mean something to a router behind a tape."""

GRACE = {'sigterm_timeout': '3', 'sigkill_timeout': '2'}


def declare(names: Collection[str], table: Table = Options, **defaults: str) -> list[Action]:
    """Return launch arguments of options of a table, some with a default of their own."""
    meaning = descriptions(table)
    return [
        DeclareLaunchArgument(
            name,
            default_value=defaults.get(name, default_text(name, table)),
            description=meaning[name],
            choices=list(choices(name, table)) or None,
        )
        for name in names
    ]


def walk(context: LaunchContext) -> list[Action]:
    """Return the processes of a walk; the first to end ends it, and a report follows."""
    return _walk(_options(context, WALK, 'walk'))


def real(context: LaunchContext) -> list[Action]:
    """Return the processes of a walk of the real robot, which ends as any other."""
    options = _options(context, REAL, 'real', sim='none')
    if not options.interface:
        raise RuntimeError('interface: name the network interface to the robot')
    return _walk(options)


def _walk(options: Options) -> list[Action]:
    specs = processes(options)
    actions = _start(options, specs)
    ending = Ending(actions, options.run_dir)
    return [
        *actions,
        *(_gamepad(options) if options.joy else []),
        RegisterEventHandler(OnProcessExit(on_exit=ending.on_exit)),
        RegisterEventHandler(OnShutdown(on_shutdown=ending.on_shutdown)),
    ]


def sim(context: LaunchContext) -> list[Action]:
    """Return the simulator alone; launch ends with it."""
    options = _options(context, SIM, 'sim')
    if options.sim == 'none':
        raise RuntimeError('sim: none is no simulator to start')
    [action] = _start(options, [simulator(options)])
    shutdown = OnProcessExit(
        target_action=action, on_exit=[Shutdown(reason='the simulator ended')]
    )
    return [action, RegisterEventHandler(shutdown)]


def train(context: LaunchContext) -> list[Action]:
    """Return a training run; launch ends with it, and fails where it failed."""
    names = kinds(TrainOptions)
    texts = {name: LaunchConfiguration(name).perform(context) for name in names}
    python = LaunchConfiguration(ISAAC_PYTHON).perform(context)
    try:
        options: TrainOptions = read_options(texts, TrainOptions)
        command, environment = train_command(python, options.arguments())
    except UserError as error:
        raise RuntimeError(str(error)) from None
    action = ExecuteProcess(
        cmd=command,
        additional_env=dict(environment),
        output='screen',
        sigterm_timeout='60',
        sigkill_timeout='10',
    )

    def ended(event: ProcessExited, _: LaunchContext) -> list[Action]:
        if event.returncode not in (0, INTERRUPTED):
            raise RuntimeError(f'training ended with code {event.returncode}')
        return [Shutdown(reason='training is over')]

    return [action, RegisterEventHandler(OnProcessExit(target_action=action, on_exit=ended))]


def declare_replay() -> list[Action]:
    """Return the arguments of the player itself."""
    flags = ['true', 'false', 'True', 'False']
    return [
        DeclareLaunchArgument('bag', description='a rosbag2 folder or file'),
        DeclareLaunchArgument('rate', default_value='1.0', description='times original speed'),
        DeclareLaunchArgument(
            'loop', default_value='false', description='begin again at the end', choices=flags
        ),
    ]


def replay(context: LaunchContext) -> list[Action]:
    """Return a router and a tape in place of its robot; launch ends with the tape.

    The tape gives the time where the router is to follow /clock (`use_sim_time`).
    """
    options = _options(context, REPLAY, 'replay')
    bag, rate, loop = (
        LaunchConfiguration(name).perform(context) for name in ('bag', 'rate', 'loop')
    )
    player = ['--rate', rate]
    player += ['--clock'] if options.use_sim_time else []
    player += ['--loop'] if loop.lower() == 'true' else []
    actions = _start(options, replay_processes(options, bag, player))
    over = OnProcessExit(target_action=actions[-1], on_exit=_tape_over)
    return [*actions, RegisterEventHandler(over)]


def _tape_over(event: ProcessExited, context: LaunchContext) -> list[Action]:
    if event.returncode != 0:
        # The one way to make `ros2 launch` itself exit non-zero.
        raise RuntimeError('the tape was not replayed as recorded')
    return [Shutdown(reason='the tape is over')]


class Ending:
    """Stops the rest once one process has ended, then merges their evidence."""

    def __init__(self, actions: Sequence[Action], run_dir: str) -> None:
        self._running = list(actions)
        self._run_dir = run_dir
        self._report = ExecuteProcess(
            cmd=[ExecutableInPackage('g1-policy', PACKAGE), 'report', run_dir], output='screen'
        )

    def on_exit(self, event: ProcessExited, context: LaunchContext) -> list[Action] | None:
        """Return what follows from this process's end."""
        if event.action is self._report:
            if event.returncode != 0:
                # The one way to make `ros2 launch` itself exit non-zero.
                raise RuntimeError('the walk was not accepted')
            return [Shutdown(reason='the walk is over')]
        if event.action not in self._running:
            return None
        self._running.remove(event.action)
        if not self._running:
            return [self._report]
        # In turn, so that the simulator outlives the router, which would take it for lost.
        stop = ShutdownProcess(process_matcher=matches_action(self._running[-1]))
        return [EmitEvent(event=stop)]

    def on_shutdown(self, event: Event, context: LaunchContext) -> list[Action]:
        """Return a hint where launch was stopped before the report: it starts nothing now."""
        if not self._running:
            return []
        return [LogInfo(msg=f'to merge and show this run: g1-policy report {self._run_dir}')]


def _options(context: LaunchContext, names: Collection[str], what: str, **fixed: str) -> Options:
    texts = {name: LaunchConfiguration(name).perform(context) for name in names} | fixed
    try:
        options = read_options(texts)
        return replace(options, run_dir=str(create_run_folder(options.run_dir, what)))
    except UserError as error:
        # launch shows an exception's text and exits non-zero.
        raise RuntimeError(str(error)) from None


def _start(options: Options, specs: Sequence[ProcessSpec]) -> list[Action]:
    write_parameters(specs)
    write_plan(options, specs, sys.argv)
    return [_action(spec) for spec in specs]


def _gamepad(options: Options) -> list[Action]:
    """Return the driver of the gamepad, which is no package of ours."""
    try:
        get_package_prefix('joy')
    except PackageNotFoundError:
        return [LogInfo(msg='joy: joy_node is not installed; start a publisher of joy yourself')]
    return [Node(package='joy', executable='joy_node', namespace=options.namespace or None)]


def _action(spec: ProcessSpec) -> Action:
    common: dict[str, Any] = {
        'output': 'both',
        'additional_env': dict(spec.environment),
        **GRACE,
    }
    if spec.python:
        return ExecuteProcess(cmd=command_line(spec), **common)
    if not spec.node:
        executable = ExecutableInPackage(spec.executable, PACKAGE)
        return ExecuteProcess(cmd=[executable, *spec.arguments], **common)
    return Node(
        package=PACKAGE,
        executable=spec.executable,
        name=spec.node,
        namespace=spec.namespace or None,
        parameters=[str(path) for path in spec.parameter_files],
        ros_arguments=['--log-level', spec.log_level],
        **common,
    )
