"""The bring-up, once, as plain data: the options, and the processes they call for.

The launch files and `g1-policy walk` both read this; neither knows a process of its own.
"""

import math
import re
import sys
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from g1_policy_node.isaac_python import isaac_python, python_environment
from g1_policy_node.paths import PACKAGE, find_data
from g1_policy_node.types import UserError

DEFAULT_PARAMETERS = 'config/rl_g1_walk.yaml'
Value = str | int | float | bool | list[str]

_NAMESPACE = re.compile(r'(/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*)?')
ONE_THREAD = {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'}
"""More threads only add jitter to a network of one row, and to the physics beside it."""


def option(default: Value, description: str) -> Any:
    """Return a field of a table of options: its default and what a user is told about it."""
    return field(default=default, metadata={'description': description})


@dataclass(frozen=True)
class Options:
    """What a user can choose; the command line and the launch files are made from this table.

    Where `policy`, `device` or `devices` is empty, the parameter file decides.
    """

    sim: Literal['mujoco', 'isaac', 'none'] = option('mujoco', 'simulator to start, or none')
    isaac_python: str = option('', 'Python that has Isaac Lab; empty: this one or .venv-train')
    interface: str = option('', 'network interface to the real robot; starts the bridge')
    policy: str = option('', 'bundle: a folder or a name; empty: as in params_file')
    device: str = option('', 'where the network runs: cpu, cuda:0 ...; empty: as in params_file')
    devices: str = option('', 'devices to prepare: auto, or a list such as cpu,cuda:0')
    vx: float = option(0.5, 'forward velocity, m/s')
    vy: float = option(0.0, 'velocity to the left, m/s')
    wz: float = option(0.0, 'yaw rate to the left, rad/s')
    duration: float = option(20.0, 'seconds of RUN; 0, or with view or joy: until stopped')
    script: str = option('', 'YAML list of {t, vx, vy, wz} to play in place of vx, vy, wz')
    view: bool = option(False, 'show the robot in a browser; its sliders are the command')
    joy: bool = option(False, 'a gamepad is the command; launch also starts joy_node')
    cmd_source: bool = option(True, 'publish cmd_vel; false: a teleop of your own does')
    autostart: bool = option(True, 'configure and activate the node')
    auto_run: bool = option(True, 'enter RUN as soon as the robot is READY')
    lockstep: bool = option(False, 'simulator and node wait for each other, in simulated time')
    use_sim_time: bool = option(False, 'take time from /clock (always so in lock-step)')
    record: bool = option(False, 'record a tape of the topics, as rosbag2')
    storage: Literal['mcap', 'sqlite3'] = option('mcap', 'storage of the tape')
    params_file: str = option('', f'ROS parameter file; empty: {DEFAULT_PARAMETERS}')
    namespace: str = option('', 'namespace of every node')
    log_level: Literal['debug', 'info', 'warn', 'error', 'fatal'] = option('info', 'log level')
    run_dir: str = option('', 'folder for the evidence; empty: a new one under runs/')

    def __post_init__(self) -> None:
        """Refuse what no process could make sense of; UserError says which option and why."""
        if self.interface and self.sim != 'none':
            raise UserError('interface: a bridge and a simulator would both be the robot')
        if self.duration < 0:
            raise UserError(f'duration: {self.duration:g} s is negative')
        if self.lockstep and self.sim == 'none':
            raise UserError('lockstep: needs a simulator, but sim is none')
        if self.script and self.sender != 'cmd_source':
            raise UserError(f'script: the sender of cmd_vel is {self.sender}, see view and joy')
        if not _NAMESPACE.fullmatch(self.namespace):
            raise UserError(f'namespace: {self.namespace!r} is not a ROS namespace')
        for name in ('params_file', 'script'):
            path = getattr(self, name)
            if path and not Path(path).is_file():
                raise UserError(f'{name}: no file {path}')
        if any(not item for item in self.devices.split(',')) and self.devices:
            raise UserError(f'devices: {self.devices!r} has an empty entry')

    @property
    def sender(self) -> str:
        """The one executable that publishes cmd_vel; empty: none that is started here."""
        if self.joy:
            return 'joy_teleop'
        if not self.cmd_source:
            return ''
        return 'g1_view' if self.view else 'cmd_source'


Table = type[Any]
"""A dataclass whose fields are options: Options here, TrainOptions in training/options.py."""


def kinds(table: Table = Options) -> Mapping[str, Any]:
    """Return the type of every option of a table."""
    return typing.get_type_hints(table)


def descriptions(table: Table = Options) -> dict[str, str]:
    """Return what every option of a table means."""
    return {item.name: str(item.metadata['description']) for item in fields(table)}


KINDS = kinds()
DESCRIPTIONS = descriptions()


def choices(name: str, table: Table = Options) -> tuple[str, ...]:
    """Return the values an option can take, as text; empty where there is no finite list."""
    kind = kinds(table)[name]
    return ('true', 'false', 'True', 'False') if kind is bool else typing.get_args(kind)


def default_text(name: str, table: Table = Options) -> str:
    """Return an option's default as a user would type it."""
    default = next(item.default for item in fields(table) if item.name == name)
    return str(default).lower() if isinstance(default, bool) else str(default)


def read_option(name: str, text: str, table: Table = Options) -> Value:
    """Turn what a user typed into the option's value; UserError says what was expected."""
    kind, allowed = kinds(table)[name], choices(name, table)
    if allowed and text not in allowed:
        shown = ['true', 'false'] if kind is bool else allowed
        raise UserError(f'{name}: {text!r} is none of {", ".join(shown)}')
    if kind is bool:
        return text.lower() == 'true'
    if kind not in (int, float):
        return text
    try:
        number: int | float = kind(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        whole = 'whole ' if kind is int else ''
        raise UserError(f'{name}: expected a {whole}number, got {text!r}')
    return number


def read_options(texts: Mapping[str, str], table: Table = Options) -> Any:
    """Turn typed texts by option name into a table; what is not given keeps its default."""
    return table(**{name: read_option(name, text, table) for name, text in texts.items()})


@dataclass(frozen=True)
class ProcessSpec:
    """One process of a run: ROS node `node` (empty: no ROS) from `module`, as `executable`.

    `parameter_files` in order, the later wins; the last one holds `parameters`, see
    `write_parameters`. `environment` is added to the process's own. `python` runs it; empty: the
    Python of whoever starts it.
    """

    executable: str
    module: str
    node: str = ''
    namespace: str = ''
    log_level: str = 'info'
    arguments: tuple[str, ...] = ()
    parameters: Mapping[str, Value] = field(default_factory=dict)
    parameter_files: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    python: str = ''


def processes(options: Options) -> tuple[ProcessSpec, ...]:
    """Return what a walk starts, in this order; `options.run_dir` is the run's own folder."""
    others = [_router(options)]
    if options.sender == 'cmd_source':
        others.append(_command_source(options))
    if options.view:
        others.append(_view(options))
    if options.joy:
        others.append(_node(options, 'joy_teleop', 'joy_teleop', 'joy_teleop', {}))
    others.append(ProcessSpec('floor', f'{PACKAGE}.tools.floor', arguments=(options.run_dir,)))
    # First to start, so it is stopped last.
    specs = [_recorder(options)] if options.record else []
    if options.sim != 'none':
        followers = [spec.node for spec in others if spec.parameters.get('use_sim_time')]
        specs.append(simulator(options, followers))
    if options.interface:
        specs.append(bridge(options))
    return (*specs, *others)


def simulator(options: Options, clock_listeners: Sequence[str] = ()) -> ProcessSpec:
    """Return the simulator. Its /clock begins once the nodes `clock_listeners` listen to it."""
    parameters = _given(options, 'run_dir', 'policy')
    parameters['publish_clock'] = options.lockstep or options.use_sim_time
    parameters['lockstep'] = options.lockstep
    if clock_listeners:
        parameters['clock_listeners'] = list(clock_listeners)
    name = f'{options.sim}_sim'
    spec = _node(options, name, f'sim.{name}', 'g1_sim', parameters)
    if options.sim != 'isaac':
        return spec
    python = isaac_python(options.isaac_python)
    environment = {**spec.environment, **python_environment(python)}
    return replace(spec, python=python, environment=environment)


def replay(options: Options, bag: str, player: Sequence[str]) -> tuple[ProcessSpec, ...]:
    """Return the router and a player of `bag` behind it; `player` are the player's arguments."""
    arguments = ('tape', 'replay', str(Path(bag).resolve()), *player)
    if options.namespace:
        arguments += ('--namespace', options.namespace)
    return _router(options), ProcessSpec('g1-policy', f'{PACKAGE}.cli', arguments=arguments)


def bridge(options: Options) -> ProcessSpec:
    """Return the bridge to the real robot."""
    parameters = _given(options, 'policy', 'interface')
    return _node(options, 'unitree_bridge', 'bridge.unitree_bridge', 'g1_bridge', parameters)


def _router(options: Options) -> ProcessSpec:
    parameters = _given(options, 'run_dir', 'policy', 'device', 'autostart', 'auto_run')
    parameters['use_sim_time'] = options.use_sim_time or options.lockstep
    if options.lockstep:
        # The simulator waits for the node but not for the command source, which may be late.
        parameters['cmd_timeout'] = 10.0
    if options.devices:
        listed = options.devices.split(',')
        parameters['devices'] = 'auto' if listed == ['auto'] else listed
    return _node(options, 'policy_node', 'node', 'g1_policy', parameters)


def _command_source(options: Options) -> ProcessSpec:
    parameters = _given(options, 'run_dir', 'vx', 'vy', 'wz', 'duration')
    parameters['use_sim_time'] = options.use_sim_time or options.lockstep
    if options.script:
        parameters['script'] = str(Path(options.script).resolve())
    return _node(options, 'cmd_source', 'cmd_source', 'g1_cmd', parameters)


def _recorder(options: Options) -> ProcessSpec:
    parameters = _given(options, 'run_dir', 'policy', 'storage')
    return _node(options, 'tape_recorder', 'tools.tape.recorder', 'g1_tape', parameters)


def _view(options: Options) -> ProcessSpec:
    parameters = _given(options, 'run_dir', 'policy', 'vx', 'vy', 'wz')
    parameters['drive'] = options.sender == 'g1_view'
    return _node(options, 'g1_view', 'view.g1_view', 'g1_view', parameters)


def _given(options: Options, *names: str) -> dict[str, Value]:
    """Return the options that are not left to the parameter file."""
    return {name: getattr(options, name) for name in names if getattr(options, name) != ''}


def _node(
    options: Options, executable: str, module: str, node: str, parameters: dict[str, Value]
) -> ProcessSpec:
    given = Path(options.params_file).resolve() if options.params_file else None
    return ProcessSpec(
        executable,
        f'{PACKAGE}.{module}',
        node,
        options.namespace,
        options.log_level,
        parameters=parameters,
        parameter_files=(
            given or find_data(DEFAULT_PARAMETERS),
            Path(options.run_dir, 'params', f'{node}.yaml'),
        ),
        environment=ONE_THREAD,
    )


def write_parameters(specs: Sequence[ProcessSpec]) -> None:
    """Write each node's parameters to the last of its parameter files.

    A file, as `-p` loses to a parameter file's section for that very node.
    """
    for spec in specs:
        if spec.parameter_files:
            path = spec.parameter_files[-1]
            path.parent.mkdir(parents=True, exist_ok=True)
            section = {f'/**/{spec.node}': {'ros__parameters': dict(spec.parameters)}}
            path.write_text(yaml.safe_dump(section, sort_keys=False))


def command_line(spec: ProcessSpec) -> list[str]:
    """Return the argv that runs a process, ROS distribution or not."""
    line = [spec.python or sys.executable, '-m', spec.module, *spec.arguments]
    if not spec.node:
        return line
    line += ['--ros-args', '-r', f'__node:={spec.node}', '--log-level', spec.log_level]
    if spec.namespace:
        line += ['-r', f'__ns:=/{spec.namespace.lstrip("/")}']
    for path in spec.parameter_files:
        line += ['--params-file', str(path)]
    return line
