import struct

import numpy as np
import pytest

from g1_policy_node.bridge.messages import LOW_CMD, LOW_STATE, SLOTS, Message, crc_of_words


def by_hand(data: bytes) -> int:
    """The checksum bit by bit, as its definition reads."""
    crc = 0xFFFFFFFF
    for (word,) in struct.iter_unpack('<I', data):
        for bit in range(31, -1, -1):
            top = crc >> 31
            crc = crc << 1 & 0xFFFFFFFF
            if top ^ (word >> bit & 1):
                crc ^= 0x04C11DB7
    return crc


def test_no_word_leaves_the_initial_value() -> None:
    assert crc_of_words(b'') == 0xFFFFFFFF


def test_a_word_of_ones_against_a_vector_worked_out_by_hand() -> None:
    # Register and word are all ones: each of the 32 steps shifts a one out against a one in,
    # so the polynomial is never added, and only the zeros shifted in stay.
    assert crc_of_words(b'\xff\xff\xff\xff') == 0x00000000


def test_the_last_bit_alone_against_a_vector_worked_out_by_hand() -> None:
    # As above for 31 steps, which leaves 0x80000000; the last bit in is 0 against a 1 out, so
    # the register becomes 0 and then the polynomial.
    assert crc_of_words(struct.pack('<I', 0xFFFFFFFE)) == 0x04C11DB7


def test_the_last_two_bits_against_a_vector_worked_out_by_hand() -> None:
    # After 30 steps 0xc0000000. Bit 0 in, 1 out: 0x80000000 ^ P = 0x84c11db7. Bit 0 in, 1 out:
    # 0x09823b6e ^ P = 0x0d4326d9.
    assert crc_of_words(struct.pack('<I', 0xFFFFFFFC)) == 0x0D4326D9


def test_the_check_value_that_every_catalogue_has_for_this_crc() -> None:
    # CRC-32/MPEG-2 of '123456789' is 0x0376e6e7; of its first eight bytes, as two words that
    # are read from their highest byte, by_hand gives the same as over the bytes.
    eight = struct.pack('<2I', 0x31323334, 0x35363738)
    assert crc_of_words(eight) == by_hand(eight)
    crc = by_hand(eight)
    for bit in range(7, -1, -1):
        top = crc >> 31
        crc = crc << 1 & 0xFFFFFFFF
        if top ^ (ord('9') >> bit & 1):
            crc ^= 0x04C11DB7
    assert crc == 0x0376E6E7


@pytest.mark.parametrize('layout', [LOW_CMD, LOW_STATE])
def test_whole_messages_agree_with_the_definition(layout) -> None:
    rng = np.random.default_rng(7)
    message = Message(layout)
    message.load(rng.integers(0, 256, layout.itemsize, dtype=np.uint8).tobytes())
    assert message.checksum() == by_hand(bytes(message.data[:-4]))


def test_sizes_are_those_of_the_c_structs() -> None:
    # sdk2's own pack formats: '<2B2x' + 'B3x5fI' * 35 + '5I', and
    # '<2I2B2xI' + '13fh2x' + 'B3x4f2hf7I' * 35 + '40B5I'.
    assert LOW_CMD.itemsize == struct.calcsize('<2B2x' + 'B3x5fI' * SLOTS + '5I') == 1004
    assert LOW_STATE.itemsize == struct.calcsize(
        '<2I2B2xI' + '13fh2x' + 'B3x4f2hf7I' * SLOTS + '40B5I'
    )


def test_fields_are_where_the_c_struct_has_them() -> None:
    message = Message(LOW_CMD)
    message.fields['mode_machine'] = 5
    motor = message.fields['motor_cmd'][28]
    for name, value in zip(('q', 'dq', 'tau', 'kp', 'kd'), (1, 2, 3, 4, 5), strict=True):
        motor[name] = value
    assert message.data[1] == 5
    assert struct.unpack_from('<5f', message.data, 4 + 28 * 28 + 4) == (1, 2, 3, 4, 5)


@pytest.mark.parametrize('layout', [LOW_CMD, LOW_STATE])
def test_padding_of_a_received_message_does_not_count(layout) -> None:
    clean, dirty = Message(layout), Message(layout)
    clean.seal()
    data = bytearray(clean.data)
    padding = clean._padding
    assert len(padding) == {1004: 2 + 35 * 3, 2092: 2 + 2 + 35 * 3}[layout.itemsize]
    for position in padding:
        data[position] = 0xAB
    dirty.load(bytes(data))
    assert dirty.intact()


@pytest.mark.parametrize('position', [0, 1, 4, 8, 500, 1003])
def test_one_changed_bit_is_noticed(position: int) -> None:
    message = Message(LOW_CMD)
    message.seal()
    assert message.intact()
    message.data[position] ^= 1
    assert not message.intact()
