"""The modes of the router, tick by tick on a clock of the test's own."""

import numpy as np
import pytest
from samples import (
    CONTRACT,
    DEFAULT,
    GOLDEN,
    LIMITS,
    MS,
    command,
    imu,
    joints,
    stamps,
    tilted,
    tremor,
)

from g1_policy_node.command import CommandFollower
from g1_policy_node.inputs import InputGate
from g1_policy_node.modes import ModeLatch
from g1_policy_node.policy import Policy
from g1_policy_node.router import Router, Tick
from g1_policy_node.safety import SafetyGate
from g1_policy_node.types import Inputs, Mode, Verdict

TICK = 20 * MS
FAR = DEFAULT + np.where(np.arange(29) == 18, -0.97, 0.0)  # the left elbow hangs straight


class FixedActor:
    """Answers every observation with the action it is told."""

    device = 'cpu'

    def __init__(self) -> None:
        self.action = np.zeros(29, dtype=np.float32)
        self.seen: list[np.ndarray] = []

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        self.seen.append(observation)
        return self.action


class Bench:
    """A router with a clock, a robot that goes where it is told, and a record of changes."""

    def __init__(self, auto_run: bool = False, pose: np.ndarray = DEFAULT) -> None:
        self.changes: list[tuple[Mode, str]] = []
        self.actor = FixedActor()
        self.modes = ModeLatch(lambda *change: self.changes.append(change))
        self.router = Router(
            CONTRACT,
            Policy(CONTRACT, self.actor),
            InputGate(CONTRACT, LIMITS, 60 * MS),
            SafetyGate(CONTRACT, LIMITS, GOLDEN),
            CommandFollower(CONTRACT.command_limits, 500 * MS),
            self.modes,
            hold_timeout_ns=250 * MS,
            auto_run=auto_run,
            stopwatch=lambda: self.now,
        )
        self.now = 1000 * MS
        self.pose = pose.copy()
        self.velocity = [0.5, 0.0, 0.0]
        self.router.activate()

    def tick(self, slots: int = 1, sensors: bool = True, **changes) -> Tick:
        """Advance by `slots`; with `sensors` a fresh sample of each topic has come."""
        self.now += slots * TICK
        fresh = Inputs(
            joints(self.now, position=self.pose + tremor(self.now)) if sensors else None,
            imu(self.now) if sensors else None,
            command(self.velocity, self.now) if sensors else None,
            None,
        )
        tick = self.router.tick(self.now, slots, fresh._replace(**changes))
        if tick.target is not None:
            self.pose = tick.target.copy()
        return tick

    def until(self, mode: Mode, limit: int = 300) -> int:
        for i in range(limit):
            if self.modes.mode is mode:
                return i
            self.tick()
        raise AssertionError(f'{mode} not reached: {self.changes}')

    @property
    def order(self) -> list[Mode]:
        return [m for i, (m, _) in enumerate(self.changes) if not i or self.changes[i - 1][0] != m]


def running(**options) -> Bench:
    bench = Bench(auto_run=True, **options)
    bench.until(Mode.RUN)
    return bench


def test_start_goes_through_waiting_ramp_ready_run_each_with_a_reason() -> None:
    bench = running(pose=FAR)
    assert bench.order == [Mode.WAITING, Mode.RAMP, Mode.READY, Mode.RUN]
    assert all(reason for _, reason in bench.changes)


def test_waiting_commands_nothing_and_says_what_is_missing() -> None:
    bench = Bench()
    for _ in range(5):
        assert bench.tick(sensors=False).target is None
    assert bench.modes.reason == 'no joint_states yet'
    bench.tick(sensors=False, joints=joints(bench.now + TICK))
    assert bench.modes.reason == 'no imu/data yet'


def test_the_same_reason_is_told_once_while_waiting() -> None:
    bench = Bench()
    for _ in range(50):
        bench.tick(sensors=False)
    assert len(bench.changes) == 2  # activated, then the reason


def test_the_ramp_starts_at_the_measured_pose_and_never_moves_faster_than_its_rate() -> None:
    bench = Bench(pose=FAR)
    targets = [FAR]
    while bench.modes.mode is not Mode.READY:
        targets.append(bench.tick().target)
    steps = np.abs(np.diff(targets, axis=0))
    assert steps.max() <= LIMITS.ramp_rate * CONTRACT.step_dt + 1e-12
    assert len(targets) - 1 == int(np.ceil(0.97 / 0.02))
    np.testing.assert_array_equal(targets[-1], DEFAULT)


def test_skipped_slots_do_not_make_the_ramp_jump() -> None:
    bench = Bench(pose=FAR)
    bench.tick()
    before = bench.pose.copy()
    assert np.max(np.abs(bench.tick(slots=3).target - before)) <= 0.02 + 1e-12


def test_a_joint_that_does_not_follow_is_named_and_damped() -> None:
    bench = Bench(pose=FAR)
    for _ in range(150):
        bench.tick(joints=joints(bench.now + TICK, position=FAR))
    assert bench.modes.mode is Mode.DAMP
    assert bench.modes.reason.startswith('left_elbow_joint does not follow')


def test_ready_holds_the_default_pose_and_waits_for_a_request() -> None:
    bench = Bench()
    bench.until(Mode.READY)
    for _ in range(100):
        np.testing.assert_array_equal(bench.tick().target, DEFAULT)
    assert bench.modes.mode is Mode.READY
    assert bench.router.request_run(True).done
    assert bench.modes.mode is Mode.RUN


def test_run_is_refused_away_from_the_default_pose_and_names_the_joint() -> None:
    bench = Bench()
    bench.until(Mode.READY)
    away = DEFAULT.copy()
    away[3] += LIMITS.start_tolerance + 0.05
    bench.tick(joints=joints(bench.now + TICK, position=away))
    answer = bench.router.request_run(True)
    assert not answer.done
    assert 'left_knee_joint is 0.35 rad from the default pose' in answer.message
    assert bench.modes.mode is Mode.READY


@pytest.mark.parametrize('mode', [Mode.INACTIVE, Mode.WAITING, Mode.RAMP, Mode.DAMP])
@pytest.mark.parametrize('on', [True, False])
def test_run_is_refused_where_it_does_not_fit_with_the_mode_in_the_answer(mode, on) -> None:
    bench = Bench(pose=FAR)
    if mode is Mode.INACTIVE:
        bench.router.deactivate('test')
    elif mode is Mode.DAMP:
        bench.router.estop('test')
    else:
        bench.until(mode)
    answer = bench.router.request_run(on)
    assert not answer.done
    assert f'refused in {mode.value}' in answer.message
    assert bench.modes.mode is mode


def test_the_gait_starts_at_zero_and_counts_every_slot_also_skipped_and_standing() -> None:
    bench = Bench()
    bench.until(Mode.READY)
    bench.router.request_run(True)
    bench.velocity = [0.0, 0.0, 0.0]
    assert [bench.tick(slots=n).gait for n in (1, 1, 3, 1)] == [0, 1, 4, 5]


def test_targets_in_run_are_the_policys() -> None:
    bench = running()
    bench.actor.action = np.full(29, 0.1, dtype=np.float32)
    tick = bench.tick()
    np.testing.assert_allclose(tick.target, DEFAULT + 0.025, atol=1e-8)
    np.testing.assert_array_equal(tick.command, [0.5, 0, 0])
    assert tick.verdict is Verdict.PASS
    assert tick.observation.shape == (73,)


def test_run_false_stands_and_stays_in_run_and_run_true_walks_on() -> None:
    bench = running()
    assert bench.router.request_run(False).done
    for _ in range(30):
        tick = bench.tick()
    assert bench.modes.mode is Mode.RUN
    assert not tick.command.any()
    assert bench.actor.seen[-1][-2:].tolist() == [1.0, 1.0]
    assert bench.router.request_run(True).done
    np.testing.assert_array_equal(bench.tick().command, [0.5, 0, 0])


def test_without_a_fresh_command_it_ramps_to_zero_and_stands_in_run() -> None:
    bench = running()
    last = command([0.5, 0, 0], bench.now)
    for _ in range(55):
        tick = bench.tick(command=last)
    assert bench.modes.mode is Mode.RUN
    assert not tick.command.any()


def test_lost_sensors_in_run_hold_the_last_safe_target_then_damp() -> None:
    bench = running()
    bench.actor.action = np.full(29, 0.1, dtype=np.float32)
    last = bench.tick().target
    held = []
    while bench.modes.mode is not Mode.DAMP:
        tick = bench.tick(sensors=False)
        if tick.mode is Mode.HOLD:
            held.append(tick)
    assert all(np.array_equal(t.target, last) for t in held)
    assert all(t.verdict is Verdict.HOLD for t in held)
    # 60 ms to be stale, then at most 250 ms of HOLD.
    assert len(held) == 13
    assert tick.target is None
    assert bench.order[-3:] == [Mode.RUN, Mode.HOLD, Mode.DAMP]
    assert 'joint_states is stale' in bench.modes.reason


def test_hold_returns_to_run_when_the_cause_is_gone() -> None:
    bench = running()
    for _ in range(8):
        bench.tick(sensors=False)
    assert bench.modes.mode is Mode.HOLD
    tick = bench.tick()
    assert bench.modes.mode is Mode.RUN
    assert tick.verdict is Verdict.PASS


def test_holds_less_than_hold_timeout_apart_share_that_time() -> None:
    bench = running()
    for _ in range(14):
        bench.tick(sensors=False)
    assert bench.modes.mode is Mode.HOLD
    bench.tick()
    assert bench.modes.mode is Mode.RUN
    for _ in range(6):
        bench.tick(sensors=False)
    assert bench.modes.mode is Mode.DAMP


def test_a_hold_after_hold_timeout_of_run_has_the_whole_time_again() -> None:
    bench = running()
    for _ in range(3):
        for _ in range(14):
            bench.tick(sensors=False)
        assert bench.modes.mode is Mode.HOLD
        for _ in range(13):
            bench.tick()
        assert bench.modes.mode is Mode.RUN


def test_slots_missed_in_a_row_hold_for_the_tick_that_finds_out() -> None:
    bench = running()
    assert bench.tick(slots=4).mode is Mode.RUN
    tick = bench.tick(slots=5)
    assert tick.mode is Mode.HOLD
    assert '4 slots in a row' in bench.modes.reason
    assert bench.tick().mode is Mode.RUN


def test_a_gap_longer_than_hold_timeout_damps_at_once() -> None:
    bench = running()
    tick = bench.tick(slots=50)
    assert tick.mode is Mode.DAMP
    assert tick.target is None


@pytest.mark.parametrize('mode', [Mode.RAMP, Mode.READY])
def test_a_gap_before_run_measures_the_pose_anew(mode: Mode) -> None:
    bench = Bench(pose=FAR)
    bench.until(mode)
    assert bench.tick(slots=6).target is None
    bench.pose = FAR.copy()
    tick = bench.tick()
    assert bench.modes.mode is Mode.RAMP
    assert np.max(np.abs(tick.target - FAR)) <= 0.02 + 1e-6


def test_reasons_that_change_with_every_tick_do_not_flood_the_log() -> None:
    bench = Bench()
    for i in range(500):
        bench.tick(imu=imu(bench.now + TICK, quat_xyzw=tilted(1.5 + 0.002 * i)))
    assert len(bench.changes) <= 2 + 500 * 20 // 1000


def test_a_state_that_training_never_saw_holds_the_last_target() -> None:
    bench = running()
    good = bench.tick().target
    away = DEFAULT.copy()
    away[12] = 2.6  # the waist turned to its stop
    for _ in range(2):
        tick = bench.tick(joints=joints(bench.now + TICK, position=away + 0.5))
    spun = imu(bench.now + TICK, ang_vel=np.array([0.0, 0.0, 7.9]))
    tick = bench.tick(imu=spun)
    assert tick.mode is Mode.HOLD
    assert tick.fault.name == 'observation_range'
    np.testing.assert_array_equal(tick.target, good)


def test_sensors_that_keep_their_very_bits_in_run_are_frozen() -> None:
    bench = running()
    still, steady = joints(0, position=DEFAULT), imu(0)
    seen = []
    while bench.modes.mode is not Mode.DAMP:
        now = stamps(bench.now + TICK)
        seen.append(
            bench.tick(joints=still._replace(stamps=now), imu=steady._replace(stamps=now)).fault
        )
    assert next(fault.name for fault in seen if fault) == 'frozen'
    assert 'did not change' in bench.modes.reason


def test_somebody_elses_joint_command_is_named_and_holds() -> None:
    bench = running()
    tick = bench.tick(foreign_command='/other')
    assert tick.mode is Mode.HOLD
    assert bench.modes.reason == 'joint_command is also sent by /other'
    assert bench.router.inputs.counters['foreign_command'] == 1


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_an_action_that_is_not_finite_holds_and_is_never_remembered(bad: float) -> None:
    bench = running()
    good = bench.tick().target
    bench.actor.action = np.full(29, bad, dtype=np.float32)
    tick = bench.tick()
    assert bench.modes.mode is Mode.HOLD
    assert 'is not finite' in bench.modes.reason
    np.testing.assert_array_equal(tick.target, good)
    bench.actor.action = np.zeros(29, dtype=np.float32)
    tick = bench.tick()
    assert bench.modes.mode is Mode.RUN
    assert np.all(np.isfinite(tick.observation))


def test_a_jump_of_the_action_is_limited_in_rate() -> None:
    bench = running()
    bench.tick()
    bench.actor.action = np.full(29, 8.0, dtype=np.float32)
    tick = bench.tick()
    assert tick.verdict is Verdict.CLIP
    assert np.max(np.abs(tick.target - DEFAULT)) <= LIMITS.max_target_rate * 0.02 + 1e-12


@pytest.mark.parametrize('mode', [Mode.RAMP, Mode.READY, Mode.RUN])
def test_a_tilt_damps_at_once_from_every_commanding_mode(mode: Mode) -> None:
    bench = Bench(pose=FAR)
    if mode is Mode.RUN:
        bench = running()
    else:
        bench.until(mode)
    tick = bench.tick(imu=imu(bench.now + TICK, quat_xyzw=tilted(1.2)))
    assert bench.modes.mode is Mode.DAMP
    assert tick.target is None
    assert 'tilted by 1.2 rad' in bench.modes.reason


@pytest.mark.parametrize('mode', [Mode.RAMP, Mode.READY])
def test_lost_sensors_before_run_go_back_to_waiting_not_to_damp(mode: Mode) -> None:
    bench = Bench(pose=FAR)
    bench.until(mode)
    for _ in range(10):
        tick = bench.tick(sensors=False)
    assert bench.modes.mode is Mode.WAITING
    assert tick.target is None


def test_waiting_does_not_ramp_a_robot_that_lies() -> None:
    bench = Bench()
    for _ in range(5):
        bench.tick(imu=imu(bench.now + TICK, quat_xyzw=tilted(1.5)))
    assert bench.modes.mode is Mode.WAITING
    assert 'tilted' in bench.modes.reason


@pytest.mark.parametrize('mode', list(Mode))
def test_estop_damps_from_every_mode_and_nothing_is_commanded_after_it(mode: Mode) -> None:
    bench = Bench(pose=FAR)
    if mode is Mode.HOLD:
        bench = running()
        for _ in range(6):
            bench.tick(sensors=False)
    elif mode is Mode.RUN:
        bench = running()
    elif mode is Mode.INACTIVE:
        bench.router.deactivate('test')
    elif mode is Mode.DAMP:
        bench.router.estop('before')
    else:
        bench.until(mode)
    assert bench.modes.mode is mode
    assert bench.router.estop('e-stop requested').done
    assert bench.modes.mode is Mode.DAMP
    assert all(bench.tick().target is None for _ in range(20))


def test_damp_survives_deactivation_and_activation() -> None:
    bench = running()
    bench.router.estop('e-stop requested')
    bench.router.deactivate('deactivated')
    bench.router.activate()
    assert all(bench.tick().target is None for _ in range(20))
    assert bench.modes.mode is Mode.DAMP


def test_reset_is_refused_while_the_cause_lasts_and_starts_over_once_it_is_gone() -> None:
    bench = running()
    bench.tick(imu=imu(bench.now + TICK, quat_xyzw=tilted(1.2)))
    lying = bench.router.reset(bench.now)
    assert not lying.done
    assert 'the cause lasts: tilted' in lying.message
    bench.tick()
    assert bench.router.reset(bench.now).done
    assert bench.modes.mode is Mode.WAITING
    bench.until(Mode.RUN)
    assert bench.order[-4:] == [Mode.WAITING, Mode.RAMP, Mode.READY, Mode.RUN]


def test_reset_without_sensors_is_refused() -> None:
    bench = running()
    bench.router.estop('e-stop requested')
    for _ in range(10):
        bench.tick(sensors=False)
    assert 'stale' in bench.router.reset(bench.now).message
    assert bench.modes.mode is Mode.DAMP


@pytest.mark.parametrize('mode', [m for m in Mode if m is not Mode.DAMP])
def test_reset_is_refused_outside_damp(mode: Mode) -> None:
    bench = Bench(pose=FAR)
    bench.modes.enter(mode, 'test')
    assert not bench.router.reset(bench.now).done
    assert bench.modes.mode is mode


def test_a_new_run_starts_with_fresh_history_gait_and_enabled_command() -> None:
    bench = running()
    bench.router.request_run(False)
    bench.actor.action = np.full(29, 0.5, dtype=np.float32)
    for _ in range(60):
        bench.tick()
    bench.router.estop('e-stop requested')
    bench.tick()
    bench.router.reset(bench.now)
    bench.until(Mode.RUN)
    tick = bench.tick()
    assert tick.gait == 0
    np.testing.assert_array_equal(tick.command, [0.5, 0, 0])


def test_time_that_jumps_back_forgets_samples_and_returns_to_waiting_before_run() -> None:
    bench = Bench(pose=FAR)
    bench.until(Mode.RAMP)
    bench.now -= 500 * MS
    bench.router.time_jumped_back()
    assert bench.modes.mode is Mode.WAITING
    bench.tick()
    assert bench.modes.mode is Mode.RAMP


def test_time_that_jumps_back_in_run_walks_on_with_the_next_samples() -> None:
    bench = running()
    bench.tick()
    bench.now -= 500 * MS
    bench.router.time_jumped_back()
    assert bench.tick().target is not None
    assert bench.modes.mode is Mode.RUN
