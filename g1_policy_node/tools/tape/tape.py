"""A tape: what a bag says about a walk, as arrays and samples. Needs no ROS."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.tools.tape.bag import Bag, read_bag
from g1_policy_node.tools.tape.topics import (
    COMMAND,
    IMU,
    JOINTS,
    ODOM,
    STEP,
    TARGETS,
    TYPES,
)
from g1_policy_node.types import (
    Array,
    CommandSample,
    ImuSample,
    JointSample,
    OdomSample,
    Stamps,
    UserError,
)

STEP_TIMES = ('scheduled', 'woken', 'taken', 'observed', 'acted', 'checked', 'published')


class Steps(NamedTuple):
    """The rows of `~/step`, T of them; `times` (T, 7) monotonic s, in the order of STEP_TIMES."""

    received: NDArray[np.int64]
    slot: NDArray[np.int64]
    gait: NDArray[np.int64]
    times: Array
    sensor_stamps: Array
    command: Array
    observation: NDArray[np.float32]
    action: Array
    verdict: NDArray[np.int64]


class Series(NamedTuple):
    """Joint values over receive time (ns): `value` (T, N) rad, in the order of `names`.

    `stamp` is the header's, ns of the publisher's ROS time.
    """

    received: NDArray[np.int64]
    stamp: NDArray[np.int64]
    names: tuple[str, ...]
    value: Array


class Tape(NamedTuple):
    """A bag, and which of its topics is which; `names` maps the interface's to the bag's."""

    bag: Bag
    names: dict[str, str]

    def topic(self, name: str) -> str:
        """Return the bag's name of an interface topic; UserError if it is not in the bag."""
        if name not in self.names:
            held = ', '.join(sorted(self.bag.topics)) or 'nothing'
            raise UserError(f'{self.bag.path}: no {name} in it (it has {held})')
        return self.names[name]


def open_tape(path: Path, namespace: str = '') -> Tape:
    """Read a bag and find the interface's topics in it, under `namespace` if there are several."""
    bag = read_bag(path)
    names: dict[str, str] = {}
    for name, kinds in TYPES.items():
        prefix = f'/{namespace.strip("/")}'.rstrip('/')
        found = [
            topic
            for topic, held in bag.topics.items()
            if held.messages
            and (topic == f'{prefix}/{name}' if namespace else topic.endswith(f'/{name}'))
        ]
        if len(found) > 1:
            raise UserError(f'{path}: several {name}: {", ".join(found)}; choose with --namespace')
        if found and (kind := bag.topics[found[0]].kind) not in kinds:
            raise UserError(f'{path}: {found[0]} is {kind}, not {" or ".join(kinds)}')
        if found:
            names[name] = found[0]
    return Tape(bag, names)


def read_steps(tape: Tape) -> Steps:
    """Return the rows of `~/step`; UserError if it is absent or its rows differ in layout."""
    rows, received, layout = [], [], None
    for time, message in tape.bag.decoded(tape.topic(STEP)):
        blocks = tuple((d.label, d.size) for d in message.layout.dim)
        layout = layout or blocks
        if blocks != layout or len(message.data) != sum(size for _, size in blocks):
            raise UserError(f'{tape.bag.path}: rows of {STEP} differ in layout')
        rows.append(message.data)
        received.append(time)
    assert layout is not None  # a topic in `names` has messages
    table = np.array(rows)
    ends = np.cumsum([size for _, size in layout])
    blocks_of = dict(
        zip((label for label, _ in layout), np.split(table, ends[:-1], axis=1), strict=True)
    )
    try:
        return Steps(
            np.array(received),
            blocks_of['tick'][:, 0].astype(np.int64),
            blocks_of['tick'][:, 1].astype(np.int64),
            blocks_of['times'],
            blocks_of['sensor_stamps'],
            blocks_of['command'],
            blocks_of['observation'].astype(np.float32),
            blocks_of['action'],
            blocks_of['verdict'][:, 0].astype(np.int64),
        )
    except KeyError as error:
        raise UserError(f'{tape.bag.path}: {STEP} has no block {error}') from None


def observation_hash(observations: NDArray[np.float32]) -> str:
    """Return the sha256 of an observation tape (T, n): devices compared saw the same one."""
    return hashlib.sha256(np.ascontiguousarray(observations).tobytes()).hexdigest()


def read_series(tape: Tape, name: str) -> Series:
    """Return the positions of a JointState topic whose joints keep their order."""
    received, stamps, values, names = [], [], [], None
    for time, message in tape.bag.decoded(tape.topic(name)):
        names = names or tuple(message.name)
        if tuple(message.name) != names or len(message.position) != len(names):
            raise UserError(f'{tape.bag.path}: the joints of {name} change on the way')
        received.append(time)
        stamps.append(_stamp(message))
        values.append(np.asarray(message.position))
    assert names is not None
    return Series(np.array(received), np.array(stamps), names, np.array(values))


def targets(tape: Tape) -> Series:
    """Return the recorded joint targets (T, N) rad."""
    return read_series(tape, TARGETS)


Sample = JointSample | ImuSample | CommandSample | OdomSample


def samples(tape: Tape, name: str) -> Iterator[tuple[int, Sample]]:
    """Yield receive time (ns) and the sample that the router would make of each message."""
    for received, message in tape.bag.decoded(tape.topic(name)):
        yield received, _MAKE[name](message, Stamps(_stamp(message), 0, received, 0))


def _stamp(message: Any) -> int:
    """Return a message's header stamp in ns, 0 where it has none."""
    header = getattr(message, 'header', None)
    return header.stamp.sec * 10**9 + header.stamp.nanosec if header else 0


def _joints(m: Any, stamps: Stamps) -> JointSample:
    return JointSample(tuple(m.name), np.array(m.position), np.array(m.velocity), stamps)


def _imu(m: Any, stamps: Stamps) -> ImuSample:
    q, w, a = m.orientation, m.angular_velocity, m.linear_acceleration
    absent = 'orientation' if m.orientation_covariance[0] == -1.0 else ''
    quat = np.array([q.x, q.y, q.z, q.w])
    return ImuSample(
        m.header.frame_id,
        quat,
        np.array([w.x, w.y, w.z]),
        np.array([a.x, a.y, a.z]),
        absent,
        stamps,
    )


def _command(m: Any, stamps: Stamps) -> CommandSample:
    twist = getattr(m, 'twist', m)
    return CommandSample(np.array([twist.linear.x, twist.linear.y, twist.angular.z]), stamps)


def _odom(m: Any, stamps: Stamps) -> OdomSample:
    v = m.twist.twist.linear
    return OdomSample(np.array([v.x, v.y, v.z]), stamps)


_MAKE: Mapping[str, Callable[[Any, Stamps], Sample]] = {
    JOINTS: _joints,
    IMU: _imu,
    COMMAND: _command,
    ODOM: _odom,
}
