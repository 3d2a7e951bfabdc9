"""Unitree's topics through the cyclonedds library, in a process without rclpy.

The two use symbols of the same names and do not share a process. The messages pass as bytes:
building 35 Python objects per message would take a third of a 500 Hz period.
"""

from dataclasses import dataclass
from typing import Any

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import DDSException, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import autoid, final
from cyclonedds.idl.types import array, float32, int16, uint8, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from g1_policy_node.bridge.messages import LOW_CMD, LOW_STATE
from g1_policy_node.types import UserError

LOW_CMD_TOPIC = 'rt/lowcmd'
LOW_STATE_TOPIC = 'rt/lowstate'
_CDR_LITTLE_ENDIAN = b'\x00\x01\x00\x00'
_LOOPBACK = '<Peers><Peer Address="127.0.0.1"/></Peers>'


def _as_bytes(kind: type[Any]) -> type[Any]:
    """Make a message class's samples their own encoding, in `data`; see messages.py."""

    def serialize(self: Any, *_: Any, **__: Any) -> bytes:
        return _CDR_LITTLE_ENDIAN + bytes(self.data)

    def deserialize(data: bytes, *_: Any, **__: Any) -> Any:
        sample: Any = object.__new__(kind)
        sample.data = data[len(_CDR_LITTLE_ENDIAN) :]
        return sample

    kind.serialize = serialize
    kind.deserialize = staticmethod(deserialize)
    return kind


@dataclass
@final
@autoid('sequential')
class MotorCmd_(IdlStruct, typename='unitree_hg.msg.dds_.MotorCmd_'):  # noqa: N801
    """One motor's command, as Unitree names it."""

    mode: uint8
    q: float32
    dq: float32
    tau: float32
    kp: float32
    kd: float32
    reserve: uint32


@_as_bytes
@dataclass
@final
@autoid('sequential')
class LowCmd_(IdlStruct, typename='unitree_hg.msg.dds_.LowCmd_'):  # noqa: N801
    """The command of all motors."""

    mode_pr: uint8
    mode_machine: uint8
    motor_cmd: array[MotorCmd_, 35]
    reserve: array[uint32, 4]
    crc: uint32


@dataclass
@final
@autoid('sequential')
class IMUState_(IdlStruct, typename='unitree_hg.msg.dds_.IMUState_'):  # noqa: N801
    """The pelvis IMU."""

    quaternion: array[float32, 4]
    gyroscope: array[float32, 3]
    accelerometer: array[float32, 3]
    rpy: array[float32, 3]
    temperature: int16


@dataclass
@final
@autoid('sequential')
class MotorState_(IdlStruct, typename='unitree_hg.msg.dds_.MotorState_'):  # noqa: N801
    """One motor's state."""

    mode: uint8
    q: float32
    dq: float32
    ddq: float32
    tau_est: float32
    temperature: array[int16, 2]
    vol: float32
    sensor: array[uint32, 2]
    motorstate: uint32
    reserve: array[uint32, 4]


@_as_bytes
@dataclass
@final
@autoid('sequential')
class LowState_(IdlStruct, typename='unitree_hg.msg.dds_.LowState_'):  # noqa: N801
    """The state of the robot."""

    version: array[uint32, 2]
    mode_pr: uint8
    mode_machine: uint8
    tick: uint32
    imu_state: IMUState_
    motor_state: array[MotorState_, 35]
    wireless_remote: array[uint8, 40]
    reserve: array[uint32, 4]
    crc: uint32


def configuration(interface: str) -> str:
    """Return the cyclonedds configuration that keeps to one network interface."""
    # Loopback has no multicast as a rule: peers are asked one by one.
    peers = _LOOPBACK if interface == 'lo' else ''
    multicast = 'false' if interface == 'lo' else 'default'
    return (
        '<CycloneDDS><Domain id="any"><General><Interfaces>'
        f'<NetworkInterface name="{interface}"/></Interfaces>'
        f'<AllowMulticast>{multicast}</AllowMulticast></General><Discovery>'
        '<ParticipantIndex>auto</ParticipantIndex>'
        f'<MaxAutoParticipantIndex>31</MaxAutoParticipantIndex>{peers}</Discovery>'
        '</Domain></CycloneDDS>'
    )


class Network:
    """Unitree's topics in one DDS domain, on one network interface and no other."""

    def __init__(self, domain: int, interface: str) -> None:
        try:
            self._domain = Domain(domain, configuration(interface))
            self._participant = DomainParticipant(domain)
        except DDSException as error:
            reason = str(error).splitlines()[0]
            raise UserError(f'interface {interface}, DDS domain {domain}: {reason}') from None
        # What Unitree's own channels use.
        policies = Policy.Reliability.BestEffort, Policy.History.KeepLast(1)
        self._policies, self._qos = policies, Qos(*policies)
        self._publications = BuiltinDataReader(self._participant, BuiltinTopicDcpsPublication)
        self._known: dict[str, tuple[str, str, bool]] = {}

    def reader(self, topic: str) -> 'ByteReader':
        """Return a reader of the newest message of `rt/lowstate` or `rt/lowcmd`."""
        size = (LOW_CMD if topic == LOW_CMD_TOPIC else LOW_STATE).itemsize
        return ByteReader(self, DataReader(self._participant, self._topic(topic), self._qos), size)

    def writer(self, topic: str, mark: str = '') -> 'ByteWriter':
        """Return a writer of `rt/lowstate` or `rt/lowcmd` that others see bear `mark`."""
        qos = Qos(*self._policies, Policy.Userdata(mark.encode()))
        writer = DataWriter(self._participant, self._topic(topic), qos)
        kind = LowCmd_ if topic == LOW_CMD_TOPIC else LowState_
        return ByteWriter(self, writer, kind.__new__(kind))

    def senders(self, topic: str, mark: str) -> list[str]:
        """Return who publishes a topic without bearing `mark`."""
        for sample in self._publications.take(256):
            # What went away comes as a sample without a topic.
            name = getattr(sample, 'topic_name', '')
            if name:
                borne = sample.qos[Policy.Userdata]
                ours = borne is not None and borne.data == mark.encode()
                self._known[str(sample.key)] = (name, str(sample.participant_key), ours)
            else:
                self._known.pop(str(sample.key), None)
        return [
            f'participant {participant}'
            for name, participant, ours in self._known.values()
            if name == topic and not ours
        ]

    def _topic(self, topic: str) -> Topic[Any]:
        return Topic(self._participant, topic, LowCmd_ if topic == LOW_CMD_TOPIC else LowState_)


class ByteReader:
    """Takes messages as bytes."""

    def __init__(self, network: Network, reader: DataReader[Any], size: int) -> None:
        self._network = network  # Its end would be the reader's.
        self._reader = reader
        self._size = size

    def newest(self) -> bytes | None:
        """Return the newest whole message not taken before, or None."""
        samples = [s.data for s in self._reader.take(8) if s.sample_info.valid_data]
        if not samples or len(samples[-1]) < self._size:
            return None
        return bytes(samples[-1][: self._size])


class ByteWriter:
    """Writes messages that are bytes."""

    def __init__(self, network: Network, writer: DataWriter[Any], sample: Any) -> None:
        self._network = network
        self._writer = writer
        self._sample = sample

    def write(self, data: bytearray) -> None:
        """Send one message."""
        self._sample.data = data
        self._writer.write(self._sample)
