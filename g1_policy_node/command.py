"""The velocity command: newest wins, and without a fresh one it ramps to zero."""

import numpy as np

from g1_policy_node.types import Array, CommandSample

RAMP_S = 0.5
"""Seconds from the full command to zero, once it is no longer wanted or fresh."""


class CommandFollower:
    """Follows `cmd_vel` within the trained ranges; times are ns on the tick clock.

    `limits` is (3, 2). A command that is not finite, or stamped before one that is still fresh,
    is dropped and counted in `counters`; one out of range is clipped and counted. `enabled`
    False ramps to zero as a stale command does.
    """

    def __init__(self, limits: Array, timeout_ns: int) -> None:
        self._limits = limits
        self.timeout_ns = timeout_ns
        self.counters = dict.fromkeys(
            ('command_not_finite', 'command_order', 'command_clipped', 'command_stale'), 0
        )
        self.enabled = True
        self.reset()

    def reset(self) -> None:
        """Forget every command: the next one starts from zero."""
        self._seen: CommandSample | None = None
        self._received: int | None = None
        self._header = 0
        self._wanted = np.zeros(3)
        self._share = 0.0
        self._stale = False

    def age(self, now: int) -> int | None:
        """Return the age in ns of the newest good command, None where none has come."""
        return None if self._received is None else now - self._received

    def take(self, sample: CommandSample | None) -> None:
        """Take the newest sample; one seen before changes nothing."""
        if sample is None or sample is self._seen:
            return
        self._seen = sample
        if not np.all(np.isfinite(sample.velocity)):
            self.counters['command_not_finite'] += 1
            return
        stamps = sample.stamps
        fresh = self._received is not None and stamps.received - self._received <= self.timeout_ns
        if fresh and 0 < stamps.header < self._header:
            self.counters['command_order'] += 1
            return
        self._received, self._header = stamps.received, stamps.header
        self._wanted = np.clip(sample.velocity, self._limits[:, 0], self._limits[:, 1])
        self.counters['command_clipped'] += int(np.any(self._wanted != sample.velocity))

    def follow(self, now: int, elapsed_ns: int) -> Array:
        """Return the command (3,) for this tick, `elapsed_ns` after the previous one."""
        age = self.age(now)
        fresh = age is not None and age <= self.timeout_ns
        if self._received is not None and not fresh and not self._stale:
            self.counters['command_stale'] += 1
        self._stale = not fresh
        if fresh and self.enabled:
            self._share = 1.0
        else:
            self._share = max(0.0, self._share - elapsed_ns * 1e-9 / RAMP_S)
        return self._wanted * self._share
