"""The newest of something, from one process to another, through shared memory.

One writer, any number of readers, and nobody waits for anybody: a writer killed at any
instruction leaves a reader with the last whole payload, which then ages.
"""

import mmap
import os
import zlib

CAPACITY = 8192
"""Bytes of a payload at most."""

_HEADER = 16
_ATTEMPTS = 8


class Slot:
    """A slot in anonymous shared memory, `descriptor`; it goes with its last process.

    Two words of 64 bits, each written in one piece (struct.pack_into would write byte after
    byte), then the payload. The first counts, and is odd while a payload is being written; the
    second holds size and checksum. Python has no memory fences, so a payload is whole only if
    the checksum, which the count is part of, says so too.
    """

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = os.memfd_create('g1_bridge')
            os.ftruncate(descriptor, _HEADER + CAPACITY)
        self.descriptor = descriptor
        self._memory = memoryview(mmap.mmap(descriptor, _HEADER + CAPACITY))
        self._words = self._memory[:_HEADER].cast('Q')
        self._taken = 0

    def write(self, payload: bytes) -> None:
        """Put a payload in place of the last one."""
        if len(payload) > CAPACITY:
            raise ValueError(f'a payload of {len(payload)} bytes, and room for {CAPACITY}')
        # A writer that was killed half-way left an odd number.
        count = (self._words[0] + 1) // 2 * 2
        self._words[0] = count + 1
        self._memory[_HEADER : _HEADER + len(payload)] = payload
        self._words[1] = len(payload) << 32 | _checksum(payload, count + 2)
        self._words[0] = count + 2

    def take(self) -> bytes | None:
        """Return the payload if it is whole and not yet taken by this reader, else None."""
        for _ in range(_ATTEMPTS):
            count, described = self._words[0], self._words[1]
            if count == self._taken:
                return None
            size = described >> 32
            if count % 2 or size > CAPACITY:
                continue
            payload = bytes(self._memory[_HEADER : _HEADER + size])
            if _checksum(payload, count) == described & 0xFFFFFFFF:
                self._taken = count
                return payload
        return None


def _checksum(payload: bytes, count: int) -> int:
    return zlib.crc32(payload, count & 0xFFFFFFFF)
