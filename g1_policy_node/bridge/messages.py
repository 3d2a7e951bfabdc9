"""LowState and LowCmd of Unitree's unitree_hg as bytes: layout, checksum. No DDS here.

Field lists after the message definitions in unitreerobotics/unitree_sdk2_python
(unitree_sdk2py/idl/unitree_hg/msg/dds_, commit 2d74535) and the checksum after its
unitree_sdk2py/utils/crc.py. No field is wider than four bytes, so the DDS encoding (little-endian
CDR) and the C structs that the checksum is defined over are the same bytes, padding included.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

SLOTS = 35
"""Motors in a message; the G1's joints are the first 29, in SDK order."""

MOTOR_CMD = np.dtype(
    [
        ('mode', 'u1'),
        ('q', '<f4'),
        ('dq', '<f4'),
        ('tau', '<f4'),
        ('kp', '<f4'),
        ('kd', '<f4'),
        ('reserve', '<u4'),
    ],
    align=True,
)
LOW_CMD = np.dtype(
    [
        ('mode_pr', 'u1'),
        ('mode_machine', 'u1'),
        ('motor_cmd', MOTOR_CMD, (SLOTS,)),
        ('reserve', '<u4', (4,)),
        ('crc', '<u4'),
    ],
    align=True,
)
IMU_STATE = np.dtype(
    [
        ('quaternion', '<f4', (4,)),
        ('gyroscope', '<f4', (3,)),
        ('accelerometer', '<f4', (3,)),
        ('rpy', '<f4', (3,)),
        ('temperature', '<i2'),
    ],
    align=True,
)
MOTOR_STATE = np.dtype(
    [
        ('mode', 'u1'),
        ('q', '<f4'),
        ('dq', '<f4'),
        ('ddq', '<f4'),
        ('tau_est', '<f4'),
        ('temperature', '<i2', (2,)),
        ('vol', '<f4'),
        ('sensor', '<u4', (2,)),
        ('motorstate', '<u4'),
        ('reserve', '<u4', (4,)),
    ],
    align=True,
)
LOW_STATE = np.dtype(
    [
        ('version', '<u4', (2,)),
        ('mode_pr', 'u1'),
        ('mode_machine', 'u1'),
        ('tick', '<u4'),
        ('imu_state', IMU_STATE),
        ('motor_state', MOTOR_STATE, (SLOTS,)),
        ('wireless_remote', 'u1', (40,)),
        ('reserve', '<u4', (4,)),
        ('crc', '<u4'),
    ],
    align=True,
)

_REVERSED = bytes(int(f'{byte:08b}'[::-1], 2) for byte in range(256))


def crc_of_words(data: bytes) -> int:
    """Return the CRC-32 of little-endian 32-bit words, each taken from its highest bit down.

    Polynomial 0x04c11db7, initial value 0xffffffff, no final inversion (CRC-32/MPEG-2).
    zlib's runs from the lowest bit up, so bits are turned round before and after: that is a
    hundred times faster than a loop in Python, which 500 Hz has no time for.
    """
    words = np.frombuffer(data, '<u4').byteswap().tobytes()
    mirrored = zlib.crc32(words.translate(_REVERSED)) ^ 0xFFFFFFFF
    return int(f'{mirrored:032b}'[::-1], 2)


class Message:
    """One LowState or LowCmd in a buffer of its own: `fields` by name, `data` the bytes.

    Padding is zero: only fields are ever written.
    """

    def __init__(self, layout: np.dtype[np.void]) -> None:
        self.data = bytearray(layout.itemsize)
        whole = np.frombuffer(self.data, layout)
        self.fields = whole[0]
        self._all = whole
        self._padding = _padding(layout)

    def load(self, data: bytes) -> None:
        """Take the bytes of a received message, its padding as zero."""
        self.data[:] = data
        np.frombuffer(self.data, 'u1')[self._padding] = 0

    def checksum(self) -> int:
        """Return the checksum of what is in the buffer, which leaves out the last word."""
        return crc_of_words(bytes(memoryview(self.data)[:-4]))

    def seal(self) -> None:
        """Write the checksum into the message."""
        self.fields['crc'] = self.checksum()

    def intact(self) -> bool:
        """Tell whether the message's checksum is right."""
        return int(self.fields['crc']) == self.checksum()


def _padding(layout: np.dtype[np.void]) -> NDArray[np.intp]:
    """Return the positions of the bytes that belong to no field."""
    used = np.zeros(layout.itemsize, dtype=bool)
    _mark(layout, used, 0)
    return np.flatnonzero(~used)


def _mark(layout: np.dtype[np.void], used: NDArray[np.bool_], start: int) -> None:
    for name in layout.names or ():
        kind, offset = layout.fields[name][:2]  # type: ignore[index]
        count = int(np.prod(kind.shape, dtype=int))
        for item in range(count):
            at = start + offset + item * kind.base.itemsize
            if kind.base.names:
                _mark(kind.base, used, at)
            else:
                used[at : at + kind.base.itemsize] = True
