"""Every fault once, in lock-step, against the real node over DDS."""

from collections.abc import Iterator

import numpy as np
import pytest
from faults.injector import FAULTS, Injector
from rclpy.node import Node
from rig import TICK_NS, Rig, stamp
from samples import CONTRACT, LIMITS
from sensor_msgs.msg import JointState

from g1_policy_node.newest import COMMAND_QOS, SENSOR_QOS

pytestmark = pytest.mark.ros
LOW, HIGH = CONTRACT.per_joint('position_limits').T
STEP = LIMITS.max_target_rate * CONTRACT.step_dt
TICKS = 60


class FaultyRig(Rig):
    """A rig whose sensors come through an injector, and where somebody else may send too."""

    def __init__(self) -> None:
        super().__init__(auto_run=True)
        self.injector = Injector(FAULTS['no stamps'], 0)
        self.waiting: list[tuple[int, str, object]] = []
        self.real = {'joint_states': self.joint_states, 'imu/data': self.imu}
        self.joint_states = Relay(self, 'joint_states')
        self.imu = Relay(self, 'imu/data')
        self.stranger = Node('stranger', use_global_arguments=False)
        self.extra = {
            'second sensors': self.stranger.create_publisher(
                JointState, 'joint_states', SENSOR_QOS
            ),
            'second command': self.stranger.create_publisher(
                JointState, 'joint_command', COMMAND_QOS
            ),
        }
        self.until(lambda: all(p.get_subscription_count() for p in self.extra.values()), 'match')

    def publish_sensors(self, **which: bool) -> None:
        super().publish_sensors(**which)
        due = [item for item in self.waiting if item[0] <= self.now]
        self.waiting = [item for item in self.waiting if item[0] > self.now]
        for _, topic, message in due:
            self.real[topic].publish(message)
        if self.injector.on:
            act = self.injector.fault.act
            if act in self.extra:
                self.extra[act].publish(self._strange())

    def _strange(self) -> JointState:
        """All zeros, as a joint_state_publisher sends beside the driver."""
        message = JointState(name=list(CONTRACT.joint_names), position=[0.0] * 29)
        message.header.stamp = stamp(self.now)
        message.velocity = [0.0] * 29
        return message

    @property
    def counters(self) -> dict[str, int]:
        return self.node._prepared.counters()


class Relay:
    """Stands in for a publisher: what it is given goes through the injector."""

    msg_type = JointState

    def __init__(self, rig: FaultyRig, topic: str) -> None:
        self._rig, self._topic = rig, topic

    def publish(self, message: object) -> None:
        for delay, sent in self._rig.injector(self._topic, message):
            self._rig.waiting.append((self._rig.now + delay, self._topic, sent))

    def get_subscription_count(self) -> int:
        return self._rig.real[self._topic].get_subscription_count()


@pytest.fixture(scope='module')
def shared_rig() -> Iterator[FaultyRig]:
    rig = FaultyRig()
    yield rig
    rig.close()


@pytest.fixture
def rig(shared_rig: FaultyRig) -> FaultyRig:
    """Return the rig in RUN, with good sensors."""
    shared_rig.injector.on = False
    shared_rig.waiting.clear()
    for _ in range(60):  # long enough for every low pass, and for another sender to be taken
        shared_rig.step()
    if shared_rig.mode == 'DAMP':
        assert shared_rig.trigger('reset').success, shared_rig.reason
    shared_rig.until_mode('RUN')
    for _ in range(10):
        assert shared_rig.step() is not None
    shared_rig.told.clear()
    return shared_rig


@pytest.mark.parametrize('name', [n for n, fault in FAULTS.items() if fault.act != 'stop'])
def test_a_fault_ends_as_the_table_says_and_no_unsafe_command_leaves(rig, name: str) -> None:
    fault = FAULTS[name]
    before = rig.counters.get(fault.layer, 0)
    previous = np.array(rig.step().position)
    rig.injector = Injector(fault, seed=0)
    rig.injector.on = True
    if fault.act == 'estop':
        assert rig.trigger('estop').success
    for _ in range(TICKS):
        command = rig.step()
        if command is None:
            break
        target = np.array(command.position)
        assert np.all(np.isfinite(target))
        assert np.all(target >= LOW - LIMITS.position_margin - 1e-9)
        assert np.all(target <= HIGH + LIMITS.position_margin + 1e-9)
        assert np.all(np.abs(target - previous) <= STEP + 1e-9)
        previous = target
    assert rig.mode == fault.outcome, rig.told
    assert not fault.layer or rig.counters.get(fault.layer, 0) > before, rig.counters
    if fault.outcome == 'RUN':
        assert not rig.told
    assert rig.node._loop.is_alive()


def test_a_clock_that_jumps_ahead_by_more_than_hold_timeout_damps(rig) -> None:
    rig.now += 50 * TICK_NS
    rig.step()
    assert rig.mode == 'DAMP'
    assert 'slots in a row' in rig.reason


def test_a_clock_that_jumps_back_by_half_a_tick_makes_no_negative_time(rig) -> None:
    rig.start_clock(rig.now - TICK_NS // 2)
    for _ in range(5):
        assert rig.step() is not None
    assert rig.mode == 'RUN'
