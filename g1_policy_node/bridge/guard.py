"""What the writer does with the motors: follow the newest good command, or damp.

ROS-free and DDS-free: time comes in as monotonic ns, messages as arrays in SDK order. The rules
of every driver (silence damps, re-engage close by, contract hash) are CommandWatch's.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from g1_policy_node.bridge.hardware import ACCEPTABLE, revision_faults
from g1_policy_node.contract import Contract
from g1_policy_node.driver import CommandWatch, JointCommand
from g1_policy_node.joints import G1_JOINT_NAMES
from g1_policy_node.types import Array

STATE_TIMEOUT_NS = 100_000_000
"""Silence of LowState after which the robot is not followed: as long as a command's."""

BAD_CRC_STREAK = 5
"""Damaged messages in a row that are a fault; a single one is left out and counted."""

OVER_TEMPERATURE = 90.0
"""Degrees C of a motor's shell or winding at which it is damped.

A choice, not Unitree's figure: public code stops between 85 and 120.
"""

TICK_SETTLES_NS = 1_000_000_000
"""How long `tick` must have risen after it went back, before the robot is followed (again)."""

JOINTS = len(G1_JOINT_NAMES)


class Measured(NamedTuple):
    """What the guard looks at in a LowState; arrays (29,) in SDK order.

    `position` rad; `temperature` (29, 2) degrees C; `motorstate` the motors' fault words, 0 if
    all is well; `mode_machine` and `tick` (ms of the robot's clock, 32 bits) as they came.
    """

    position: Array
    temperature: Array
    motorstate: Array
    mode_machine: int
    tick: int


class Guard:
    """Decides at each write. A cause to damp is latched until `reset`, silence is not.

    `accept` names findings of hardware.ACCEPTABLE that the operator takes the blame for.
    `reports` collects one line per transition and refusal.
    """

    def __init__(
        self, contract: Contract, command_timeout_ns: int, accept: Collection[str] = ()
    ) -> None:
        self._contract = contract
        self._accept = frozenset(accept) & frozenset(ACCEPTABLE)
        self._watch = CommandWatch(G1_JOINT_NAMES, contract.sha256, command_timeout_ns)
        self._timeout = command_timeout_ns
        self._measured: Measured | None = None
        self._state_at = 0
        self._tick_fell_at: int | None = None
        self._faults: dict[int, list[str]] = {}
        self._bad_crcs = 0
        self.bad_crcs = 0
        self._rivals: list[str] | None = None
        self.latched = ''
        self._following = False
        self.reports: list[str] = []

    @property
    def following(self) -> bool:
        """Whether the motors follow a target."""
        return self._following

    @property
    def refused(self) -> int:
        """How many commands were refused."""
        return sum(self._watch.rejected.values())

    def state(self, measured: Measured, now: int) -> None:
        """Take an undamaged LowState."""
        self._bad_crcs = 0
        last, self._measured = self._measured, measured
        risen = 1 if last is None else _risen(last.tick, measured.tick)
        if risen < 0:
            self._tick_fell_at = now
        # The same state sent again says nothing new: its age goes on.
        if risen:
            self._state_at = now
        if last and self._following and measured.mode_machine != last.mode_machine:
            self._latch(f'mode_machine was {last.mode_machine}, now {measured.mode_machine}')
        if cause := self._motor_cause(measured):
            self._latch(cause)

    def damaged_state(self) -> None:
        """Count a LowState whose checksum is wrong."""
        self.bad_crcs += 1
        self._bad_crcs += 1
        if self._bad_crcs >= BAD_CRC_STREAK:
            self._latch(self._crc_cause())

    def rivals(self, senders: list[str]) -> None:
        """Take who else sends LowCmd; until the first call nothing is followed."""
        self._rivals = senders
        if senders and self._following:
            self._latch(self._rival_cause())

    def estop(self, who: str) -> None:
        """Damp until `reset`."""
        self._latch(f'estop by {who}')

    def reset(self, now: int) -> str:
        """Unlatch; return why not, or ''."""
        lasting = self._lasting(now)
        if not lasting:
            self.latched = ''
        return lasting

    def command(self, command: JointCommand, now: int) -> None:
        """Take a joint_command, or refuse it."""
        if self._measured is None or self.blocked(now):
            return
        self._watch.consider(command, self._measured.position)

    def blocked(self, now: int) -> str:
        """Return why no command is followed now, or ''."""
        return self.latched or self._lasting(now) or self._unfit()

    def target(self, now: int) -> Array | None:
        """Return the target (29,) rad in SDK order to hold now, or None to damp."""
        if self._following and (lasting := self._lasting(now)):
            self._latch(lasting)
        blocked = self.blocked(now)
        target = None if blocked else self._watch.target(now)
        if blocked:
            # What was followed before must be engaged anew, from where the robot is then.
            self._watch.release()
        self._following = target is not None
        self.reports += self._watch.reports
        self._watch.reports.clear()
        return target

    def _latch(self, cause: str) -> None:
        if not self.latched:
            self.latched = cause
            self.reports.append(f'damping: {cause}')

    def _lasting(self, now: int) -> str:
        """Return what is wrong at this moment and not a matter of the contract."""
        if self._measured is None:
            return 'no LowState yet'
        silent = now - self._state_at
        if silent > STATE_TIMEOUT_NS:
            return f'no new LowState for {silent / 1e6:.0f} ms'
        if self._bad_crcs >= BAD_CRC_STREAK:
            return self._crc_cause()
        if self._tick_fell_at is not None and now - self._tick_fell_at < TICK_SETTLES_NS:
            return 'tick of LowState went back: the robot restarted, or somebody else sends it'
        if self._rivals is None:
            return 'listening for other senders of LowCmd'
        if self._rivals:
            return self._rival_cause()
        return self._motor_cause(self._measured)

    def _unfit(self) -> str:
        assert self._measured is not None
        machine = self._measured.mode_machine
        if machine not in self._faults:
            found = revision_faults(self._contract, machine)
            self._faults[machine] = [f.reason for f in found if f.name not in self._accept]
        return '; '.join(self._faults[machine])

    def _crc_cause(self) -> str:
        return f'{self._bad_crcs} LowState in a row with a wrong CRC'

    def _rival_cause(self) -> str:
        return f'somebody else sends LowCmd: {", ".join(self._rivals or [])}'

    @staticmethod
    def _motor_cause(measured: Measured) -> str:
        if not np.all(np.isfinite(measured.position)):
            i = int(np.flatnonzero(~np.isfinite(measured.position))[0])
            return f'{G1_JOINT_NAMES[i]} is at no finite position'
        if measured.motorstate.any():
            i = int(np.flatnonzero(measured.motorstate)[0])
            return f'{G1_JOINT_NAMES[i]} reports fault 0x{int(measured.motorstate[i]):x}'
        if measured.temperature.max() >= OVER_TEMPERATURE:
            i = int(measured.temperature.argmax()) // 2
            return f'{G1_JOINT_NAMES[i]} is at {measured.temperature.max():.0f} C'
        return ''


def _risen(last: int, tick: int) -> int:
    """Return by how much a 32-bit counter that may run over has risen, ms."""
    return (tick - last + 2**31) % 2**32 - 2**31
