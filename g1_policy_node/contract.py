"""The contract: everything about a policy that its weights do not say.

Read with `yaml.safe_load`, kept in full precision, and checked against itself before anything is
built from it. Joint data are maps from name to value; order exists in `joint_names` alone.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml

from g1_policy_node.joints import describe_mismatch
from g1_policy_node.schema import build, read_yaml
from g1_policy_node.types import Array, UserError

SCHEMA_VERSION = 1

_SHA256 = re.compile(r'[0-9a-f]{64}')


@dataclass(frozen=True)
class JointContract:
    """One joint as the policy was trained with it: rad, N m/rad, N m s/rad, kg m^2, N m."""

    default_position: float
    stiffness: float
    damping: float
    armature: float
    position_limits: tuple[float, float]
    velocity_limit: float
    effort_limit_training: float
    effort_limit_hardware: float


@dataclass(frozen=True)
class ActionContract:
    """target = offset + scale * clip(action); per joint by name; `clip` bounds the raw action."""

    scale: Mapping[str, float]
    offset: Mapping[str, float]
    clip: tuple[float, float] | None = None


@dataclass(frozen=True)
class ObservationTerm:
    """One row of the observation table: `size` values a frame, `history` frames.

    A frame is clip(value) * scale; training adds uniform noise of +-`noise` before the scale.
    History is kept per term, in `history_order`; the first frame fills all of it.
    """

    term: str
    size: int
    scale: float | tuple[float, ...] = 1.0
    clip: tuple[float, float] | None = None
    noise: float = 0.0
    history: int = 1
    history_order: Literal['oldest_first', 'newest_first'] = 'oldest_first'
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """Values this term contributes to the observation."""
        return self.size * self.history


@dataclass(frozen=True)
class GaitContract:
    """The integer gait clock, in ticks: foot i is at (k + offsets[i]) mod period of period.

    A foot is meant to be down while that number is below `contact`. Where the norm of the
    velocity command is below `stand_below` the robot stands: sin = cos = 0, contact = 1.
    """

    period: int
    offsets: tuple[int, ...]
    contact: int
    stand_below: float


@dataclass(frozen=True)
class CommandContract:
    """Ranges of the velocity command the policy was trained for: m/s, m/s, rad/s."""

    lin_vel_x: tuple[float, float]
    lin_vel_y: tuple[float, float]
    ang_vel_z: tuple[float, float]


@dataclass(frozen=True)
class NetworkContract:
    """An MLP: layer sizes from observation to action, and the activation between them."""

    sizes: tuple[int, ...]
    activation: Literal['elu', 'relu', 'tanh']


@dataclass(frozen=True)
class Contract:
    """A whole policy contract. Build it with `load_contract` or `contract_from_mapping`."""

    schema_version: int
    name: str
    step_dt: float
    imu_frame: str
    joint_names: tuple[str, ...]
    joints: Mapping[str, JointContract]
    action: ActionContract
    observations: tuple[ObservationTerm, ...]
    commands: CommandContract
    normalizer: Literal['none', 'required']
    network: NetworkContract
    gait: GaitContract | None = None
    weights_sha256: str | None = None

    def per_joint(self, name: str) -> Array:
        """Return a JointContract field of every joint, (N,) or (N, 2), in policy order."""
        return np.array([getattr(self.joints[j], name) for j in self.joint_names], dtype=float)

    @property
    def command_limits(self) -> Array:
        """Lower and upper command, (3, 2), in the order vx, vy, yaw rate."""
        c = self.commands
        return np.array([c.lin_vel_x, c.lin_vel_y, c.ang_vel_z], dtype=float)

    @property
    def observation_size(self) -> int:
        """Width of the observation: the sum over the terms, history included."""
        return sum(term.width for term in self.observations)

    @property
    def sha256(self) -> str:
        """`contract_sha256`: the hash of the contract as canonical JSON (sorted, no spaces)."""
        return hashlib.sha256(canonical_json(self).encode()).hexdigest()

    def to_mapping(self) -> dict[str, Any]:
        """Return the contract as plain data, ready for YAML or JSON."""
        data: dict[str, Any] = _plain(dataclasses.asdict(self))
        return data

    def table(self) -> str:
        """Return the observation as text: one line per term with its place, scale and history."""
        rows, start = [], 0
        for t in self.observations:
            scale = f'[{len(t.scale)} values]' if isinstance(t.scale, tuple) else f'{t.scale:g}'
            past = f'  x {t.history} frames, {t.history_order}' if t.history > 1 else ''
            place = f'{start}-{start + t.width - 1}'
            rows.append(f'{place:>9}  {t.term:<18} {t.size:>3}  scale {scale}{past}')
            start += t.width
        return '\n'.join([*rows, f'{"total":>9}  {"":<18} {start:>3}'])


def load_contract(path: Path) -> Contract:
    """Read a contract file; UserError names the file and everything wrong with it."""
    return contract_from_mapping(read_yaml(path), str(path))


def contract_from_mapping(data: object, where: str = 'contract') -> Contract:
    """Build a contract from plain data and check it; UserError lists every difference."""
    contract: Contract = build(Contract, data, where)
    problems = _problems(contract)
    if problems:
        raise UserError(f'{where}: ' + '; '.join(problems))
    return contract


def dump_contract(contract: Contract, path: Path) -> None:
    """Write the contract as YAML in full precision; reading it back gives an equal contract."""
    text = yaml.safe_dump(contract.to_mapping(), sort_keys=False, width=100)
    path.write_text(text, encoding='utf-8')


def canonical_json(contract: Contract) -> str:
    """Return the one text of a contract that its hash is taken over."""
    return json.dumps(
        contract.to_mapping(), sort_keys=True, separators=(',', ':'), allow_nan=False
    )


def _problems(c: Contract) -> list[str]:
    """Check everything that needs more than one field, or a range."""
    out = []
    if c.schema_version != SCHEMA_VERSION:
        out.append(f'schema_version {c.schema_version}, this package reads {SCHEMA_VERSION}')
    if not 0.001 <= c.step_dt <= 1.0:
        out.append(f'step_dt {c.step_dt} s is outside 0.001 to 1')
    out += [f'{key} is empty' for key in ('name', 'imu_frame') if not getattr(c, key).strip()]
    if c.weights_sha256 is not None and not _SHA256.fullmatch(c.weights_sha256):
        out.append(f'weights_sha256 {c.weights_sha256!r:.80} is not 64 lower case hex digits')
    for key in ('lin_vel_x', 'lin_vel_y', 'ang_vel_z'):
        lower, upper = getattr(c.commands, key)
        if not lower <= 0.0 <= upper:
            out.append(f'commands.{key} {lower} to {upper} does not contain 0')
    return out + _joint_problems(c) + _term_problems(c) + _gait_problems(c) + _size_problems(c)


def _joint_problems(c: Contract) -> list[str]:
    out = []
    for label, names in (
        ('joint_names', c.joint_names),
        ('joints', c.joints),
        ('action.scale', c.action.scale),
        ('action.offset', c.action.offset),
    ):
        wrong = describe_mismatch(list(names), list(dict.fromkeys(c.joint_names)))
        if wrong:
            out.append(f'{label}: {wrong}')
    for name, joint in c.joints.items():
        lower, upper = joint.position_limits
        if not lower <= joint.default_position <= upper:
            out.append(f'{name}: default {joint.default_position} is outside {lower} to {upper}')
        out += [
            f'{name}: {key} is negative'
            for key in ('stiffness', 'damping', 'armature')
            if getattr(joint, key) < 0
        ]
        out += [
            f'{name}: {key} is not positive'
            for key in ('velocity_limit', 'effort_limit_training', 'effort_limit_hardware')
            if getattr(joint, key) <= 0
        ]
    return out + _clip_problems('action', c.action.clip)


def _term_problems(c: Contract) -> list[str]:
    out = []
    for term in c.observations:
        where = f'observation {term.term}'
        if term.size < 1 or term.history < 1:
            out.append(f'{where}: size and history must be at least 1')
        if isinstance(term.scale, tuple) and len(term.scale) != term.size:
            out.append(f'{where}: {len(term.scale)} scales for {term.size} values')
        if term.noise < 0:
            out.append(f'{where}: noise is negative')
        out += _clip_problems(where, term.clip)
    return out


def _clip_problems(where: str, clip: tuple[float, float] | None) -> list[str]:
    if clip and clip[0] >= clip[1]:
        return [f'{where}: clip {clip[0]} to {clip[1]} is empty']
    return []


def _gait_problems(c: Contract) -> list[str]:
    gait = c.gait
    if gait is None:
        return []
    if gait.period < 1:
        return [f'gait: period {gait.period} is less than one tick']
    out = []
    if not 0 <= gait.contact <= gait.period:
        out.append(f'gait: contact {gait.contact} is not within the period {gait.period}')
    if not all(0 <= offset < gait.period for offset in gait.offsets):
        out.append(f'gait: offsets {list(gait.offsets)} are not all in 0 to {gait.period - 1}')
    if gait.stand_below < 0:
        out.append('gait: stand_below is negative')
    return out


def _size_problems(c: Contract) -> list[str]:
    sizes = c.network.sizes
    if len(sizes) < 2 or min(sizes) < 1:
        return [f'network.sizes {list(sizes)} is no network']
    out = []
    if sizes[-1] != len(c.joint_names):
        out.append(f'{len(c.joint_names)} joints, but the network gives {sizes[-1]} actions')
    if sizes[0] != c.observation_size:  # last: it ends with a table
        out.append(
            f'the observation terms sum to {c.observation_size}, the network takes {sizes[0]}:\n'
            + c.table()
        )
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
