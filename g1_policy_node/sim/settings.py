"""The parameters of a simulator's node: declared once, read once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node

from g1_policy_node.ros_process import KINDS
from g1_policy_node.types import UserError

HOISTS = ('auto', 'manual', 'none')
BASE_HZ = 200
"""Physics steps per second, as in training; a higher sensor rate raises it."""

_KINDS = {**KINDS, list: 'a list of texts'}


class _Row(NamedTuple):
    default: Any
    description: str
    lower: float | None = None
    upper: float | None = None


PARAMETERS: dict[str, _Row] = {
    'policy': _Row('g1_walk', 'policy bundle: a folder, or a name under policies/'),
    'rate': _Row(200, 'sensor messages per second; above 200 the physics keeps up', 50, 1000),
    'hoist': _Row('auto', 'auto: follows the mode of the policy node; manual: ~/hoist; or none'),
    'publish_clock': _Row(False, 'publish /clock, and stamp everything with simulated time'),
    'clock_listeners': _Row([''], 'nodes of this namespace that /clock waits for at the start'),
    'lockstep': _Row(False, 'advance one tick per command; needs publish_clock'),
    'lockstep_timeout': _Row(1.0, 'longest wait for a command in lock-step, s', 0.01, 60.0),
    'command_timeout': _Row(0.1, 'silence after which the motors damp, s', 0.02, 1.0),
    'push_speed': _Row(0.8, 'velocity that ~/push adds in a random direction, m/s', 0.0, 5.0),
    'seed': _Row(0, 'seed of the random push directions', 0, 2**31 - 1),
    'run_dir': _Row('', 'folder for sim.npz and sim.json; empty: none is written'),
}


@dataclass(frozen=True)
class SimSettings:
    """The parameters, checked; seconds, m/s and Hz as PARAMETERS describes them."""

    policy: str
    rate: int
    hoist: str
    publish_clock: bool
    clock_listeners: tuple[str, ...]
    lockstep: bool
    lockstep_timeout: float
    command_timeout: float
    push_speed: float
    seed: int
    run_dir: Path | None

    @property
    def physics_hz(self) -> int:
        """Physics steps per second."""
        return max(BASE_HZ, self.rate)


def read_settings(node: Node) -> SimSettings:
    """Declare every parameter on the node and return the values; UserError for a wrong one."""
    # rclpy has no public way to see overrides of parameters that nobody declares.
    known = {*PARAMETERS, 'use_sim_time', 'start_type_description_service'}
    for name in node._parameter_overrides:
        if name not in known and not name.startswith('qos_overrides.'):
            there = ', '.join(PARAMETERS)
            raise UserError(f'parameter {name} does not exist (there are: {there})')
    values = {name: _declare(node, name, row) for name, row in PARAMETERS.items()}
    values['run_dir'] = Path(values['run_dir']) if values['run_dir'] else None
    values['clock_listeners'] = tuple(name for name in values['clock_listeners'] if name)
    s = SimSettings(**values)
    if s.hoist not in HOISTS:
        raise UserError(f'parameter hoist: {s.hoist!r} is none of {", ".join(HOISTS)}')
    if s.lockstep and not s.publish_clock:
        raise UserError('parameter lockstep needs publish_clock: it advances simulated time')
    if s.clock_listeners and not s.publish_clock:
        raise UserError('parameter clock_listeners needs publish_clock: they listen to /clock')
    if s.physics_hz % s.rate:
        raise UserError(f'parameter rate: {s.rate} Hz does not divide {BASE_HZ} Hz of physics')
    return s


def steps_per_tick(step_dt: float, physics_hz: int) -> int:
    """Return the whole number of physics steps in a policy tick of `step_dt` s."""
    steps = step_dt * physics_hz
    if steps < 0.5 or abs(steps - round(steps)) > 1e-6:
        tick = f'{step_dt * 1e3:g} ms'
        raise UserError(f'parameter rate: a tick of {tick} is {steps:g} physics steps')
    return round(steps)


def _declare(node: Node, name: str, row: _Row) -> Any:
    """Declare one parameter; an int is taken for a float, nothing else is converted."""
    kind = type(row.default)
    given = node._parameter_overrides.get(name)
    value = row.default if given is None else given.value
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (kind is list and not all(type(v) is str for v in value)):
        raise UserError(f'parameter {name}: expected {_KINDS[kind]}, got {value!r}')
    if row.lower is not None and row.upper is not None and not row.lower <= value <= row.upper:
        raise UserError(f'parameter {name}: {value} is outside {row.lower:g} to {row.upper:g}')
    node.declare_parameter(name, value, _descriptor(row), ignore_override=True)
    return value


def _descriptor(row: _Row) -> ParameterDescriptor:
    d = ParameterDescriptor(description=row.description, read_only=True)
    if row.lower is None or row.upper is None:
        return d
    if type(row.default) is int:
        d.integer_range = [IntegerRange(from_value=int(row.lower), to_value=int(row.upper))]
    else:
        d.floating_point_range = [FloatingPointRange(from_value=row.lower, to_value=row.upper)]
    return d
