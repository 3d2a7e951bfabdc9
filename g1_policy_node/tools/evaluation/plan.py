"""What an evaluation runs: config/evaluation.yaml as data, and the cases it stands for."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from g1_policy_node.schema import build, read_yaml
from g1_policy_node.types import UserError

Command = tuple[float, float, float]

STRAIGHT, TURNING, MORE = COMMANDS = ('straight', 'turning', 'more')
"""The groups of undisturbed cases."""

UNCHANGED = 'none'
"""The condition of a case in which nothing is changed."""


@dataclass(frozen=True)
class Condition:
    """What differs from the robot of the contract.

    `friction` of every contact, `trunk_mass` as a factor, `delay` of the targets in s, and
    whether the sensors are noisy.
    """

    friction: float = 1.0
    trunk_mass: float = 1.0
    delay: float = 0.0
    noise: bool = False


@dataclass(frozen=True)
class Kicks:
    """Kicks of each of `speeds` m/s on `seeds` seeds, `apart` s from one to the next."""

    command: Command
    speeds: tuple[float, ...]
    seeds: int
    apart: tuple[float, float]


@dataclass(frozen=True)
class Noise:
    """Largest error of a reading, either way: rad/s, unit vector, rad, rad/s, m/s."""

    ang_vel: float
    gravity: float
    joint_pos: float
    joint_vel: float
    lin_vel: float


@dataclass(frozen=True)
class Plan:
    """The evaluation, as config/evaluation.yaml describes it; a bar is a limit by figure."""

    seconds: float
    settling: float
    straight: tuple[Command, ...]
    turning: tuple[Command, ...]
    more: tuple[Command, ...]
    gait: Command
    kicks: Kicks
    condition_kick: float
    conditions: Mapping[str, Condition]
    noise: Noise
    bars: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """The hash of what is run, bars left out: figures of equal plans compare."""
        data = dataclasses.asdict(self)
        del data['bars']
        text = json.dumps(data, sort_keys=True, separators=(',', ':'))
        return hashlib.sha256(text.encode()).hexdigest()


class Case(NamedTuple):
    """One run: `group` is one of COMMANDS, or 'kick'; `kick` is in m/s, 0 for none."""

    group: str
    command: Command
    condition: str = UNCHANGED
    kick: float = 0.0
    seed: int = 0


def load_plan(path: Path) -> Plan:
    """Read and check a plan; UserError says what is wrong with it."""
    plan: Plan = build(Plan, read_yaml(path), str(path))
    if not 0.0 < plan.settling < plan.seconds:
        raise UserError(f'{path}: settling {plan.settling} s is not within {plan.seconds} s')
    if plan.gait not in plan.straight:
        raise UserError(f'{path}: gait {list(plan.gait)} is none of the straight commands')
    if UNCHANGED in plan.conditions:
        raise UserError(f'{path}: a condition must not be named {UNCHANGED}')
    if plan.kicks.seeds < 1 or not 0.0 < plan.kicks.apart[0] <= plan.kicks.apart[1]:
        raise UserError(f'{path}: kicks need seeds and a time apart')
    return plan


def quick(plan: Plan) -> Plan:
    """Return a small part of a plan, which shows that everything runs and judges nothing."""
    return dataclasses.replace(
        plan,
        seconds=6.0,
        straight=tuple(dict.fromkeys((plan.gait, *plan.straight[-3:-1]))),
        turning=plan.turning[:1],
        more=plan.more[:1],
        kicks=dataclasses.replace(plan.kicks, speeds=plan.kicks.speeds[-1:], seeds=2),
        conditions=dict(list(plan.conditions.items())[-1:]),
        bars={},
    )


def cases(plan: Plan) -> Iterator[Case]:
    """Return every case of a plan, in the order of the report."""
    groups = {STRAIGHT: plan.straight, TURNING: plan.turning}
    for group, commands in {**groups, MORE: plan.more}.items():
        for command in commands:
            yield Case(group, command)
    for speed in plan.kicks.speeds:
        for seed in range(plan.kicks.seeds):
            yield Case('kick', plan.kicks.command, kick=speed, seed=seed)
    for name in plan.conditions:
        for group, commands in groups.items():
            for command in commands:
                yield Case(group, command, name)
        for seed in range(plan.kicks.seeds):
            yield Case('kick', plan.gait, name, plan.condition_kick, seed)
