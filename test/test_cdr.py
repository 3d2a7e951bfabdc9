"""What is read from bytes is what rclpy reads, and nothing is read at offsets that do not fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from samples import CONTRACT
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from g1_policy_node.cdr import (
    ImuLayout,
    JointCommandTemplate,
    JointStateLayout,
    MalformedError,
    NumbersTemplate,
)

NAMES = list(CONTRACT.joint_names)
finite = st.floats(allow_nan=False, width=64)
texts = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)


def joint_state(names=NAMES, frame='', seed=0, effort=True) -> JointState:
    rng = np.random.default_rng(seed)
    message = JointState(name=names)
    message.header.frame_id = frame
    message.header.stamp.sec, message.header.stamp.nanosec = 12 + seed, 345
    message.position = rng.normal(size=len(names)).tolist()
    message.velocity = rng.normal(size=len(names)).tolist()
    if effort:
        message.effort = rng.normal(size=len(names)).tolist()
    return message


def imu(frame='pelvis', seed=0) -> Imu:
    rng = np.random.default_rng(seed)
    message = Imu()
    message.header.frame_id = frame
    message.header.stamp.sec = seed
    for field in (message.orientation, message.angular_velocity, message.linear_acceleration):
        for axis in field.get_fields_and_field_types():
            setattr(field, axis, rng.normal())
    message.angular_velocity_covariance = rng.normal(size=9)
    return message


def dirty(raw: bytes, seed: int) -> bytes:
    """Return the message with other bytes wherever the reference reads the same: padding."""
    reference = serialize_message(deserialize_message(raw, JointState))
    rng = np.random.default_rng(seed)
    out = bytearray(raw)
    for i in rng.permutation(np.arange(4, len(raw)))[:300]:
        before, out[i] = out[i], int(rng.integers(256))
        try:
            same = deserialize_message(bytes(out), JointState) == deserialize_message(
                reference, JointState
            )
        except Exception:
            same = False
        if not same:
            out[i] = before
    return bytes(out)


@given(st.lists(texts, max_size=6), texts, st.integers(0, 2**31 - 1), st.booleans())
def test_any_joint_state_reads_as_rclpy_reads_it(names, frame, seconds, effort) -> None:
    message = joint_state(names, frame, effort=effort)
    message.header.stamp.sec = seconds
    raw = serialize_message(message)
    read = JointStateLayout(raw).read(raw)
    assert read.stamp == seconds * 10**9 + 345
    assert read.names == tuple(message.name)
    np.testing.assert_array_equal(read.position, message.position)
    np.testing.assert_array_equal(read.velocity, message.velocity)


@given(texts, st.integers(0, 100))
def test_any_imu_reads_as_rclpy_reads_it(frame, seed) -> None:
    message = imu(frame, seed)
    raw = serialize_message(message)
    read = ImuLayout(raw).read(raw)
    assert (read.stamp, read.frame_id) == (seed * 10**9, frame)
    q, w, a = message.orientation, message.angular_velocity, message.linear_acceleration
    np.testing.assert_array_equal(read.numbers[:4], [q.x, q.y, q.z, q.w])
    np.testing.assert_array_equal(read.numbers[13:16], [w.x, w.y, w.z])
    np.testing.assert_array_equal(read.numbers[16:25], message.angular_velocity_covariance)
    np.testing.assert_array_equal(read.numbers[25:28], [a.x, a.y, a.z])


def test_a_layout_learned_once_reads_every_message_of_it_whatever_the_padding() -> None:
    layout = JointStateLayout(serialize_message(joint_state()))
    for seed in range(5):
        message = joint_state(seed=seed)
        raw = dirty(serialize_message(message), seed)
        assert layout.fits(raw)
        np.testing.assert_array_equal(layout.read(raw).position, message.position)


@pytest.mark.parametrize(
    'other',
    [
        joint_state(names=NAMES[::-1]),
        joint_state(names=NAMES[:-1]),
        joint_state(names=[NAMES[0].replace('left', 'lift'), *NAMES[1:]]),
        joint_state(frame='base'),
        joint_state(effort=False),
    ],
)
def test_a_message_of_another_layout_does_not_fit(other: JointState) -> None:
    assert not JointStateLayout(serialize_message(joint_state())).fits(serialize_message(other))


def test_an_imu_in_another_frame_of_the_same_length_does_not_fit() -> None:
    layout = ImuLayout(serialize_message(imu('pelvis')))
    assert layout.fits(serialize_message(imu('pelvis', 3)))
    assert not layout.fits(serialize_message(imu('torso1')))


@pytest.mark.parametrize('cut', [0, 1, 3, 10, 40, 500, 1200])
def test_bytes_that_end_early_are_malformed(cut: int) -> None:
    raw = serialize_message(joint_state())[:cut]
    with pytest.raises(MalformedError):
        JointStateLayout(raw)


def test_a_length_that_lies_is_malformed() -> None:
    raw = bytearray(serialize_message(joint_state()))
    raw[12:16] = (2**31).to_bytes(4, 'little')
    with pytest.raises(MalformedError):
        JointStateLayout(bytes(raw))


def test_big_endian_is_malformed() -> None:
    with pytest.raises(MalformedError):
        ImuLayout(b'\x00\x00' + serialize_message(imu())[2:])


def test_a_filled_template_is_the_message_with_that_stamp_and_those_positions() -> None:
    message = JointState(name=NAMES, position=[0.0] * 29)
    message.header.frame_id = 'a95f9cd710a5863c'
    template = JointCommandTemplate(serialize_message(message))
    for seed in range(3):
        target = np.random.default_rng(seed).normal(size=29)
        got = deserialize_message(template.fill(7_000_000_009 + seed, target), JointState)
        assert (got.header.stamp.sec, got.header.stamp.nanosec) == (7, 9 + seed)
        assert got.header.frame_id == 'a95f9cd710a5863c'
        assert got.name == NAMES
        np.testing.assert_array_equal(got.position, target)
        assert len(got.velocity) == len(got.effort) == 0


def test_a_numbers_template_is_the_message_with_those_numbers() -> None:
    message = Float64MultiArray(data=[0.0] * 5)
    message.layout.dim = [MultiArrayDimension(label='odd', size=5, stride=5)]
    template = NumbersTemplate(serialize_message(message), 5)
    for seed in range(3):
        message.data = np.random.default_rng(seed).normal(size=5).tolist()
        template.numbers[:] = message.data
        assert deserialize_message(template.message(), Float64MultiArray) == message
