"""Reads JointState and Imu out of their serialized form, at offsets learned once.

Turning such a message into Python objects costs more than the network's forward pass. A sender
repeats the same layout: names, frame and lengths stay, and only stamps and numbers change. So the
offsets are worked out from one message and reused for every message whose fixed bytes are the
same. Padding is never compared: Fast CDR does not clear it, so it differs from message to message.

The encoding is classic CDR (OMG CORBA 3.3, 9.3): little endian, each value aligned to its size,
counted from behind the four bytes of the encapsulation header. ROS-free; ros_io checks what is
read here against rclpy's own reading, once for every layout.
"""

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.types import Array

_HEADER = 4
_LITTLE_ENDIAN = b'\x00\x01'
_STAMP = struct.Struct('<iI')
_COUNT = struct.Struct('<I')


class MalformedError(Exception):
    """The bytes are not such a message."""


class JointStateBytes(NamedTuple):
    """A JointState as read: stamp ns, `position` rad and `velocity` rad/s as sent."""

    stamp: int
    names: tuple[str, ...]
    position: Array
    velocity: Array


class ImuBytes(NamedTuple):
    """An Imu as read: stamp ns, and all 37 numbers in the order of the message.

    Orientation x, y, z, w (4) and its covariance (9), angular velocity (3) and covariance (9),
    linear acceleration (3) and covariance (9).
    """

    stamp: int
    frame_id: str
    numbers: Array


class _Walk:
    """Goes through a message once, noting which bytes must stay the same."""

    def __init__(self, raw: bytes) -> None:
        if raw[:2] != _LITTLE_ENDIAN:
            raise MalformedError('not little-endian CDR')
        self._raw = raw
        self.at = _HEADER
        self.fixed: list[NDArray[np.intp]] = [np.arange(2)]

    def skip(self, size: int, align: int) -> int:
        """Pass over numbers that may change; return where they start."""
        start = self._aligned(align)
        self._advance(start, size)
        return start

    def count(self) -> int:
        """Read a length, which must stay."""
        start = self._aligned(4)
        self._advance(start, 4)
        self.fixed.append(np.arange(start, start + 4))
        value: int = _COUNT.unpack_from(self._raw, start)[0]
        return value

    def text(self) -> str:
        """Read a string, which must stay."""
        size = self.count()
        start = self.at
        self._advance(start, size)
        self.fixed.append(np.arange(start, start + size))
        return self._raw[start : start + size].rstrip(b'\x00').decode()

    def numbers(self) -> tuple[int, int]:
        """Pass over a sequence of doubles; return where it starts and how many they are."""
        count = self.count()
        return (self.skip(8 * count, 8) if count else self.at), count

    def _aligned(self, size: int) -> int:
        body = self.at - _HEADER
        return _HEADER + (body + size - 1) // size * size

    def _advance(self, start: int, size: int) -> None:
        if start + size > len(self._raw):
            raise MalformedError(f'ends after {len(self._raw)} bytes')
        self.at = start + size


class _Layout:
    """The length and the fixed bytes that a message must have to be read at these offsets.

    They are compared as one large integer under a mask: a microsecond, where comparing arrays
    of bytes takes ten.
    """

    def __init__(self, raw: bytes, walk: _Walk) -> None:
        self._length = len(raw)
        mask = np.zeros(len(raw), dtype=np.uint8)
        mask[np.concatenate(walk.fixed)] = 0xFF
        self._mask = int.from_bytes(mask.tobytes(), 'little')
        self._expected = int.from_bytes(raw, 'little') & self._mask

    def fits(self, raw: bytes) -> bool:
        """Tell whether `raw` has this layout."""
        return (
            len(raw) == self._length
            and int.from_bytes(raw, 'little') & self._mask == self._expected
        )


class JointStateLayout(_Layout):
    """Where a sensor_msgs/JointState of these names has its numbers. Raises MalformedError."""

    def __init__(self, raw: bytes) -> None:
        walk = _Walk(raw)
        self._stamp = walk.skip(8, 4)
        walk.text()  # frame_id
        self.names = tuple(walk.text() for _ in range(walk.count()))
        self._position = walk.numbers()
        self._velocity = walk.numbers()
        walk.numbers()  # effort
        super().__init__(raw, walk)

    def read(self, raw: bytes) -> JointStateBytes:
        """Return what a message of this layout says."""
        return JointStateBytes(
            _stamp(raw, self._stamp),
            self.names,
            _doubles(raw, *self._position),
            _doubles(raw, *self._velocity),
        )


class ImuLayout(_Layout):
    """Where a sensor_msgs/Imu in this frame has its numbers. Raises MalformedError."""

    NUMBERS = 4 + 9 + 3 + 9 + 3 + 9

    def __init__(self, raw: bytes) -> None:
        walk = _Walk(raw)
        self._stamp = walk.skip(8, 4)
        self.frame_id = walk.text()
        self._numbers = walk.skip(8 * self.NUMBERS, 8)
        super().__init__(raw, walk)

    def read(self, raw: bytes) -> ImuBytes:
        """Return what a message of this layout says."""
        return ImuBytes(
            _stamp(raw, self._stamp),
            self.frame_id,
            _doubles(raw, self._numbers, self.NUMBERS),
        )


def _stamp(raw: bytes, at: int) -> int:
    seconds, nanoseconds = _STAMP.unpack_from(raw, at)
    stamp: int = seconds * 1_000_000_000 + nanoseconds
    return stamp


def _doubles(raw: bytes | bytearray, start: int, count: int) -> Array:
    return np.frombuffer(raw, dtype='<f8', count=count, offset=start)


class NumbersTemplate:
    """A serialized message that ends with a sequence of doubles, written in place.

    `raw` is one such message, with the `count` doubles that will be written.
    """

    def __init__(self, raw: bytes, count: int) -> None:
        self._buffer = bytearray(raw)
        self.numbers = _doubles(self._buffer, len(raw) - 8 * count, count)

    def message(self) -> bytes:
        """Return the message with what `numbers` (count,) holds now."""
        return bytes(self._buffer)


class JointCommandTemplate:
    """A serialized JointState whose stamp and positions are written in place.

    `raw` is one such message, with as many positions as will be written. Raises MalformedError.
    """

    def __init__(self, raw: bytes) -> None:
        layout = JointStateLayout(raw)
        self._stamp = layout._stamp
        self._buffer = bytearray(raw)
        start, count = layout._position
        self._position = np.frombuffer(self._buffer, dtype='<f8', count=count, offset=start)

    def fill(self, stamp_ns: int, position: Array) -> bytes:
        """Return the message with this stamp (ns) and these positions (N,) rad."""
        _STAMP.pack_into(self._buffer, self._stamp, *divmod(stamp_ns, 1_000_000_000))
        self._position[:] = position
        return bytes(self._buffer)
