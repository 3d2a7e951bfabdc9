"""The router's parameters: declared once, with description, range and default."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from g1_policy_node.prepared import Settings
from g1_policy_node.realtime import Realtime, read_cpus
from g1_policy_node.safety import SafetyLimits, load_limits
from g1_policy_node.types import UserError

MAX_FIFO_PRIORITY = 98
"""99 is the kernel's own."""


class Spec(NamedTuple):
    """A parameter: its default, which is of its type, and how it is described."""

    default: Any
    description: str
    read_only: bool = True
    range: tuple[float, float] | None = None


_SPECS = {
    'policy': Spec('g1_walk', 'bundle: a folder, or a name under policies/', False),
    'device': Spec('cpu', 'where the actor runs: cpu or cuda:N; settable while running', False),
    'devices': Spec('auto', 'devices to prepare: auto, or a list of cpu and cuda:N'),
    'autostart': Spec(True, 'configure and activate at start'),
    'auto_run': Spec(False, 'enter RUN from READY without waiting for ~/run'),
    'state_timeout': Spec(0.06, 's; age at which a sensor is stale', range=(0.001, 1.0)),
    'cmd_timeout': Spec(0.5, 's; age at which cmd_vel ramps to zero', range=(0.02, 10.0)),
    'hold_timeout': Spec(0.25, 's; how long HOLD may last before DAMP', range=(0.0, 0.3)),
    'imu_frames': Spec([''], "frame_ids of imu/data to accept beside the contract's"),
    'cmd_vel_stamped': Spec(False, 'cmd_vel is TwistStamped rather than Twist'),
    'run_dir': Spec('', 'folder for timing.npz and node.json; empty: keep none'),
    'follow_arrivals': Spec(
        True, 'start a tick just after a sample of the joints; not under use_sim_time'
    ),
    'prewarm': Spec(0.0, 's before a slot to run the network once for nothing', range=(0.0, 0.01)),
    'fifo_priority': Spec(0, 'SCHED_FIFO priority of the control thread; 0: as usual'),
    'cpus': Spec('', 'CPUs of the control thread, such as 2,3; empty: any'),
    'lock_memory': Spec(False, 'keep every page of the process in memory'),
}


def declare_parameters(node: Node, limits_file: Path) -> None:
    """Declare every parameter; UserError names one of a wrong type, value or name."""
    specs = dict(_SPECS)
    for name, entry in load_limits(limits_file).items():
        description = f'{entry.meaning} (source: {entry.source})'
        specs[f'safety.{name}'] = Spec(entry.value, description, True, (0.0, 1e3))
    declare(node, specs)


def declare(node: Node, specs: Mapping[str, Spec]) -> None:
    """Declare these parameters; UserError names one of a wrong type, value or name."""
    # rclpy has no public way to see overrides of parameters that nobody declares.
    known = {*specs, 'use_sim_time', 'start_type_description_service'}
    for name in node._parameter_overrides:
        if name not in known and not name.startswith('qos_overrides.'):
            raise UserError(f'parameter {name} does not exist (there are: {", ".join(specs)})')
    for name, spec in specs.items():
        _declare(node, name, spec)
    node.add_pre_set_parameters_callback(lambda given: [_as_declared(p, specs) for p in given])


def read_settings(node: Node) -> Settings:
    """Read the parameters as they stand."""

    def value(name: str) -> Any:
        return node.get_parameter(name).value

    def ns(name: str) -> int:
        return round(value(name) * 1e9)

    limits = {n: value(f'safety.{n}') for n in SafetyLimits.__dataclass_fields__}
    devices = value('devices')
    return Settings(
        policy=value('policy'),
        device=value('device'),
        devices=(devices,) if isinstance(devices, str) else tuple(devices),
        auto_run=value('auto_run'),
        state_timeout_ns=ns('state_timeout'),
        cmd_timeout_ns=ns('cmd_timeout'),
        hold_timeout_ns=ns('hold_timeout'),
        limits=SafetyLimits(**limits),
        imu_frames=tuple(frame for frame in value('imu_frames') if frame),
        cmd_vel_stamped=value('cmd_vel_stamped'),
        run_dir=Path(value('run_dir')) if value('run_dir') else None,
        realtime=_realtime(value),
    )


def _realtime(value: Callable[[str], Any]) -> Realtime:
    priority, prewarm_ms = value('fifo_priority'), value('prewarm') * 1e3
    if not 0 <= priority <= MAX_FIFO_PRIORITY:
        raise UserError(f'fifo_priority: {priority} is not in 0 to {MAX_FIFO_PRIORITY}')
    if prewarm_ms and value('use_sim_time'):
        raise UserError('prewarm: needs steady time, not use_sim_time')
    return Realtime(
        priority,
        read_cpus(value('cpus')),
        value('lock_memory'),
        prewarm_ms,
        value('follow_arrivals') and not value('use_sim_time'),
    )


def _declare(node: Node, name: str, spec: Spec) -> None:
    override = node._parameter_overrides.get(name)
    if override is not None:
        node._parameter_overrides[name] = _as_declared(override, {name: spec})
    # `devices` is a word or a list of words: the one parameter of two types.
    descriptor = ParameterDescriptor(
        description=spec.description, read_only=spec.read_only, dynamic_typing=name == 'devices'
    )
    if spec.range:
        low, high = spec.range
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    try:
        given = node.declare_parameter(name, spec.default, descriptor).value
    except InvalidParameterTypeException:
        raise UserError(
            f'parameter {name}: expected {_kind(spec.default)}, got {override.value!r}'
        ) from None
    except InvalidParameterValueException as error:
        raise UserError(f'parameter {name}: {error}') from None
    if name == 'devices' and not (
        isinstance(given, str)
        or (isinstance(given, Sequence) and all(isinstance(item, str) for item in given))
    ):
        raise UserError(f'parameter devices: expected auto or a list of devices, got {given!r}')


def _as_declared(parameter: Parameter, specs: Mapping[str, Spec]) -> Parameter:
    """Take an int for a double, as a person types it."""
    spec = specs.get(parameter.name)
    whole = parameter.type_ is Parameter.Type.INTEGER
    if spec and whole and isinstance(spec.default, float):
        return Parameter(parameter.name, Parameter.Type.DOUBLE, float(parameter.value))
    return parameter


def _kind(default: Any) -> str:
    kinds = {bool: 'true or false', int: 'a whole number', float: 'a number', str: 'a text'}
    return kinds.get(type(default), 'a list of texts')
