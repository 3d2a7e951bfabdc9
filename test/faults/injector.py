"""What can go wrong between a driver and the router: scripted faults, with a seed.

Each fault turns one message into those that arrive in its place, each with its delay in ns.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Message = Any
Sent = list[tuple[int, Message]]
MS = 1_000_000
STALE = '60 ms without a good sample'


class Injector:
    """Passes messages on until `begin`, and through `fault` from then on."""

    def __init__(self, fault: 'Fault', seed: int, rate_hz: int = 50) -> None:
        self.rate_hz = rate_hz
        self.rng = np.random.default_rng(seed)
        self.fault = fault
        self.on = False
        self.count = 0
        self.kept: dict[str, Message] = {}

    def __call__(self, topic: str, message: Message) -> Sent:
        if not self.on or self.fault.apply is None or topic not in self.fault.topics:
            return [(0, copy.deepcopy(message))]
        self.count += 1
        return self.fault.apply(self, topic, copy.deepcopy(message))


Apply = Callable[[Injector, str, Message], Sent]


@dataclass(frozen=True)
class Fault:
    """A fault and what must come of it.

    `layer` is the counter that must speak, `outcome` the mode it must end in within a second.
    `act` names what the harness does itself, where no message is changed. `also` are further
    layers that may trip, where samples look wrong beside those before the fault or after it.
    """

    layer: str
    outcome: str
    limit: str
    apply: Apply | None = None
    topics: tuple[str, ...] = ('joint_states', 'imu/data')
    act: str = ''
    also: tuple[str, ...] = ()

    @property
    def explains(self) -> frozenset[str]:
        """The layers of the trips that this fault may cause."""
        if self.outcome == 'RUN':
            return frozenset(self.also)
        named = self.layer.removeprefix('held.') or 'request'
        return frozenset({named, *self.also, *(['stale'] if self.limit == STALE else [])})


def _drop(_i: Injector, _t: str, _m: Message) -> Sent:
    return []


def _delay(_i: Injector, _t: str, m: Message) -> Sent:
    return [(150 * MS, m)]


def _duplicate(i: Injector, topic: str, m: Message) -> Sent:
    """Every second message is the one before once more."""
    kept, i.kept[topic] = i.kept.get(topic), m
    return [(0, kept if kept is not None and i.count % 4 < 2 else m)]


def _repeat(i: Injector, topic: str, m: Message) -> Sent:
    return [(0, i.kept.setdefault(topic, m))]


def _freeze(i: Injector, topic: str, m: Message) -> Sent:
    kept = copy.deepcopy(i.kept.setdefault(topic, m))
    kept.header.stamp = m.header.stamp
    return [(0, kept)]


def _reorder(i: Injector, topic: str, m: Message) -> Sent:
    """Every third message is followed by the one two before it."""
    older = i.kept.get(f'{topic} older')
    i.kept[f'{topic} older'] = i.kept.get(topic, m)
    i.kept[topic] = m
    return [(0, m), (0, older)] if older is not None and i.count % 3 == 0 else [(0, m)]


def _nan_position(i: Injector, _t: str, m: Message) -> Sent:
    m.position[int(i.rng.integers(29))] = float('nan')
    return [(0, m)]


def _inf_velocity(i: Injector, _t: str, m: Message) -> Sent:
    m.velocity[int(i.rng.integers(29))] = float('inf')
    return [(0, m)]


def _nan_gyro(_i: Injector, _t: str, m: Message) -> Sent:
    m.angular_velocity.y = float('nan')
    return [(0, m)]


def _short(_i: Injector, _t: str, m: Message) -> Sent:
    m.velocity = list(m.velocity)[:-1]
    return [(0, m)]


def _no_velocity(_i: Injector, _t: str, m: Message) -> Sent:
    m.velocity = []
    return [(0, m)]


def _missing(i: Injector, _t: str, m: Message) -> Sent:
    at = int(i.rng.integers(29))
    m.name, m.position, m.velocity = (
        [v for k, v in enumerate(values) if k != at] for values in (m.name, m.position, m.velocity)
    )
    return [(0, m)]


def _twice(_i: Injector, _t: str, m: Message) -> Sent:
    m.name = [*list(m.name)[:-1], m.name[0]]
    return [(0, m)]


def _shuffled(i: Injector, _t: str, m: Message) -> Sent:
    order = i.rng.permutation(29)
    m.name, m.position, m.velocity = (
        [values[k] for k in order] for values in (list(m.name), m.position, m.velocity)
    )
    return [(0, m)]


def _degrees(_i: Injector, _t: str, m: Message) -> Sent:
    m.position = [float(v) for v in np.degrees(m.position)]
    return [(0, m)]


def _spike(i: Injector, _t: str, m: Message) -> Sent:
    if i.count % 10 == 1:
        m.position[int(i.rng.integers(29))] = 100.0
    return [(0, m)]


def _wrong_velocity(_i: Injector, _t: str, m: Message) -> Sent:
    m.velocity = [float(v) + 3.0 for v in m.velocity]
    return [(0, m)]


def _wxyz(_i: Injector, _t: str, m: Message) -> Sent:
    q = m.orientation
    q.x, q.y, q.z, q.w = q.w, q.x, q.y, q.z
    return [(0, m)]


def _zero_quaternion(_i: Injector, _t: str, m: Message) -> Sent:
    q = m.orientation
    q.x = q.y = q.z = q.w = 0.0
    return [(0, m)]


def _leaning(_i: Injector, _t: str, m: Message) -> Sent:
    """An orientation that is 0.8 rad off, with an accelerometer that knows better."""
    q = m.orientation
    q.x, q.w = q.x + float(np.sin(0.4)), float(np.cos(0.4))
    return [(0, m)]


def _absent(_i: Injector, _t: str, m: Message) -> Sent:
    m.orientation_covariance[0] = -1.0
    return [(0, m)]


def _other_frame(_i: Injector, _t: str, m: Message) -> Sent:
    m.header.frame_id = 'torso'
    return [(0, m)]


def _spin(_i: Injector, _t: str, m: Message) -> Sent:
    m.angular_velocity.z = 12.0
    return [(0, m)]


def _step_stamp(seconds: int) -> Apply:
    def apply(_i: Injector, _t: str, m: Message) -> Sent:
        m.header.stamp.sec = max(0, m.header.stamp.sec + seconds)
        return [(0, m)]

    return apply


def _unstamped(_i: Injector, _t: str, m: Message) -> Sent:
    m.header.stamp.sec = m.header.stamp.nanosec = 0
    return [(0, m)]


def _burst(i: Injector, _t: str, m: Message) -> Sent:
    """As many messages in the place of one as make 1 kHz."""
    return [(0, copy.deepcopy(m)) for _ in range(1000 // i.rate_hz)]


THINNED = ('stale',)
"""Every fifth tick reads a dropped sample: 20 ms of a busy machine are then enough for 60 ms."""
JOINTS, IMU = ('joint_states',), ('imu/data',)

FAULTS: dict[str, Fault] = {
    'joint_states lost': Fault('held.stale', 'DAMP', STALE, _drop, JOINTS),
    'imu/data lost': Fault('held.stale', 'DAMP', STALE, _drop, IMU),
    'every sample 150 ms late': Fault(
        'late', 'DAMP', '60 ms later than it can be', _delay, also=('stale',)
    ),
    'samples doubled': Fault('duplicate', 'RUN', 'dropped', _duplicate, also=THINNED),
    'one sample repeated': Fault('duplicate', 'DAMP', STALE, _repeat),
    'values frozen, stamps go on': Fault('held.frozen', 'DAMP', '100 ms the same bits', _freeze),
    'samples out of order': Fault('stamp_order', 'RUN', 'dropped', _reorder, also=THINNED),
    'a position is NaN': Fault('not_finite', 'DAMP', STALE, _nan_position, JOINTS),
    'a velocity is infinite': Fault('not_finite', 'DAMP', STALE, _inf_velocity, JOINTS),
    'a gyro axis is NaN': Fault('not_finite', 'DAMP', STALE, _nan_gyro, IMU),
    'velocities one short': Fault('array_length', 'DAMP', STALE, _short, JOINTS),
    'no velocities': Fault('array_length', 'DAMP', STALE, _no_velocity, JOINTS),
    'a joint is missing': Fault('joint_names', 'DAMP', STALE, _missing, JOINTS),
    'a joint is named twice': Fault('joint_names', 'DAMP', STALE, _twice, JOINTS),
    'joints in another order': Fault('', 'RUN', 'matched by name', _shuffled, JOINTS),
    'positions in degrees': Fault('joint_position', 'DAMP', STALE, _degrees, JOINTS),
    'a spike in one sample of ten': Fault(
        'joint_position', 'RUN', 'dropped', _spike, JOINTS, also=THINNED
    ),
    'velocities 3 rad/s off': Fault(
        'held.velocity', 'DAMP', '1 rad/s for 0.5 s', _wrong_velocity, JOINTS
    ),
    'quaternion as w, x, y, z': Fault('tilt', 'DAMP', '1 rad of tilt', _wxyz, IMU),
    'orientation 0.8 rad off': Fault(
        'held.gravity', 'DAMP', '0.6 rad from the accelerometer', _leaning, IMU
    ),
    'quaternion of zeros': Fault('quaternion_norm', 'DAMP', STALE, _zero_quaternion, IMU),
    'orientation marked absent': Fault('imu_absent', 'DAMP', STALE, _absent, IMU),
    'the IMU of another body': Fault('imu_frame', 'DAMP', STALE, _other_frame, IMU),
    'base turning at 12 rad/s': Fault('base_rate', 'DAMP', '8 rad/s', _spin, IMU),
    "sender's clock back by 5 s": Fault('', 'RUN', 'no fault', _step_stamp(-5)),
    "sender's clock on by 5 s": Fault(
        '', 'RUN', 'no fault', _step_stamp(5), also=('stamp_order', 'stale')
    ),
    'no stamps': Fault('', 'RUN', 'no fault', _unstamped),
    'bursts of 1 kHz': Fault('', 'RUN', 'newest only', _burst),
    'a second sender of sensors': Fault(
        'second_sender', 'DAMP', 'one message', act='second sensors'
    ),
    'a second sender of joint_command': Fault(
        'foreign_command', 'DAMP', 'one message', act='second command'
    ),
    'the node stopped for 0.4 s': Fault('missed_slots', 'DAMP', 'the first tick', act='stop'),
    'e-stop': Fault('', 'DAMP', 'at once', act='estop'),
}
