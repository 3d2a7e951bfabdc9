"""The mode and its reason: one place that remembers them through every lifecycle transition."""

from collections.abc import Callable

from g1_policy_node.types import Mode

MEANINGS = {
    Mode.INACTIVE: 'off: the node is not configured or not active',
    Mode.WAITING: 'waits for sensors; commands nothing',
    Mode.RAMP: 'moves slowly to the start pose',
    Mode.READY: 'holds the start pose until asked to run',
    Mode.RUN: 'the policy moves the robot',
    Mode.HOLD: 'something is wrong: the last safe target stays for a moment',
    Mode.DAMP: 'the motors only brake, until somebody resets',
}
"""What each mode means, for people."""


class ModeLatch:
    """Holds the mode; `on_change(mode, reason)` is told of every change of either.

    DAMP is left only by `unlatch`, whoever asks for anything else.
    """

    def __init__(self, on_change: Callable[[Mode, str], None]) -> None:
        self.mode = Mode.INACTIVE
        self.reason = 'not configured'
        self._on_change = on_change

    def enter(self, mode: Mode, reason: str) -> None:
        """Go to `mode`; in DAMP nothing but a new reason to damp is taken."""
        if self.mode is not Mode.DAMP or mode is Mode.DAMP:
            self._set(mode, reason)

    def unlatch(self, mode: Mode, reason: str) -> None:
        """Leave DAMP for `mode`, because the operator said so."""
        self._set(mode, reason)

    def _set(self, mode: Mode, reason: str) -> None:
        if (mode, reason) != (self.mode, self.reason):
            self.mode, self.reason = mode, reason
            self._on_change(mode, reason)
