"""Admits samples one by one and answers with the robot's state, or with why there is none.

A sample that fails a check is dropped and counted, and the last good one stays in use until it
is stale. Nothing is repaired, padded or guessed. Stamps are judged in streams.py, what the
samples say about each other in consistency.py; every refusal is counted here, by its name.
"""

import math
from collections import Counter
from typing import NamedTuple, TypeVar

import numpy as np

from g1_policy_node.consistency import FrozenCheck, GravityCheck, S, VelocityCheck
from g1_policy_node.contract import Contract
from g1_policy_node.joints import JointOrder
from g1_policy_node.observation import needs_odom, projected_gravity
from g1_policy_node.safety import SafetyLimits
from g1_policy_node.streams import Stream
from g1_policy_node.types import (
    Array,
    Fault,
    ImuSample,
    Inputs,
    JointSample,
    OdomSample,
    RobotState,
    Stamps,
    every,
)


class _Joints(NamedTuple):
    position: Array
    velocity: Array
    stamps: Stamps


class _Imu(NamedTuple):
    gravity: Array
    ang_vel: Array
    stamps: Stamps


Good = TypeVar('Good', _Joints, _Imu, OdomSample)


class InputGate:
    """Keeps the newest good sample of each sensor. Times are ns on the tick clock.

    `hints` may say why a topic is silent (such as 'no publisher'), `senders` who publishes it;
    they only word the faults.
    """

    def __init__(
        self,
        contract: Contract,
        limits: SafetyLimits,
        state_timeout_ns: int,
        imu_frames: tuple[str, ...] = (),
    ) -> None:
        self._limits = limits
        self._order = JointOrder(contract.joint_names)
        low, high = contract.per_joint('position_limits').T
        speed = contract.per_joint('velocity_limit') * limits.max_joint_velocity_ratio
        # Position and velocity one after another, to be checked in one step.
        self._low = np.concatenate((low - limits.measured_margin, -speed))
        self._high = np.concatenate((high + limits.measured_margin, speed))
        self._frames = (contract.imu_frame, *imu_frames)
        self._needs_odom = needs_odom(contract)
        self._timeout = state_timeout_ns
        self.counters: Counter[str] = Counter()
        self.hints: dict[str, str] = {}
        self.senders: dict[str, str] = {}
        self.reset()

    def reset(self) -> None:
        """Forget every sample; counters stay."""
        self._joints: _Joints | None = None
        self._imu: _Imu | None = None
        self._odom: OdomSample | None = None
        self._seen: dict[str, object] = {}
        self._rejected: dict[str, Fault] = {}
        self._foreign: tuple[str, int] | None = None  # who, when
        self._second: tuple[Fault, int] | None = None  # a second sender of sensors, when
        self._streams = {
            # Half the timeout: a driver that starts anew is taken before its silence is a HOLD.
            topic: Stream(topic, self._timeout, self._timeout // 2)
            for topic in ('joint_states', 'imu/data', 'odom')
        }
        self.velocity = VelocityCheck(len(self._order.names), self._limits.max_velocity_error)
        self.gravity = GravityCheck()
        self.frozen = FrozenCheck()

    def clock_stepped(self) -> None:
        """Note that the system clock was set: delays measured before say nothing now."""
        for stream in self._streams.values():
            stream.clock_stepped()

    def admit(self, inputs: Inputs, now: int) -> None:
        """Check every sample not seen before, and keep the good ones."""
        if inputs.foreign_command:
            self.counters['foreign_command'] += 1
            self._foreign = inputs.foreign_command, now
        if inputs.joints and self._is_new('joint_states', inputs.joints):
            joints = self._check_joints(inputs.joints, now)
            self._joints = self._settle('joint_states', joints, self._joints)
            if isinstance(joints, _Joints):
                at = joints.stamps.header or joints.stamps.received
                self.velocity.update(joints.position, joints.velocity, at)
                self.frozen.update('joint positions', joints.position, now)
                self.frozen.update('joint velocities', joints.velocity, now)
        if inputs.imu and self._is_new('imu/data', inputs.imu):
            imu = self._check_imu(inputs.imu, now)
            self._imu = self._settle('imu/data', imu, self._imu)
            if isinstance(imu, _Imu):
                self.gravity.update(imu.gravity, inputs.imu.lin_acc, imu.stamps.received)
                self.frozen.update('the orientation', imu.gravity, now)
                self.frozen.update('the angular velocity', imu.ang_vel, now)
        if self._needs_odom and inputs.odom and self._is_new('odom', inputs.odom):
            self._odom = self._settle('odom', self._check_odom(inputs.odom, now), self._odom)

    def ages(self, now: int) -> tuple[int, int]:
        """Return the ages in ns of the joint and IMU samples in use, -1 where there is none."""
        joints, imu = self._joints, self._imu
        return (
            now - joints.stamps.received if joints else -1,
            now - imu.stamps.received if imu else -1,
        )

    def transports(self) -> tuple[int, int]:
        """Return DDS receive minus source time in ns of both samples, -1 where unknown."""
        joints, imu = self._joints, self._imu
        return joints.stamps.transport if joints else -1, imu.stamps.transport if imu else -1

    def state(self, now: int) -> RobotState | Fault:
        """Return the robot's state from fresh samples, or the first thing that is missing."""
        newest: dict[str, _Joints | _Imu | OdomSample | None] = {
            'joint_states': self._joints,
            'imu/data': self._imu,
        }
        if self._needs_odom:
            newest['odom'] = self._odom
        for topic, sample in newest.items():
            fault = self._freshness(topic, sample.stamps if sample else None, now)
            if fault:
                return fault
        fault = self._contradiction(now)
        if fault:
            return fault
        assert self._joints and self._imu
        return RobotState(
            self._joints.position,
            self._joints.velocity,
            self._imu.ang_vel,
            self._imu.gravity,
            self._odom.lin_vel if self._odom else None,
        )

    def frozen_fault(self, now: int) -> Fault | None:
        """Return a fault if a field keeps its very bits, which no robot that balances does."""
        field, since = self.frozen.longest(now)
        if since <= self._limits.frozen_time * S:
            return None
        return Fault('frozen', f'{field} did not change for {since / 1e6:.0f} ms')

    def _contradiction(self, now: int) -> Fault | None:
        """Return what the newest samples, each good by itself, say against each other."""
        if self._second and abs(now - self._second[1]) <= self._timeout:
            return self._second[0]
        if self._foreign and abs(now - self._foreign[1]) <= self._timeout:
            return Fault('foreign_command', f'joint_command is also sent by {self._foreign[0]}')
        angle = self.gravity.angle
        if angle > self._limits.max_gravity_error:
            against = f'{angle:.1f} rad from where the accelerometer feels it'
            return Fault('gravity', f'imu/data: gravity by the orientation is {against}')
        if self.velocity.over_for > self._limits.velocity_error_time * S:
            error = np.abs(self.velocity.error)
            who = f'velocity of {self._order.names[int(error.argmax())]}'
            off = f'{error.max():.1f} rad/s off the change of its position'
            return Fault('velocity', f'joint_states: {who} is {off}')
        return None

    def _freshness(self, topic: str, stamps: Stamps | None, now: int) -> Fault | None:
        # A sample of the future is one of another time; a tick ahead it may be (clock.py).
        if stamps is not None and abs(now - stamps.received) <= self._timeout:
            return None
        rejected = self._rejected.get(topic)
        if rejected:
            return rejected
        if stamps is None:
            hint = self.hints.get(topic, '')
            return Fault('no_data', f'no {topic} yet' + (f' ({hint})' if hint else ''))
        limit_ms = self._timeout // 1_000_000
        return Fault('stale', f'{topic} is stale: no good sample for more than {limit_ms} ms')

    def _is_new(self, topic: str, sample: JointSample | ImuSample | OdomSample) -> bool:
        new = self._seen.get(topic) is not sample
        self._seen[topic] = sample
        return new

    def _settle(self, topic: str, checked: Good | Fault, last: Good | None) -> Good | None:
        """Return the sample to use from now on: the one just checked, or the last good one."""
        if isinstance(checked, Fault):
            self._rejected[topic] = checked
            self.counters[checked.name] += 1
            return last
        self._rejected.pop(topic, None)
        return checked

    def _check_stamps(
        self, topic: str, new: Stamps, last: _Joints | _Imu | OdomSample | None, now: int
    ) -> Fault | None:
        fault = self._streams[topic].check(new, last.stamps if last else None, now)
        if fault and fault.name == 'second_sender':
            if topic in self.senders:
                fault = fault._replace(reason=f'{fault.reason} (senders: {self.senders[topic]})')
            self._second = fault, now
        return fault

    def _check_joints(self, sample: JointSample, now: int) -> _Joints | Fault:
        fault = self._check_stamps('joint_states', sample.stamps, self._joints, now)
        if fault:
            return fault
        index = self._order.index(sample.names)
        if index is None:
            return Fault('joint_names', f'joint_states: {self._order.mismatch}')
        count = len(self._order.names)
        if len(sample.position) != count or len(sample.velocity) != count:
            return _wrong_length(sample)
        both = np.concatenate((sample.position[index], sample.velocity[index]))
        if not every((both >= self._low) & (both <= self._high)):  # not a number is not within
            return self._beyond(both)
        return _Joints(both[:count], both[count:], sample.stamps)

    def _beyond(self, both: Array) -> Fault:
        """Name the first joint whose position or velocity, one after another, cannot be."""
        names = self._order.names
        finite = np.isfinite(both)
        away = ~((both >= self._low) & (both <= self._high))
        at = int((~finite if not finite.all() else away).argmax())
        name, is_velocity = names[at % len(names)], at >= len(names)
        if not finite.all():
            field = 'velocities' if is_velocity else 'positions'
            return Fault('not_finite', f'joint_states: {field} of {name} are not finite')
        if is_velocity:
            speed = f'{name} at {both[at]:.1f} rad/s'
            return Fault('joint_speed', f'joint_states: {speed} is not possible')
        place = f'{name} at {both[at]:.2f} rad'
        return Fault('joint_position', f'joint_states: {place} is beyond its stop')

    def _check_imu(self, sample: ImuSample, now: int) -> _Imu | Fault:
        fault = self._check_stamps('imu/data', sample.stamps, self._imu, now)
        if fault:
            return fault
        if sample.frame_id not in self._frames:
            wanted = ' or '.join(self._frames)
            return Fault('imu_frame', f'imu/data is in frame {sample.frame_id!r}, not {wanted}')
        if sample.absent:
            return Fault('imu_absent', f'imu/data says it has no {sample.absent}')
        quat, ang_vel = sample.quat_xyzw.tolist(), sample.ang_vel.tolist()
        if not all(map(math.isfinite, (*quat, *ang_vel, *sample.lin_acc.tolist()))):
            return Fault('not_finite', 'imu/data is not finite')
        norm = math.hypot(*quat)
        if abs(norm - 1.0) > self._limits.quaternion_tolerance:
            return Fault('quaternion_norm', f'imu/data: the quaternion has norm {norm:.3f}, not 1')
        if max(map(abs, ang_vel)) > self._limits.max_ang_vel:
            return Fault('ang_vel', f'imu/data: {sample.ang_vel} rad/s is not possible')
        return _Imu(projected_gravity(sample.quat_xyzw / norm), sample.ang_vel, sample.stamps)

    def _check_odom(self, sample: OdomSample, now: int) -> OdomSample | Fault:
        fault = self._check_stamps('odom', sample.stamps, self._odom, now)
        if fault:
            return fault
        lin_vel = sample.lin_vel.tolist()
        if not all(map(math.isfinite, lin_vel)):
            return Fault('not_finite', 'odom is not finite')
        if max(map(abs, lin_vel)) > self._limits.max_lin_vel:
            return Fault('lin_vel', f'odom: {sample.lin_vel} m/s is not possible')
        return sample


def _wrong_length(sample: JointSample) -> Fault:
    """Say which array is not as long as the names."""
    fields = {'positions': sample.position, 'velocities': sample.velocity}
    wrong = next(name for name, v in fields.items() if len(v) != len(sample.names))
    count = f'{len(sample.names)} names but {len(fields[wrong])} {wrong}'
    return Fault('array_length', f'joint_states has {count}')
