"""A velocity command over the seconds of RUN, piecewise constant."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from g1_policy_node.schema import build, read_yaml
from g1_policy_node.types import Mode, UserError

Velocity = tuple[float, float, float]

_MOVING = frozenset({Mode.RUN.value, Mode.HOLD.value})


@dataclass(frozen=True)
class Step:
    """From `t` seconds on: vx, vy in m/s and wz in rad/s, in the base frame."""

    t: float
    vx: float = 0.0
    vy: float = 0.0
    wz: float = 0.0


@dataclass(frozen=True)
class Script:
    """Steps in order of time, the first at 0; the last one holds for ever."""

    steps: tuple[Step, ...]

    def velocity(self, t: float) -> Velocity:
        """Return (vx, vy, wz) at `t` seconds, t >= 0."""
        step = self.steps[bisect_right(self.steps, t, key=lambda step: step.t) - 1]
        return step.vx, step.vy, step.wz


def constant(vx: float, vy: float, wz: float) -> Script:
    """Return the script of one velocity."""
    return Script((Step(0.0, vx, vy, wz),))


def load_script(path: Path) -> Script:
    """Read a YAML list of {t, vx, vy, wz}; UserError says what is wrong with it."""
    steps: tuple[Step, ...] = build(tuple[Step, ...], read_yaml(path), str(path))
    if not steps or steps[0].t != 0:
        raise UserError(f'{path}: the first step must be at t: 0')
    for before, after in pairwise(steps):
        if after.t <= before.t:
            raise UserError(f'{path}: t: {after.t:g} comes after t: {before.t:g}')
    return Script(steps)


class Player:
    """Plays a script while the router is in RUN: zero before, over after `duration` s (0: never).

    `exit_code` is None until it is over: 0 after the duration, 1 once RUN ended in DAMP; `ended`
    says why. RUN counts from the first `velocity` asked for in it: `run_seconds` is how long it
    lasted until `last`, the newest `now` (ns) of RUN; None if there was none.
    """

    def __init__(self, script: Script, duration: float) -> None:
        self._script = script
        self.duration = duration
        self.exit_code: int | None = None
        self.ended = 'stopped'
        self.run_seconds = 0.0
        self.last: int | None = None
        self._running = False
        self._run_since: int | None = None

    def hear(self, mode: str) -> None:
        """Take the router's mode, as the text of its `~/mode`."""
        name = mode.partition(':')[0]
        if name == Mode.DAMP.value and self._running:
            self._finish(1, mode)
        elif name == Mode.RUN.value:
            self._running = True
        elif name not in _MOVING:
            self._running, self._run_since = False, None

    def velocity(self, now: int) -> Velocity:
        """Return the command (vx, vy, wz) at this moment."""
        if not self._running:
            return 0.0, 0.0, 0.0
        if self._run_since is None:
            self._run_since = now
        self.last = now
        # Simulated time can jump back; the script does not.
        self.run_seconds = max((now - self._run_since) / 1e9, 0.0)
        if 0 < self.duration <= self.run_seconds:
            self._finish(0, f'{self.duration:g} s of RUN done')
        return self._script.velocity(self.run_seconds)

    @property
    def completed(self) -> bool:
        """Whether it ended as it was meant to; one without a duration ends when it is stopped."""
        return self.exit_code == 0 or (self.exit_code is None and self.duration == 0)

    def _finish(self, exit_code: int, reason: str) -> None:
        if self.exit_code is None:
            self.exit_code, self.ended = exit_code, reason
