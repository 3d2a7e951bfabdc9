"""The control thread: a tick on every slot, newest samples in, one command out."""

import gc
import sys
import threading
import time
from collections.abc import Callable

from g1_policy_node.black_box import BlackBox, Row
from g1_policy_node.clock import SystemTime, TickClock
from g1_policy_node.phase import ArrivalPhase
from g1_policy_node.realtime import Realtime
from g1_policy_node.ros_io import RouterIo
from g1_policy_node.router import Router
from g1_policy_node.timing import MissCounter, Recorder, SlotGrid
from g1_policy_node.types import COMMANDING, Mode

SWITCH_INTERVAL_S = 0.0005
"""How long another thread may keep the interpreter when a tick is due; Python's own is 5 ms."""

BEFORE_NS = 500_000
"""How long before a tick the loop wakes for what may be older than the sensors."""


class ControlLoop(threading.Thread):
    """Runs the router on absolute deadlines until stopped.

    `lock` guards the router: held for the length of a tick, and by whoever changes the router
    between two ticks. Garbage is not collected while the loop runs: a full collection takes
    several periods. A tick is planned `ArrivalPhase.delay` after its slot's start. With
    `realtime.prewarm_ms` the network runs once for nothing before it: after a sleep of 20 ms its
    weights and its code have left the caches.
    """

    def __init__(
        self,
        router: Router,
        io: RouterIo,
        clock: TickClock,
        recorder: Recorder,
        box: BlackBox,
        period_ns: int,
        lock: threading.Lock,
        log: Callable[[str], None],
        realtime: Realtime,
    ) -> None:
        super().__init__(name='control', daemon=True)
        self._lock = lock
        self.grid = SlotGrid(period_ns, 0)
        self.misses = MissCounter()
        self._router = router
        self._io = io
        self._clock = clock
        self._recorder = recorder
        self.box = box
        self._failure = ''
        self._period_ns = period_ns
        self._max_late = router.safety.limits.max_missed_slots
        self._log = log
        self.realtime = realtime
        self._prewarm = realtime.prewarm_ms > 0
        self._before_ns = round(realtime.prewarm_ms * 1e6) or BEFORE_NS
        self._phase = ArrivalPhase()
        self._system = SystemTime()
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End the thread and wait for it; no command follows."""
        self._stopping.set()
        self.join()
        self.box.close()
        gc.enable()
        gc.unfreeze()

    def run(self) -> None:
        """Tick until stopped. An error inside a tick damps the robot and the loop goes on."""
        self.realtime.use_for_this_thread()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        gc.collect()
        gc.freeze()
        gc.disable()
        self.grid = self._start()
        last = 0  # the slot of the last tick
        while not self._stopping.is_set():
            self.box.watch(self._router.modes.mode, self._router.modes.reason, bool(self._failure))
            if self._clock.jumped_back():
                self.grid = self._restart()
                last = 0
            due = self.grid.start(last + 1) + self._phase.delay
            self._before(due)
            if not self._clock.sleep_until(due):
                continue
            slot = self.grid.at(self._clock.now())
            if slot <= last:  # time jumped back since we woke
                continue
            try:
                self._tick(self.grid, slot, slot - last)
                self._failure = ''
            except Exception as error:  # the robot must be safe whatever went wrong
                self._fail(f'error in a tick: {error!r}')
            last = slot

    def _before(self, due: int) -> None:
        """Shortly before a tick: take what may be older, warm the network if asked to."""
        self._clock.sleep_until(due - self._before_ns)
        try:
            self._read_system()
            self._io.take_before(self._clock, self._system)
            if self._prewarm:
                self._router.policy.run_for_nothing()
        except Exception as error:
            self._fail(f'error before a tick: {error!r}')

    def _read_system(self) -> None:
        step = self._system.read()
        if step:
            self._router.inputs.clock_stepped()
            self._log(f'the system clock stepped by {step / 1e9:+.3f} s; ticks do not follow it')

    def _fail(self, reason: str) -> None:
        """Damp because a tick ended in an error; one that comes with every tick is told once."""
        if reason == self._failure:
            return
        self._failure = reason
        with self._lock:
            self._router.estop(reason)
        self._log(reason)

    def _start(self) -> SlotGrid:
        """Wait for the clock to have a time, and start the slots there."""
        while not (now := self._clock.now()) and not self._stopping.is_set():
            with self._lock:
                self._router.modes.enter(Mode.WAITING, 'no /clock yet, and use_sim_time is set')
            self._clock.sleep_until(1)
        self._system.read()
        return SlotGrid(self._period_ns, now)

    def _restart(self) -> SlotGrid:
        self._log('time jumped back: samples, history and slots start anew')
        with self._lock:
            self._router.time_jumped_back()
        self.misses.not_due()
        return self._start()

    def _tick(self, grid: SlotGrid, slot: int, slots: int) -> None:
        """One tick, from messages to message."""
        woken = time.monotonic_ns()
        self._read_system()
        now, published = self._clock.now(), 0
        scheduled = woken - (now - grid.start(slot) - self._phase.delay)
        with self._lock:
            inputs = self._io.take(self._clock, self._system)
            taken = time.monotonic_ns()
            if self.realtime.follow_arrivals and inputs.joints:
                stamps = inputs.joints.stamps
                self._phase.update(stamps.sequence, stamps.received, now)
            tick = self._router.tick(now, slots, inputs)
            # Read before publishing: a driver in lock-step answers with the next /clock.
            at = grid.at(self._clock.now())
            # A process that was stopped inside its tick wakes with a target of another time.
            if tick.target is not None and at - slot <= self._max_late:
                self.misses.published(at)
                self._io.publish_command(tick.target)
                published = time.monotonic_ns()
        if tick.mode not in COMMANDING:
            self.misses.not_due()
        command_age = self._router.command.age(now)
        times = (scheduled, woken, taken, tick.observed, tick.acted, tick.checked, published)
        self._recorder.add(
            (
                slot,
                grid.start(slot),
                *times,
                *self._router.inputs.ages(now),
                -1 if command_age is None else command_age,
                *self._router.inputs.transports(),
                MODES.index(tick.mode),
                tick.verdict.value,
                tick.gait,
            ),
            tick.command,
        )
        self.box.add(Row(slot, now, times, inputs, tick))
        self._io.publish_step(tick, slot, times)


MODES = list(Mode)
"""The order of `mode` in timing.npz."""
