"""Serialized messages to what they say: at verified offsets, or through rclpy.

rclpy's own reading is the reference. A layout is used only after it has read a message exactly as
rclpy did; whenever a message does not fit it, rclpy reads that one and the layout is learned anew.
"""

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState

from g1_policy_node.cdr import (
    ImuBytes,
    ImuLayout,
    JointStateBytes,
    JointStateLayout,
    MalformedError,
)

Read = TypeVar('Read', bound=tuple[Any, ...])
Read_co = TypeVar('Read_co', bound=tuple[Any, ...], covariant=True)


class _Layout(Protocol[Read_co]):
    def fits(self, raw: bytes) -> bool: ...

    def read(self, raw: bytes) -> Read_co: ...


class WireReader(Generic[Read]):
    """Reads serialized messages of one type from one topic."""

    def __init__(
        self,
        kind: type,
        learn: Callable[[bytes], _Layout[Read]],
        reference: Callable[[Any], Read],
    ) -> None:
        self._kind = kind
        self._learn = learn
        self._reference = reference
        self._layout: _Layout[Read] | None = None

    def read(self, raw: bytes) -> Read:
        """Return what the message says."""
        if self._layout is not None and self._layout.fits(raw):
            return self._layout.read(raw)
        reference = self._reference(deserialize_message(raw, self._kind))
        self._layout = self._verified(raw, reference)
        return reference

    def _verified(self, raw: bytes, reference: Read) -> _Layout[Read] | None:
        try:
            layout = self._learn(raw)
        except MalformedError:
            return None
        same = all(
            np.array_equal(ours, theirs, equal_nan=True)
            if isinstance(theirs, np.ndarray)
            else ours == theirs
            for ours, theirs in zip(layout.read(raw), reference, strict=True)
        )
        return layout if same else None


def joint_state_reader() -> WireReader[JointStateBytes]:
    """Return a reader of serialized JointStates."""
    return WireReader(JointState, JointStateLayout, joint_state_fields)


def imu_reader() -> WireReader[ImuBytes]:
    """Return a reader of serialized Imus."""
    return WireReader(Imu, ImuLayout, imu_fields)


def joint_state_fields(message: JointState) -> JointStateBytes:
    """Return what a JointState says, as rclpy reads it."""
    return JointStateBytes(
        _stamp(message),
        tuple(message.name),
        np.array(message.position, dtype=float),
        np.array(message.velocity, dtype=float),
    )


def imu_fields(message: Imu) -> ImuBytes:
    """Return what an Imu says, as rclpy reads it."""
    q, w, a = message.orientation, message.angular_velocity, message.linear_acceleration
    numbers = [
        *(q.x, q.y, q.z, q.w, *message.orientation_covariance),
        *(w.x, w.y, w.z, *message.angular_velocity_covariance),
        *(a.x, a.y, a.z, *message.linear_acceleration_covariance),
    ]
    return ImuBytes(_stamp(message), message.header.frame_id, np.array(numbers))


def _stamp(message: JointState | Imu) -> int:
    stamp: int = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
    return stamp
