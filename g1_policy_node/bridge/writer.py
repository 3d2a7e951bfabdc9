"""The writer: a process without rclpy that sends LowCmd at 500 Hz and owns damping.

It holds the last target and damps by itself, whatever becomes of the node that started it. A
second one stands by: the kernel gives it the first one's lock the moment that one dies.
"""

import contextlib
import fcntl
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from g1_policy_node.bridge.conversion import CommandBuilder, StateReader
from g1_policy_node.bridge.dds import LOW_CMD_TOPIC, LOW_STATE_TOPIC, Network
from g1_policy_node.bridge.guard import Guard
from g1_policy_node.bridge.link import Link, Orders, Report, pack_note, unpack_command
from g1_policy_node.bridge.priority import make_urgent
from g1_policy_node.bridge.tick_clock_fit import TickClockFit
from g1_policy_node.bridge.writer_settings import WriterSettings
from g1_policy_node.bundle import CONTRACT
from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.pacing import RealTimePace
from g1_policy_node.types import UserError

RATE_HZ = 500
LISTEN_NS = 1_000_000_000
"""How long to listen for other senders before the first frame."""

RIVAL_EVERY = 50
"""Cycles between two looks at who else sends: ten a second."""


class Writer:
    """One cycle after another: state in, orders in, command in, a frame out, a report out."""

    def __init__(self, settings: WriterSettings, contract: Contract, network: Network) -> None:
        self._link = Link(settings.descriptors)
        self._network = network
        self._states = network.reader(LOW_STATE_TOPIC)
        self._state = StateReader()
        self._fit = TickClockFit()
        self._builder = CommandBuilder(contract)
        self.guard = Guard(contract, round(settings.command_timeout * 1e9), settings.accept)
        self._listen_until = time.monotonic_ns() + LISTEN_NS
        # Made before its turn comes, as a robot takes a second to notice a new sender.
        self._mark = settings.mark
        self._commands = network.writer(LOW_CMD_TOPIC, settings.mark)
        self._orders = Orders()
        self._answer = ''
        self._note = ('?', b'')
        self._bytes = b''
        self._received = self._age = self._written = self._longest = 0
        self._cycles = self._frames = 0
        self._armed = False
        self._rivals: list[str] | None = None
        self.rebases = 0

    def take_over(self) -> None:
        """Become the one that sends; after a dead writer, damped until somebody resets."""
        before = self._link.report.take()
        if before:
            report = Report.unpack(before)
            orders = self._link.orders.take()
            self._orders = Orders.unpack(orders) if orders else Orders()
            self.guard.estop(f'writer {report.pid} having died')
            # One that never held the robot, beside another sender perhaps, gives no right to it.
            self._armed = report.armed
            if report.armed:
                self._listen_until = 0

    def cycle(self, now: int) -> None:
        """Do everything once; `now` is monotonic ns."""
        self._look(now)
        target = self.guard.target(now)
        self._armed |= target is not None
        if self._received and self._may_send():
            self._commands.write(self._builder.build(target, self._state.measured()))
            self._frames += 1
            if self._written:
                self._longest = max(self._longest, now - self._written)
            self._written = now
        self._cycles += 1
        self._tell(now)

    def _may_send(self) -> bool:
        """Stay silent beside another sender, unless the robot was ours to hold before."""
        return self._armed or self._rivals == []

    def _look(self, now: int) -> None:
        if (data := self._states.newest()) is not None:
            if self._state.load(data):
                self._bytes, self._received = data, now
                self._age = self._fit.age(self._state.tick, now)
                self.guard.state(self._state.measured(), now)
                if self._state.estop_pressed:
                    self.guard.estop('the gamepad')
            else:
                self.guard.damaged_state()
        if self._cycles % RIVAL_EVERY == 0 and now >= self._listen_until:
            self._rivals = self._network.senders(LOW_CMD_TOPIC, self._mark)
            self.guard.rivals(self._rivals)
        if (payload := self._link.orders.take()) is not None:
            self._obey(Orders.unpack(payload), now)
        if (payload := self._link.command.take()) is not None:
            self.guard.command(unpack_command(payload), now)

    def _obey(self, orders: Orders, now: int) -> None:
        if orders.resets > self._orders.resets:
            self._answer = self.guard.reset(now)
        # An estop beside a reset wins.
        if orders.estops > self._orders.estops:
            self.guard.estop('the operator')
        self._orders = orders

    def _tell(self, now: int) -> None:
        cause = '' if self.guard.following else self.guard.blocked(now) or 'no joint_command'
        # A router that saw sensors would ramp while nobody follows yet.
        listening = self._rivals is None
        key = f'{cause}\n{self._answer}'
        if key != self._note[0]:
            self._note = (key, pack_note(cause, self._answer))
        self._link.report.write(
            Report(
                pid=os.getpid(),
                frames=self._frames,
                written=now,
                received=0 if listening else self._received,
                age=self._age,
                following=self.guard.following,
                armed=self._armed,
                bad_crcs=self.guard.bad_crcs,
                refused=self.guard.refused,
                rebases=self.rebases,
                resets=self._orders.resets,
                longest_ns=self._longest,
                state=b'' if listening else self._bytes,
                note=self._note[1],
            ).pack()
        )


def wait_for_turn(domain: int, interface: str) -> int:
    """Wait until no other writer on this host sends there; return the lock, held until death."""
    path = Path(tempfile.gettempdir(), f'g1_bridge-{domain}-{interface}.lock')
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UserError(f'{path}: {error.strerror}; another user runs a bridge?') from None
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def run(settings: WriterSettings, parent: int) -> None:
    """Send until told to leave or orphaned, then damp for `linger` seconds more."""
    contract = load_contract(Path(settings.policy) / CONTRACT)
    # Before the network is made: its threads inherit it.
    if not make_urgent():
        _say('no real-time priority: see docs/BRINGUP.md')
    network = Network(settings.domain, settings.interface)
    writer = Writer(settings, contract, network)
    leaving: list[int] = []

    def on_term(number: int, _frame: object) -> None:
        if not writing:
            sys.exit(0)
        leaving.append(number)

    writing = False
    signal.signal(signal.SIGTERM, on_term)
    lock = wait_for_turn(settings.domain, settings.interface)
    if os.getppid() != parent:
        return
    writing = True
    writer.take_over()
    pace = RealTimePace(10**9 // RATE_HZ)
    until: int | None = None
    while until is None or time.monotonic_ns() < until:
        now = time.monotonic_ns()
        if until is None and (leaving or os.getppid() != parent):
            writer.guard.estop('the bridge leaving' if leaving else 'the node having died')
            until = now + round(settings.linger * 1e9)
        writer.cycle(now)
        for line in writer.guard.reports:
            _say(line)
        writer.guard.reports.clear()
        writer.rebases = pace.rebases
        pace.wait()
    os.close(lock)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # Who read it may have gone; damping goes on.
        print(f'[writer {os.getpid()}] {line}', file=sys.stderr, flush=True)


def main() -> int:
    """Run one writer: `writer SETTINGS PARENT_PID`, started by the bridge alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run(WriterSettings.parse(sys.argv[1]), int(sys.argv[2]))
    except UserError as error:
        _say(str(error))
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
