"""The newest of something, from one process to another, through shared memory.

One writer, any number of readers, and nobody waits for anybody: a writer killed at any
instruction leaves a reader with the last whole payload, which then ages.
"""

import mmap
import os
import zlib

CAPACITY = 8192
"""Bytes of a payload at most."""

_WORD = 8
_CELL = _WORD + CAPACITY
_SIZE = _WORD + 2 * _CELL
_ATTEMPTS = 8


class Slot:
    """A slot in anonymous shared memory, `descriptor`; it goes with its last process.

    A count, then two cells: a word with size and checksum, and the payload. The count's parity
    says which cell is the newest; the next payload goes into the other, and only then the count
    goes on. Words are 64 bits, each written in one piece (struct.pack_into would write byte after
    byte). Python has no memory fences, and a slow reader may be lapped, so a payload is whole only
    if the checksum, which the count is part of, says so.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = os.memfd_create('g1_bridge')
            os.ftruncate(descriptor, _SIZE)
        self.descriptor = descriptor
        memory = memoryview(mmap.mmap(descriptor, _SIZE))
        self._count = memory[:_WORD].cast('Q')
        cells = [memory[start : start + _CELL] for start in (_WORD, _WORD + _CELL)]
        self._described = [cell[:_WORD].cast('Q') for cell in cells]
        self._payloads = [cell[_WORD:] for cell in cells]
        self._taken = 0

    def write(self, payload: bytes) -> None:
        """Put a payload in place of the last one."""
        if len(payload) > CAPACITY:
            raise ValueError(f'a payload of {len(payload)} bytes, and room for {CAPACITY}')
        count = self._count[0] + 1
        self._payloads[count % 2][: len(payload)] = payload
        self._described[count % 2][0] = len(payload) << 32 | _checksum(payload, count)
        self._count[0] = count

    def take(self) -> bytes | None:
        """Return the payload if it is whole and not yet taken by this reader, else None."""
        for _ in range(_ATTEMPTS):
            count = self._count[0]
            if count == self._taken:
                return None
            described = self._described[count % 2][0]
            payload = bytes(self._payloads[count % 2][: described >> 32])
            if _checksum(payload, count) == described & 0xFFFFFFFF:
                self._taken = count
                return payload
        return None


def _checksum(payload: bytes, count: int) -> int:
    return zlib.crc32(payload, count & 0xFFFFFFFF)
