"""The managed node over real DDS, in lock-step with a driver of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import rclpy
from lifecycle_msgs.msg import State
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rig import TICK_NS, Rig, stamp
from rosgraph_msgs.msg import Clock
from samples import CONTRACT
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.newest import SENSOR_QOS
from g1_policy_node.node import PolicyNode
from g1_policy_node.ros_io import STEP_BLOCKS
from g1_policy_node.types import UserError

pytestmark = pytest.mark.ros
BUNDLE = load_bundle(resolve_bundle('g1_walk'))
SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE


@pytest.fixture
def make_rig() -> Iterator:
    rigs = []

    def make(**options) -> Rig:
        rigs.append(Rig(**options))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


def test_it_starts_through_every_mode_and_commands_by_name_in_every_slot(make_rig) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    for _ in range(20):
        command = rig.step()
        assert sorted(command.name) == sorted(CONTRACT.joint_names)
        assert len(command.position) == 29
        assert command.header.frame_id == BUNDLE.contract_sha256[:16]
        assert command.header.stamp == stamp(rig.now)
    modes = [told.partition(':')[0] for told in rig.told]
    order = [m for i, m in enumerate(modes) if not i or modes[i - 1] != m]
    assert order == ['INACTIVE', 'WAITING', 'RAMP', 'READY', 'RUN']
    assert rig.node._loop.misses.misses == 0


def test_the_order_of_joint_states_makes_no_difference_at_all(make_rig) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    rng = np.random.default_rng(0)
    frozen = rig.pose + 0.05 * rng.normal(size=29)
    observations = []
    for shuffled in (False, True):
        rig.names = list(rng.permutation(rig.names)) if shuffled else rig.names
        rig.pose = frozen
        rig.step()
        rig.pose = frozen
        rig.step()
        observations.append(last_step(rig)['observation'][9:67])
    np.testing.assert_array_equal(*observations)


def last_step(rig: Rig) -> dict[str, np.ndarray]:
    got = []
    rig.until(lambda: got.append(rig.steps.take()) or got[-1] is not None, '~/step')
    message = got[-1].message
    ends = np.cumsum([dim.size for dim in message.layout.dim])
    blocks = np.split(np.array(message.data), ends[:-1])
    return dict(zip([dim.label for dim in message.layout.dim], blocks, strict=True))


def test_step_carries_the_whole_tick_and_its_observation_gives_its_action(make_rig) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    rig.step()
    step = last_step(rig)
    assert tuple(step) == STEP_BLOCKS
    assert step['observation'].shape == (73,)
    np.testing.assert_array_equal(step['command'], [0.5, 0, 0])
    np.testing.assert_allclose(step['sensor_stamps'], rig.now * 1e-9)
    actor = load_actor(CONTRACT.network, BUNDLE.weights, 'cpu')
    np.testing.assert_allclose(
        actor(step['observation'].astype(np.float32)), step['action'], atol=1e-6
    )
    times = step['times']
    assert np.all(np.diff(times) >= 0), times  # each stage after the one before


def test_a_command_as_old_as_the_tick_itself_is_not_recorded_as_none(make_rig) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    rig.step()
    assert rig.node._recorder.columns(-1)['command_age'].tolist() == [0]


def test_lost_joint_states_hold_then_damp_and_reset_starts_over_when_they_are_back(
    make_rig,
) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    last = rig.step()
    held = []
    while rig.mode != 'DAMP':
        command = rig.step(joints=False)
        if rig.mode == 'HOLD':
            held.append(command.position)
        elif rig.mode == 'RUN':
            last = command
    assert held == [last.position] * 13  # 250 ms of 20 ms, both ends counted
    assert rig.mode == 'DAMP'
    assert 'joint_states is stale' in rig.reason
    refused = rig.trigger('reset')
    assert not refused.success
    assert 'stale' in refused.message
    rig.step()
    assert rig.trigger('reset').success
    rig.until_mode('RUN')


def test_no_clock_is_said_and_nothing_ticks(make_rig) -> None:
    rig = make_rig()
    rig.until(lambda: rig.reason == 'no /clock yet, and use_sim_time is set', 'the reason')
    assert rig.mode == 'WAITING'
    assert rig.node._recorder.rows == 0


def test_a_paused_clock_is_no_miss_and_a_jump_back_starts_the_slots_anew(make_rig) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    rows = rig.node._recorder.rows
    for _ in range(20):
        rig.publish_sensors()
    assert rig.node._recorder.rows == rows
    rig.start_clock(rig.now - 50 * TICK_NS)
    rig.step()
    for _ in range(5):
        assert rig.step() is not None
    assert rig.node._loop.misses.misses == 0


def test_estop_works_before_configuration_and_stays_through_the_lifecycle(make_rig) -> None:
    rig = make_rig(start=False)
    assert rig.trigger('estop').success
    assert rig.mode == 'DAMP'
    assert rig.node.trigger_configure() is SUCCESS
    assert rig.node.trigger_activate() is SUCCESS
    rig.until(lambda: rig.commands_matched, 'discovery')
    for _ in range(5):
        assert rig.step() is None
    assert rig.mode == 'DAMP'
    assert rig.node.trigger_deactivate() is SUCCESS
    assert rig.mode == 'DAMP'
    assert rig.trigger('reset').success
    assert rig.mode == 'INACTIVE'


def test_estop_answers_after_the_last_command(make_rig) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    assert rig.trigger('estop').success
    rig.commands.take()
    for _ in range(10):
        assert rig.step() is None
    assert rig.commands.take() is None
    assert rig.node._loop.is_alive()


def test_run_needs_ready_and_says_so(make_rig) -> None:
    rig = make_rig()
    rig.until(lambda: 'no /clock yet' in rig.reason, 'the reason')
    refused = rig.run(True)
    assert not refused.success
    assert 'refused in WAITING: no /clock yet' in refused.message
    rig.until_mode('READY')
    assert rig.run(True).success
    rig.step()
    assert rig.mode == 'RUN'
    assert rig.run(False).success
    assert rig.mode == 'RUN'


@pytest.mark.parametrize(
    ('name', 'value', 'says'),
    [
        ('device', 'cuda:0', 'cuda:0: no NVIDIA driver or device here'),
        ('device', 'gpu', "'gpu' is neither cpu nor cuda:N"),
        ('device', 3, 'Wrong parameter type'),
        ('policy', 'other', 'clean up first'),
        ('use_sim_time', False, 'fixed once the node has started'),
        ('state_timeout', 0.5, 'read-only'),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_with_the_reason_and_the_walk_goes_on(
    make_rig, monkeypatch, name: str, value, says: str
) -> None:
    monkeypatch.setattr('g1_policy_node.devices.cuda_device_count', lambda: 0)
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    result = rig.set_parameter(name, value)
    assert not result.successful
    assert says in result.reason
    assert rig.step() is not None
    assert rig.mode == 'RUN'


def prepare_second_device(monkeypatch, load_actor) -> None:
    """Make the node prepare cuda:0 beside the cpu, here or anywhere, with such actors."""
    monkeypatch.setattr('g1_policy_node.prepared.prepared_devices', lambda _: ('cpu', 'cuda:0'))
    monkeypatch.setattr('g1_policy_node.prepared.predicted_p99', lambda *_: 0.001)
    monkeypatch.setattr('g1_policy_node.prepared.load_actor', load_actor)


def test_a_prepared_device_is_swapped_in_between_two_ticks_and_answers_when_done(
    make_rig, monkeypatch
) -> None:
    prepare_second_device(monkeypatch, stand_in_actor)
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    for device in ('cuda:0', 'cpu', 'cuda:0'):
        assert rig.set_parameter('device', device).successful
        assert rig.node._prepared.router.policy.actor.device == device
        assert rig.step() is not None
    assert rig.node._loop.misses.misses == 0


def test_estop_does_not_wait_for_the_comparison_of_a_switch(make_rig, monkeypatch) -> None:
    prepare_second_device(monkeypatch, stand_in_actor)
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    pressed = []
    estop = rig.tester.create_client(Trigger, 'g1_policy/estop')
    assert estop.wait_for_service(20.0)
    actor = rig.node._prepared.actors.get('cuda:0')
    run = type(actor).__call__

    def endless(self, observation):
        """A pass that ends when the robot is damped, on the thread of all other requests."""
        if self is actor and not pressed:
            pressed.append(estop.call_async(Trigger.Request()))
            rig.until(lambda: rig.mode == 'DAMP', 'DAMP')
        return run(self, observation)

    monkeypatch.setattr(type(actor), '__call__', endless)
    assert rig.set_parameter('device', 'cuda:0').successful
    rig.until(pressed[0].done, 'the answer of e-stop')
    assert pressed[0].result().success
    assert rig.reason == 'e-stop requested'


def test_a_prepared_device_whose_actions_differ_is_refused(make_rig, monkeypatch) -> None:
    prepare_second_device(monkeypatch, stand_in_actor)
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    rig.node._prepared.actors.get('cuda:0')._layers[3][1][:] += 1e-3
    result = rig.set_parameter('device', 'cuda:0')
    assert not result.successful
    assert 'differs from the golden one by 0.001' in result.reason
    assert rig.node._prepared.router.policy.actor.device == 'cpu'


def test_a_device_that_fails_in_a_tick_loses_no_slot_and_stays_off_until_it_is_set_again(
    make_rig, monkeypatch
) -> None:
    prepare_second_device(monkeypatch, FailingActor)
    rig = make_rig(auto_run=True, device='cuda:0')
    rig.until_mode('RUN')
    rig.step()
    FailingActor.failing = True
    for _ in range(3):
        assert rig.step() is not None
    assert rig.mode == 'RUN'
    assert rig.node._loop.misses.misses == 0
    policy, log = rig.node._prepared.router.policy, rig.node._prepared.log
    assert policy.actor.device == 'cpu'
    rig.until(lambda: log.latched is not None, 'the latched event')
    assert rig.node.get_parameter('device').value == 'cpu'
    refused = rig.set_parameter('device', 'cuda:0')
    assert not refused.successful
    assert refused.reason == 'cuda:0 cannot be used: CUDA error: device lost'
    FailingActor.failing = False
    assert rig.set_parameter('device', 'cuda:0').successful
    assert policy.actor.device == 'cuda:0'
    assert log.latched is None


class FailingActor:
    """The cpu's actor under another device's name, which can fail as torch does."""

    failing = False

    def __init__(self, network, weights, device) -> None:
        self.device, self.actor = device, load_actor(network, weights, 'cpu')

    def __call__(self, observation):
        if FailingActor.failing and self.device != 'cpu':
            raise RuntimeError('CUDA error: device lost\nadvice')
        return self.actor(observation)


def stand_in_actor(network, weights, device):
    """The cpu's actor under another device's name: this machine has no other device."""
    actor = load_actor(network, {k: v.copy() for k, v in weights.items()}, 'cpu')
    actor.device = device
    return actor


@pytest.mark.parametrize(
    ('parameters', 'says'),
    [
        ({'state_timeout': 'soon'}, "parameter state_timeout: expected a number, got 'soon'"),
        ({'state_timeout': 5.0}, 'parameter state_timeout'),
        ({'auto_run': 1}, 'parameter auto_run: expected true or false, got 1'),
        ({'devices': [1, 2]}, 'parameter devices'),
        ({'stat_timeout': 0.1}, 'parameter stat_timeout does not exist'),
        ({'safety.max_tlit': 1.0}, 'parameter safety.max_tlit does not exist'),
        ({'safety.max_tilt': True}, 'parameter safety.max_tilt: expected a number'),
    ],
)
def test_a_wrong_parameter_at_start_is_named(parameters, says: str) -> None:
    rclpy.init()
    try:
        with pytest.raises(UserError) as error:
            PolicyNode(
                parameter_overrides=[Parameter(n, value=v) for n, v in parameters.items()],
                use_global_arguments=False,
            )
        assert says in str(error.value)
        assert '\n' not in str(error.value)
    finally:
        rclpy.shutdown()


def test_an_int_is_taken_for_a_double(make_rig) -> None:
    rig = make_rig(start=False, **{'safety.max_tilt': 1, 'cmd_timeout': 2})
    assert rig.node.get_parameter('safety.max_tilt').value == 1.0
    assert rig.node.trigger_configure() is SUCCESS


@pytest.mark.parametrize(
    ('parameters', 'says'),
    [
        ({'policy': '/no/such/folder'}, '/no/such/folder: no such folder'),
        ({'policy': 'no_such_policy'}, 'no_such_policy'),
        ({'device': 'cuda:0', 'devices': ['cpu']}, 'cuda:0'),
        ({'devices': ['cpu', 'tpu']}, "'tpu' is neither cpu nor cuda:N"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_and_the_node_lives(
    make_rig, parameters, says: str
) -> None:
    rig = make_rig(start=False, **parameters)
    lines = []
    rig.node.get_logger().error = lines.append
    assert rig.node.trigger_configure() is FAILURE
    assert len(lines) == 1
    assert says in lines[0]
    assert rig.node._state_machine.current_state[0] == State.PRIMARY_STATE_UNCONFIGURED
    assert rig.trigger('estop').success


def test_an_error_inside_a_tick_damps_and_the_node_lives(make_rig) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')

    def fail(*_):
        raise ZeroDivisionError('a mistake')

    rig.node._prepared.router.policy.observe = fail
    rows = rig.node._recorder.rows
    rig.now += TICK_NS
    rig.publish_sensors()
    rig.clock.publish(rig.clock.msg_type(clock=stamp(rig.now)))
    rig.until(lambda: rig.mode == 'DAMP', 'DAMP')
    assert 'a mistake' in rig.reason
    assert rig.node._recorder.rows == rows
    assert rig.step() is None
    assert rig.trigger('estop').success


def test_a_publisher_of_the_wrong_type_is_named_while_waiting(make_rig) -> None:
    rig = make_rig()
    # On the thread that waits on its events: a wait set may not lose a member.
    rig.wait(rig.executor.create_task(rig.tester.destroy_publisher, rig.joint_states))
    elsewhere = rclpy.Context()  # one DDS participant has one type for a topic
    rclpy.init(context=elsewhere)
    stranger = Node('stranger', context=elsewhere, use_global_arguments=False)
    stranger.create_publisher(Float64, 'joint_states', SENSOR_QOS)
    try:
        rig.until(
            lambda: rig.step(joints=False) or 'publishes std_msgs/msg/Float64' in rig.reason,
            'the reason',
        )
    finally:
        rclpy.shutdown(context=elsewhere)
    assert '/stranger publishes std_msgs/msg/Float64, not sensor_msgs/msg/JointState' in str(
        rig.node.modes.reason
    )


def test_a_missing_joint_is_named_while_waiting(make_rig) -> None:
    rig = make_rig()
    rig.names = [n for n in rig.names if n != 'waist_roll_joint']
    rig.step()
    rig.until(lambda: rig.step() or 'missing waist_roll_joint' in rig.reason, 'the reason')
    assert rig.mode == 'WAITING'


def test_diagnostics_name_mode_device_hashes_misses_and_every_counter(make_rig) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    rig.diagnostics.clear()
    rig.until(lambda: rig.step() is not None and bool(rig.diagnostics), '/diagnostics')
    status = rig.diagnostics[-1].status[0]
    values = {item.key: item.value for item in status.values}
    assert status.name == '/g1_policy: router'
    assert values['mode'] == 'RUN'
    assert values['device'] == 'cpu'
    assert values['weights_sha256'] == BUNDLE.weights_sha256
    assert values['contract_sha256'] == BUNDLE.contract_sha256
    assert values['deadline_misses'] == '0'
    assert {'observe_ms.p50', 'act_ms.p99', 'count.tilt', 'count.command_stale'} <= set(values)


def test_a_stamped_twist_is_taken_where_the_parameter_says_so(make_rig) -> None:
    rig = make_rig(auto_run=True, cmd_vel_stamped=True)
    rig.until_mode('RUN')
    rig.step()
    np.testing.assert_array_equal(last_step(rig)['command'], [0.5, 0, 0])


def test_cleanup_takes_another_policy(make_rig) -> None:
    rig = make_rig(start=False)
    assert rig.node.trigger_configure() is SUCCESS
    assert rig.node.trigger_cleanup() is SUCCESS
    assert rig.set_parameter('policy', str(BUNDLE.path)).successful
    assert rig.node.trigger_configure() is SUCCESS


def test_the_run_folder_gets_timing_and_facts(make_rig, tmp_path: Path) -> None:
    rig = make_rig(auto_run=True, run_dir=str(tmp_path / 'run'))
    rig.until_mode('RUN')
    for _ in range(10):
        rig.step()
    rig.node.trigger_deactivate()
    with np.load(tmp_path / 'run' / 'timing.npz') as timing:
        assert len(timing['slot']) == rig.node._recorder.rows
        assert np.all(np.diff(timing['slot']) == 1)
    assert (tmp_path / 'run' / 'node.json').is_file()


def test_a_tick_that_was_stopped_half_way_commands_nothing(make_rig, monkeypatch) -> None:
    rig = make_rig(auto_run=True)
    rig.until_mode('RUN')
    rig.step()
    policy = rig.node._prepared.router.policy
    act = policy.act

    def stopped(observation):
        """The process sleeps inside the tick, and wakes twenty slots later."""
        action = act(observation)
        monkeypatch.setattr(policy, 'act', act)
        rig.clock.publish(Clock(clock=stamp(rig.now + 20 * TICK_NS)))
        rig.until(lambda: rig.node._tick_clock.now() >= rig.now + 20 * TICK_NS, 'the clock')
        return action

    monkeypatch.setattr(policy, 'act', stopped)
    rig.now += TICK_NS
    rig.publish_sensors()
    rig.commands.take()
    rig.clock.publish(Clock(clock=stamp(rig.now)))
    rig.until(lambda: rig.mode == 'DAMP', 'DAMP')
    assert 'slots in a row' in rig.reason
    assert rig.commands.take() is None
