"""What a soak looks at: every command by the limits, every trip by its cause, the memory. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from g1_policy_node.contract import Contract
from g1_policy_node.driver import ENGAGE_WITHIN
from g1_policy_node.safety import SafetyLimits
from g1_policy_node.types import Array

S = 1_000_000_000
SILENCE_NS = S // 10
"""A driver damps after it, so that the next command starts anew."""
MAX_MB_PER_MINUTE = 0.167
"""5 MB in half an hour: less than half of what a single row of 160 bytes kept per tick takes."""
AFTER_NS = 3 * S // 10
"""How long after a fault's end its trips may come."""


class CommandWatch:
    """Judges each joint_command: names, finite, within the limits, within the rate, no jump."""

    def __init__(self, contract: Contract, limits: SafetyLimits) -> None:
        low, high = contract.per_joint('position_limits').T
        self._names = list(contract.joint_names)
        self._low, self._high = low - limits.position_margin, high + limits.position_margin
        self._step = limits.max_target_rate * contract.step_dt
        self._last: tuple[int, int, Array] | None = None  # sequence, sent, target
        self.commands = 0
        self.unsafe: list[str] = []

    def look(
        self, sequence: int, sent: int, names: list[str], target: Array, measured: Array
    ) -> None:
        """Take a command with its counter and when it was sent, ns; `measured` (N,) rad.

        Not when it was received: beside a second sender that may be long after.
        """
        self.commands += 1
        last, self._last = self._last, (sequence, sent, target)
        if names != self._names or target.shape != self._low.shape:
            self._last = None
            self.unsafe.append(f'command {sequence}: {len(names)} names, {len(target)} positions')
        elif not np.isfinite(target).all():
            self._last = None
            self.unsafe.append(
                f'command {sequence}: {self._first(~np.isfinite(target))} not finite'
            )
        elif (out := (target < self._low - 1e-9) | (target > self._high + 1e-9)).any():
            self.unsafe.append(f'command {sequence}: {self._first(out)} out of its limits')
        else:
            self._look_back(sequence, sent, target, measured, last)

    def _look_back(
        self,
        sequence: int,
        sent: int,
        target: Array,
        measured: Array,
        last: tuple[int, int, Array] | None,
    ) -> None:
        silence = SILENCE_NS + 1 if last is None else sent - last[1]
        if last is None or (silence > SILENCE_NS and sequence == last[0] + 1):
            away = np.abs(target - measured)
            if float(away.max()) > ENGAGE_WITHIN:
                joint = self._first(away > ENGAGE_WITHIN)
                after = f'after {silence / S:.2f} s of silence'
                self.unsafe.append(f'command {sequence}: starts with a jump of {joint} {after}')
            return
        steps = max(sequence - last[0], 1)  # the newest one is taken: some may not be seen
        fast = np.abs(target - last[2]) > steps * self._step + 1e-9
        if fast.any():
            self.unsafe.append(f'command {sequence}: {self._first(fast)} faster than the limit')

    def _first(self, which: Array) -> str:
        return self._names[int(np.argmax(which))]


@dataclass
class Episode:
    """A fault and when it was on, monotonic ns (`ended` 0 while it is); what it may trip."""

    fault: str
    layers: frozenset[str]
    began: int
    ended: int = 0


def unexplained(layer: str, at: int, episodes: Sequence[Episode]) -> str:
    """Return why a trip of `layer` at `at`, monotonic ns, has no cause; '' if it has one."""
    for episode in reversed(episodes):
        if episode.began <= at:
            if episode.ended and at > episode.ended + AFTER_NS:
                return (
                    f'a trip of {layer} {(at - episode.ended) / S:.1f} s after {episode.fault!r}'
                )
            return '' if layer in episode.layers else f'{episode.fault!r} tripped {layer}'
    return f'a trip of {layer} before any fault'


def mb_per_minute(minutes: Sequence[float], megabytes: Sequence[float]) -> float:
    """Return the slope of the straight line through the samples."""
    return float(np.polyfit(minutes, megabytes, 1)[0])
