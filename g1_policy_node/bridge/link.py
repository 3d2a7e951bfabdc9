"""What passes between the writer process and the node, and how it is packed into slots."""

import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from g1_policy_node.bridge.messages import LOW_STATE
from g1_policy_node.bridge.slot import Slot
from g1_policy_node.driver import JointCommand

_COMMAND = struct.Struct('<qqqqHH')
_ORDERS = struct.Struct('<II')
_REPORT = struct.Struct('<IQqqqBBIIIII')


class Link:
    """The three slots. `descriptors` go to the writer process, which makes a Link of them."""

    def __init__(self, descriptors: tuple[int, ...] = ()) -> None:
        self.command, self.orders, self.report = (
            (Slot(), Slot(), Slot()) if not descriptors else map(Slot, descriptors)
        )

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The file descriptors of the slots' memory."""
        return tuple(slot.descriptor for slot in (self.command, self.orders, self.report))


def pack_command(command: JointCommand) -> bytes:
    """Return a command as it came, unchecked: all checks are the writer's."""
    frame, names = command.frame_id.encode(), '\n'.join(command.names).encode()
    head = _COMMAND.pack(
        command.stamp,
        command.received,
        command.transport,
        command.sequence,
        len(frame),
        len(names),
    )
    return head + frame + names + np.asarray(command.position, '<f8').tobytes()


def unpack_command(payload: bytes) -> JointCommand:
    """Return the command that `pack_command` packed."""
    stamp, received, transport, sequence, frame, names = _COMMAND.unpack_from(payload)
    at = _COMMAND.size
    text = payload[at + frame : at + frame + names].decode()
    return JointCommand(
        names=tuple(text.split('\n')) if text else (),
        position=np.frombuffer(payload[at + frame + names :], '<f8'),
        frame_id=payload[at : at + frame].decode(),
        stamp=stamp,
        received=received,
        transport=transport,
        sequence=sequence,
    )


class Orders(NamedTuple):
    """How often the operator asked the node for an estop and for a reset."""

    estops: int = 0
    resets: int = 0

    def pack(self) -> bytes:
        """Return this as a payload."""
        return _ORDERS.pack(*self)

    @classmethod
    def unpack(cls, payload: bytes) -> 'Orders':
        """Return what `pack` packed."""
        return cls(*_ORDERS.unpack(payload))


class Report(NamedTuple):
    """What the writer says after each write.

    `frames` written; monotonic ns: `written`, and `received` of the LowState in `state` (its
    bytes; empty before the first); `age` ns by the tick clock. `longest_ns` is the longest
    time between two writes. `armed`: it has followed a target, or the writer before it
    had. `note` holds `cause` (why it damps) and `answer` to the last reset.
    """

    pid: int
    frames: int
    written: int
    received: int
    age: int
    following: bool
    armed: bool
    bad_crcs: int
    refused: int
    rebases: int
    resets: int
    longest_ns: int
    state: bytes
    note: bytes

    def pack(self) -> bytes:
        """Return this as a payload."""
        head = self[:12]
        return b''.join((_REPORT.pack(*head), self.state.ljust(LOW_STATE.itemsize), self.note))

    @classmethod
    def unpack(cls, payload: bytes) -> 'Report':
        """Return what `pack` packed."""
        at = _REPORT.size
        head = _REPORT.unpack_from(payload)
        state = payload[at : at + LOW_STATE.itemsize] if head[3] else b''
        note = payload[at + LOW_STATE.itemsize :]
        return cls._make((*head, state, note))._replace(
            following=bool(head[5]), armed=bool(head[6])
        )

    def notes(self) -> Mapping[str, Any]:
        """Return `note` by name."""
        notes: Mapping[str, Any] = json.loads(self.note)
        return notes


def pack_note(cause: str, answer: str) -> bytes:
    """Return a report's `note`."""
    return json.dumps({'cause': cause, 'answer': answer}).encode()
