"""Whether measurements agree with each other, and whether they still move. Pure.

Each check is fed the good samples of a topic and answers with a figure, so that a healthy
walk's can be printed (bench/healthy_limits.py) next to the limit in config/safety.yaml.
"""

import math

import numpy as np

from g1_policy_node.types import Array, every

S = 1_000_000_000
VELOCITY_TIME_S = 0.25
GRAVITY_TIME_S = 0.5
"""Time constants of the low passes."""
ERROR_CAP = 4.0
"""rad/s; an impact between two samples is an error of many rad/s, but of one sample."""
MAX_GAP_NS = S // 10
"""Samples further apart than this say nothing about the velocity between them."""
STANDARD_GRAVITY = 9.81


class VelocityCheck:
    """Measured joint velocities against the change of the positions, low-passed.

    `over_since` is the time in ns since which some joint has been off by more than `limit`.
    """

    def __init__(self, joints: int, limit: float) -> None:
        self._limit = limit
        self.error = np.zeros(joints)
        self.over_since: int | None = None
        self._last: tuple[Array, Array, int] | None = None

    def update(self, position: Array, velocity: Array, at: int) -> Array:
        """Take a sample (N,) rad, rad/s of the time `at`, ns; return the error (N,) rad/s."""
        last, self._last = self._last, (position, velocity, at)
        if last is None or not 0 < at - last[2] <= MAX_GAP_NS:
            self.error, self.over_since = np.zeros_like(position), None
            return self.error
        dt = (at - last[2]) / S
        error, change = velocity + last[1], position - last[0]
        error *= 0.5
        change /= dt
        error -= change
        np.minimum(np.maximum(error, -ERROR_CAP, out=error), ERROR_CAP, out=error)
        error -= self.error
        error *= min(1.0, dt / VELOCITY_TIME_S)
        error += self.error
        self.error = error
        if every(np.abs(error, out=change) <= self._limit):
            self.over_since = None
        elif self.over_since is None:
            self.over_since = at
        return self.error

    @property
    def over_for(self) -> int:
        """For how many ns, up to the newest sample, some joint has been off."""
        return (
            0 if self.over_since is None or self._last is None else self._last[2] - self.over_since
        )


class GravityCheck:
    """The direction of gravity by orientation against the accelerometer's, low-passed.

    A robot that neither falls nor flies is carried: its mean specific force is 1 g upwards.
    """

    def __init__(self) -> None:
        self.angle = 0.0
        self._mean: list[float] | None = None
        self._last = 0

    def update(self, gravity: Array, lin_acc: Array, at: int) -> float:
        """Take a unit vector, m/s^2 and ns; return the angle between them in rad.

        0 where the mean force is not within half of 1 g: then it shows no direction.
        """
        new = [*gravity.tolist(), *lin_acc.tolist()]
        share = min(1.0, max(0.0, (at - self._last) / S / GRAVITY_TIME_S))
        self._last = at
        old = new if self._mean is None else self._mean
        self._mean = mean = [o + share * (n - o) for o, n in zip(old, new, strict=True)]
        force = math.hypot(*mean[3:])
        if not 0.5 < force / STANDARD_GRAVITY < 1.5:
            self.angle = 0.0
            return self.angle
        along = -sum(g * a for g, a in zip(mean[:3], mean[3:], strict=True))
        length = force * math.hypot(*mean[:3])
        self.angle = math.acos(max(-1.0, min(1.0, along / length))) if length else 0.0
        return self.angle


class FrozenCheck:
    """Since when a field has had the same bits. A robot that balances never stands that still."""

    def __init__(self) -> None:
        self._bits: dict[str, bytes] = {}
        self._since: dict[str, int] = {}

    def update(self, field: str, values: Array, at: int) -> None:
        """Take a field's values of the time `at`, ns."""
        bits = values.tobytes()
        if self._bits.get(field) != bits:
            self._bits[field], self._since[field] = bits, at

    def longest(self, now: int) -> tuple[str, int]:
        """Return the field that has not changed for longest, and for how many ns."""
        if not self._since:
            return '', 0
        field = min(self._since, key=self._since.__getitem__)
        return field, now - self._since[field]
