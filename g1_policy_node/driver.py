"""What a driver does with commands: follow the newest good one, and damp in silence.

ROS-free, and the same for every driver: time comes in as ns on the tick clock.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from g1_policy_node.joints import JointOrder
from g1_policy_node.streams import SenderWatch
from g1_policy_node.types import Array, Fault

ENGAGE_WITHIN = 0.2
"""Rad: damping ends only for a target this close to the measured pose on every joint."""

HASH_DIGITS = 16
"""How much of contract_sha256 a command carries as its frame_id."""


class JointCommand(NamedTuple):
    """A joint_command as it came: `position` (n,) rad for `names` in any order.

    `stamp` is the header's, ns of ROS time; `received` ns on the tick clock; `transport` the
    DDS receive minus source time in ns; `sequence` counts its sender's messages, 0 if unknown.
    """

    names: tuple[str, ...]
    position: Array
    frame_id: str
    stamp: int
    received: int
    transport: int
    sequence: int = 0


class CommandWatch:
    """Decides at each physics step what the motors do: follow a target, or damp.

    Starts damping. `timeout_ns` of silence damps. A refused command counts as silence, by reason
    in `rejected`; `reports` collects one line per transition and per first refusal of a kind.
    Only the sender that is followed is heard, until it is silent for `timeout_ns`.
    """

    def __init__(
        self, joint_names: Sequence[str], contract_sha256: str, timeout_ns: int = 100_000_000
    ) -> None:
        self._order = JointOrder(joint_names)
        self._hash = contract_sha256[:HASH_DIGITS]
        self._timeout = timeout_ns
        self._accepted_at = 0
        self._sender = SenderWatch(timeout_ns)
        self._target: Array | None = None
        self.received = 0
        self.rejected: Counter[str] = Counter()
        self.reports: list[str] = []

    @property
    def damping(self) -> bool:
        """Whether the motors damp."""
        return self._target is None

    def consider(self, command: JointCommand, joint_pos: Array) -> None:
        """Take or refuse a command, given the measured pose (N,) rad in driver order."""
        self.received += 1
        checked = self._check(command)
        if not isinstance(checked, Fault) and self._target is None:
            checked = self._engage(checked, joint_pos)
        if isinstance(checked, Fault):
            self.rejected[checked.name] += 1
            if self.rejected[checked.name] == 1:
                self.reports.append(f'joint_command refused: {checked.reason}')
            return
        if self._target is None:
            self.reports.append('following joint_command')
        self._target = checked
        self._accepted_at = command.received

    def target(self, now: int) -> Array | None:
        """Return the target (N,) rad to hold for the next step, or None to damp."""
        if self._target is not None and now - self._accepted_at > self._timeout:
            self._target = None
            self.reports.append(f'damping: no joint_command for {self._timeout / 1e6:.0f} ms')
        return self._target

    def release(self) -> None:
        """Damp until a command is engaged anew."""
        self._target = None

    def _check(self, command: JointCommand) -> Array | Fault:
        if self._sender.is_second(command.sequence, command.received):
            return Fault('second_sender', 'somebody else sends it while one sender is followed')
        if command.frame_id != self._hash:
            reason = f'it is for contract {command.frame_id!r}, this robot has {self._hash!r}'
            return Fault('contract', reason)
        index = self._order.index(command.names)
        if index is None:
            return Fault('joints', self._order.mismatch)
        if len(command.position) != len(command.names):
            reason = f'{len(command.names)} names but {len(command.position)} positions'
            return Fault('length', reason)
        target = command.position[index]
        if not np.all(np.isfinite(target)):
            name = self._order.names[int(np.flatnonzero(~np.isfinite(target))[0])]
            return Fault('not_finite', f'the target of {name} is not finite')
        return target

    def _engage(self, target: Array, joint_pos: Array) -> Array | Fault:
        gap = np.abs(target - joint_pos)
        worst = int(np.argmax(gap))
        if gap[worst] <= ENGAGE_WITHIN:
            return target
        away = f'{self._order.names[worst]} is {gap[worst]:.2f} rad from its target'
        return Fault('far', f'damping goes on, since {away} (at most {ENGAGE_WITHIN})')
