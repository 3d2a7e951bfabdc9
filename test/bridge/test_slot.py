import os
import signal
import subprocess
import sys
import time

import pytest

from g1_policy_node.bridge.slot import CAPACITY, Slot

# Payloads of one byte repeated, of ever changing length: a torn one is none of these.
HAMMER = """
import sys
from g1_policy_node.bridge.slot import Slot
slot, i = Slot(int(sys.argv[1])), 0
while True:
    i += 1
    slot.write(bytes([i % 256]) * (i * 37 % 4000 + 1))
"""


def uniform(payload: bytes) -> bool:
    return len(payload) > 0 and payload == payload[:1] * len(payload)


def test_a_payload_is_taken_once() -> None:
    slot = Slot()
    reader = Slot(slot.descriptor)
    assert reader.take() is None
    slot.write(b'first')
    slot.write(b'second')
    assert reader.take() == b'second'
    assert reader.take() is None


def test_an_empty_payload_is_a_payload() -> None:
    slot = Slot()
    slot.write(b'')
    assert Slot(slot.descriptor).take() == b''


def test_a_payload_beyond_the_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match='room'):
        Slot().write(bytes(CAPACITY + 1))


@pytest.mark.parametrize('before', [1, 2])
def test_a_writer_stopped_half_way_leaves_the_last_whole_payload(before) -> None:
    slot = Slot()
    for _ in range(before):
        slot.write(b'whole')
    other = slot._payloads[(before + 1) % 2]
    other[:3] = b'par'
    slot._described[(before + 1) % 2][0] = 7 << 32
    assert Slot(slot.descriptor).take() == b'whole'
    Slot(slot.descriptor).write(b'next')
    assert slot.take() == b'next'


def test_a_payload_that_changes_under_the_reader_is_not_taken() -> None:
    slot = Slot()
    slot.write(b'whole')
    slot._payloads[1][:3] = b'par'
    assert Slot(slot.descriptor).take() is None


def test_what_a_reader_takes_is_whole_while_the_writer_is_killed_again_and_again() -> None:
    slot = Slot()
    taken = 0
    for round_ in range(6):
        process = subprocess.Popen(
            [sys.executable, '-c', HAMMER, str(slot.descriptor)], pass_fds=[slot.descriptor]
        )
        try:
            end = time.monotonic() + 20.0
            before = taken
            while taken < before + 50 + 17 * round_ and time.monotonic() < end:
                payload = slot.take()
                if payload is not None:
                    assert uniform(payload)
                    taken += 1
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        assert taken > before
        last = Slot(slot.descriptor).take()
        assert last is not None, 'whoever comes next finds what the killed one wrote last'
        assert uniform(last)
    slot.take()
    slot.write(b'mine')
    assert slot.take() == b'mine'


READER = """
import sys
from g1_policy_node.bridge.slot import Slot
slot = Slot(int(sys.argv[1]))
while True:
    if slot.take():
        print(flush=True)
"""


def test_a_reader_killed_again_and_again_costs_the_writer_and_other_readers_nothing() -> None:
    slot = Slot()
    other = Slot(slot.descriptor)
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, '-c', READER, str(slot.descriptor)],
            pass_fds=[slot.descriptor],
            stdout=subprocess.PIPE,
        )
        try:
            os.set_blocking(process.stdout.fileno(), False)
            end = time.monotonic() + 20.0
            while not process.stdout.read() and time.monotonic() < end:
                slot.write(b'again')
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
        slot.write(b'after')
        assert other.take() == b'after'
