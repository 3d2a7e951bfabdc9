"""Whatever a sender does with its layout, what is read is what rclpy reads."""

import numpy as np
from rclpy.serialization import serialize_message
from test_cdr import NAMES, imu, joint_state

from g1_policy_node.wire import imu_fields, imu_reader, joint_state_fields, joint_state_reader


def same(read, reference) -> bool:
    def equal(a, b) -> bool:
        return np.array_equal(a, b, equal_nan=True) if isinstance(b, np.ndarray) else a == b

    return all(equal(a, b) for a, b in zip(read, reference, strict=True))


def test_messages_of_changing_layouts_are_all_read_as_rclpy_reads_them() -> None:
    reader = joint_state_reader()
    for seed in range(40):
        names = NAMES if seed % 3 else NAMES[seed % 7 :]
        message = joint_state(names, frame='x' * (seed % 5), seed=seed, effort=seed % 2 == 0)
        if seed % 11 == 0:
            message.velocity = []
        if seed % 13 == 0:
            message.position[0] = float('nan')
        assert same(reader.read(serialize_message(message)), joint_state_fields(message)), seed


def test_imus_of_changing_frames_are_all_read_as_rclpy_reads_them() -> None:
    reader = imu_reader()
    for seed in range(20):
        message = imu('pelvis' if seed % 3 else 'torso', seed)
        assert same(reader.read(serialize_message(message)), imu_fields(message)), seed


def test_a_layout_that_reads_differently_from_rclpy_is_never_used() -> None:
    class Wrong:
        def fits(self, raw: bytes) -> bool:
            return True

        def read(self, raw: bytes):
            return joint_state_fields(joint_state(seed=99))

    reader = joint_state_reader()
    reader._learn = lambda raw: Wrong()
    for seed in range(3):
        message = joint_state(seed=seed)
        assert same(reader.read(serialize_message(message)), joint_state_fields(message))


def test_a_known_layout_is_read_without_rclpy(monkeypatch) -> None:
    reader = joint_state_reader()
    reader.read(serialize_message(joint_state(seed=0)))
    monkeypatch.setattr('g1_policy_node.wire.deserialize_message', None)
    message = joint_state(seed=1)
    assert same(reader.read(serialize_message(message)), joint_state_fields(message))
