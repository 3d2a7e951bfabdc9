"""The router: modes, and one tick from inputs to a safe joint target. No ROS, no clock.

`tick` is the whole story. Times are ns on the tick clock; joints are in policy order, rad.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.command import CommandFollower
from g1_policy_node.contract import Contract
from g1_policy_node.inputs import InputGate
from g1_policy_node.modes import ModeLatch
from g1_policy_node.policy import Policy
from g1_policy_node.safety import SafetyGate
from g1_policy_node.types import Array, Fault, Inputs, Mode, RobotState, Verdict

S = 1_000_000_000
TELL_AGAIN_NS, TELL_ELSE_NS = S, S // 10
"""How often WAITING may word one fault anew, and name another: a log is no strip chart."""
DAMPS_AT_ONCE = frozenset({'tilt'})
"""Faults that no waiting cures; every other one is held first."""


@dataclass
class Tick:
    """What one tick did, and what kept the policy from being followed, if anything did.

    The marks are ns of the caller's stopwatch, 0 where not reached.
    """

    mode: Mode
    command: Array
    gait: int
    target: Array | None = None
    observation: NDArray[np.float32] | None = None
    action: Array | None = None
    verdict: Verdict = Verdict.PASS
    fault: Fault | None = None
    observed: int = 0
    acted: int = 0
    checked: int = 0


class Answer(NamedTuple):
    """The answer to a request: whether it was done, and why or why not."""

    done: bool
    message: str


class Router:
    """Moves `modes` by what it sees and is asked.

    `stopwatch` returns monotonic ns and is read between the stages of a tick, nothing else.
    """

    def __init__(
        self,
        contract: Contract,
        policy: Policy,
        inputs: InputGate,
        safety: SafetyGate,
        command: CommandFollower,
        modes: ModeLatch,
        *,
        hold_timeout_ns: int,
        auto_run: bool,
        stopwatch: Callable[[], int],
    ) -> None:
        self.policy = policy
        self.inputs = inputs
        self.safety = safety
        self.command = command
        self.modes = modes
        self.auto_run = auto_run
        self._names = contract.joint_names
        self._default = contract.per_joint('default_position')
        self._step_ns = round(contract.step_dt * S)
        self._hold_timeout_ns = hold_timeout_ns
        self._stopwatch = stopwatch
        self._target = self._default.copy()
        self._gait = 0
        self._held = 0
        self._steady = 0
        self._told: tuple[str, int] = ('', 0)  # what WAITING named, and when
        self._lagging_since: int | None = None
        self.held_for: Counter[str] = Counter()
        self._state: RobotState | Fault = Fault('no_data', 'no tick yet')

    # --- the tick -----------------------------------------------------------------------------

    def tick(self, now: int, slots: int, inputs: Inputs) -> Tick:
        """Do one tick, `slots` slots after the previous one (1 where none was skipped)."""
        self.inputs.admit(inputs, now)
        self.command.take(inputs.command)
        self._gait += slots
        self._state = state = self._see(now, slots)
        result = Tick(self.modes.mode, np.zeros(3), self._gait)
        if self.modes.mode is Mode.WAITING:
            self._wait(state, now)
        if self.modes.mode is Mode.RAMP:
            self._ramp(result, state, now)
        elif self.modes.mode is Mode.READY:
            self._ready(result, state)
        elif self.modes.mode in (Mode.RUN, Mode.HOLD):
            self._walk(result, state, now, slots)
        result.mode = self.modes.mode
        if result.target is not None:
            self._target = result.target
            result.checked = self._stopwatch()
        return result

    def _see(self, now: int, slots: int) -> RobotState | Fault:
        """Return the robot's state, or why nothing may be computed from it at this tick."""
        missed = slots - 1
        if missed >= self.safety.limits.max_missed_slots:
            return Fault('missed_slots', f'{missed} slots in a row passed without a command')
        state = self.inputs.state(now)
        return state if isinstance(state, Fault) else self.safety.state_fault(state) or state

    def _wait(self, state: RobotState | Fault, now: int) -> None:
        """WAITING: leave for RAMP, from the measured pose, once there is an upright state."""
        if isinstance(state, Fault):
            what = re.sub(r'\d', '', state.reason)  # the same fault may word another figure
            same = what == self._told[0]
            if now - self._told[1] >= (TELL_AGAIN_NS if same else TELL_ELSE_NS):
                self._told = what, now
                self.modes.enter(Mode.WAITING, state.reason)
            return
        self._target = state.joint_pos.copy()
        self._lagging_since = None
        self.modes.enter(Mode.RAMP, 'sensors are complete and fresh')

    def _ramp(self, result: Tick, state: RobotState | Fault, now: int) -> None:
        """RAMP: move the target to the default pose at a limited rate."""
        if isinstance(state, Fault):
            self._retreat(result, state)
            return
        limits = self.safety.limits
        step = limits.ramp_rate * self._step_ns / S
        target = self._target + np.clip(self._default - self._target, -step, step)
        arrived = bool(np.all(target == self._default))
        allowed = limits.ramp_tolerance if arrived else limits.ramp_follow_error
        lag = np.abs(target - state.joint_pos)
        result.target = target
        if float(np.max(lag)) <= allowed:
            self._lagging_since = None
            if arrived:
                self.modes.enter(Mode.READY, 'at the default pose')
            return
        if self._lagging_since is None:
            self._lagging_since = now
        if now - self._lagging_since > limits.ramp_follow_time * S:
            worst = int(np.argmax(lag))
            off = f'{self._names[worst]} does not follow: {lag[worst]:.2f} rad off'
            result.target, result.fault = None, Fault('no_follow', off)
            self.modes.enter(Mode.DAMP, off)

    def _ready(self, result: Tick, state: RobotState | Fault) -> None:
        """READY: stay at the default pose until told to run."""
        if isinstance(state, Fault):
            self._retreat(result, state)
            return
        result.target = self._default
        if self.auto_run:
            self._start_run('auto_run')

    def _walk(self, result: Tick, state: RobotState | Fault, now: int, slots: int) -> None:
        """RUN and HOLD: the policy behind the gate, or the last safe target, frozen."""
        result.command = self.command.follow(now, slots * self._step_ns)
        if isinstance(state, Fault):
            fault: Fault | None = state
        else:
            fault = self.inputs.frozen_fault(now) or self._run_policy(result, state)
        if fault:
            self._hold(result, fault, slots)
            return
        self._steady += slots * self._step_ns
        if self._steady >= self._hold_timeout_ns:
            self._held = 0
        if self.modes.mode is Mode.HOLD:
            self.modes.enter(Mode.RUN, 'the cause is gone')

    def _run_policy(self, result: Tick, state: RobotState) -> Fault | None:
        """Observe, act, check: fill `result`, or return the fault that kept a target away."""
        result.observation = self.policy.observe(state, result.command, self._gait)
        result.observed = self._stopwatch()
        fault = self.safety.observation_fault(result.observation)
        if fault:
            return fault
        result.action = self.policy.act(result.observation)
        result.acted = self._stopwatch()
        fault = self.safety.action_fault(result.action)
        if fault:
            return fault
        target = self.policy.target(result.action)
        result.target, result.verdict = self.safety.check(target, self._target, state)
        return None

    def _hold(self, result: Tick, fault: Fault, slots: int) -> None:
        """HOLD the last target; holds less than `hold_timeout` apart share that time."""
        result.fault = fault
        self.held_for[f'held.{fault.name}'] += 1
        self._steady = 0
        self._held += slots * self._step_ns
        at_once = fault.name in DAMPS_AT_ONCE
        # The first held slot ends its first step later: a hold of n slots lasts n - 1 steps.
        if at_once or self._held - self._step_ns > self._hold_timeout_ns:
            reason = fault.reason if at_once else f'held for too long: {fault.reason}'
            result.target, result.verdict = None, Verdict.DAMP
            self.modes.enter(Mode.DAMP, reason)
            return
        result.target, result.verdict = self._target, Verdict.HOLD
        if self.modes.mode is Mode.RUN:
            self.modes.enter(Mode.HOLD, fault.reason)

    def _retreat(self, result: Tick, fault: Fault) -> None:
        """Before RUN the robot hangs: a fault means WAITING again, a tilt means DAMP."""
        result.fault = fault
        self.modes.enter(Mode.DAMP if fault.name in DAMPS_AT_ONCE else Mode.WAITING, fault.reason)

    # --- requests, between ticks --------------------------------------------------------------

    def activate(self) -> None:
        """INACTIVE to WAITING; a latched DAMP stays."""
        self._forget()
        self.modes.enter(Mode.WAITING, 'activated')

    def deactivate(self, reason: str) -> None:
        """Stop commanding, from any mode; a latched DAMP stays."""
        self.modes.enter(Mode.INACTIVE, reason)

    def request_run(self, on: bool) -> Answer:
        """`~/run`: start the policy from READY, or make it stand and walk again in RUN."""
        if self.modes.mode in (Mode.RUN, Mode.HOLD):
            self.command.enabled = on
            return Answer(True, 'following cmd_vel' if on else 'standing; still in RUN')
        if self.modes.mode is not Mode.READY or not on:
            mode, reason = self.modes.mode.value, self.modes.reason
            return Answer(False, f'refused in {mode}: {reason}')
        return self._start_run('requested')

    def estop(self, reason: str) -> Answer:
        """`~/estop`: DAMP, from any mode."""
        self.modes.enter(Mode.DAMP, reason)
        return Answer(True, 'damped; ~/reset leaves DAMP')

    def reset(self, now: int) -> Answer:
        """`~/reset`: leave DAMP for WAITING, unless the cause still lasts."""
        if self.modes.mode is not Mode.DAMP:
            return Answer(False, f'refused in {self.modes.mode.value}: only DAMP is reset')
        state = self._see(now, 1)
        if isinstance(state, Fault):
            return Answer(False, f'refused, the cause lasts: {state.reason}')
        self._forget()
        self.modes.unlatch(Mode.WAITING, 'reset')
        return Answer(True, 'reset; waiting')

    def time_jumped_back(self) -> None:
        """Forget every sample and the history: they belong to a time that is no longer ours."""
        self._forget()
        if self.modes.mode in (Mode.RAMP, Mode.READY):
            self.modes.enter(Mode.WAITING, 'time jumped back')

    # --- transitions --------------------------------------------------------------------------

    def _start_run(self, reason: str) -> Answer:
        """READY to RUN, refused if a joint is away from the default pose."""
        if isinstance(self._state, Fault):
            return Answer(False, f'refused: {self._state.reason}')
        away = np.abs(self._state.joint_pos - self._default)
        worst = int(np.argmax(away))
        if away[worst] > self.safety.limits.start_tolerance:
            name = self._names[worst]
            self.modes.enter(Mode.READY, f'{name} is {away[worst]:.2f} rad from the default pose')
            return Answer(False, f'refused: {self.modes.reason}')
        self.policy.reset()
        self.command.reset()
        self.command.enabled = True
        self._gait = -1
        self._held = self._steady = 0
        self.modes.enter(Mode.RUN, reason)
        return Answer(True, 'running')

    def _forget(self) -> None:
        self.inputs.reset()
        self.command.reset()
        self.policy.reset()
