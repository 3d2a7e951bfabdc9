"""Where a tick's time goes: each part in a tight loop, and once every 20 ms as on the robot.

`python -m bench.profile [SECONDS]`. No ROS but for serialization: the DDS calls are in the
sessions of `make bench`.
"""

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench.source import sensor_messages
from g1_policy_node.action import JointPositionAction
from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.inputs import InputGate
from g1_policy_node.observation import ObservationBuilder
from g1_policy_node.paths import find_data
from g1_policy_node.ros_io import _command_template, _step_template, imu_sample, joint_sample
from g1_policy_node.safety import SafetyGate, SafetyLimits, load_limits
from g1_policy_node.timing import INT_COLUMNS, Recorder
from g1_policy_node.types import Fault, Inputs, Stamps
from g1_policy_node.wire import imu_reader, joint_state_reader


class Tick:
    """The parts of a tick, in order; each leaves what the next one needs."""

    def __init__(self) -> None:
        bundle = load_bundle(resolve_bundle('g1_walk'))
        contract = bundle.contract
        entries = load_limits(find_data('config/safety.yaml'))
        limits = SafetyLimits(**{name: entry.value for name, entry in entries.items()})
        self.messages = sensor_messages()
        self.readers = joint_state_reader(), imu_reader()
        self.gate = SafetyGate(contract, limits, bundle.golden_observations)
        self.inputs = InputGate(contract, limits, 10**12)
        self.builder, self.action = ObservationBuilder(contract), JointPositionAction(contract)
        self.actor = load_actor(contract.network, bundle.weights, 'cpu')
        self.command, self.step = _command_template(contract), _step_template(contract)
        self.recorder = Recorder()
        self.last = self.previous = contract.per_joint('default_position')
        self.velocity, self.now = np.array([0.5, 0.0, 0.0]), 0
        self.row = (0,) * len(INT_COLUMNS)

    def read(self) -> None:
        """Raw CDR to samples."""
        self.now += 1
        stamps = Stamps(0, 0, self.now * 20_000_000, 0)
        raws = map(bytes, self.messages[self.now * 20 % len(self.messages)])
        joints, imu = (r.read(raw) for r, raw in zip(self.readers, raws, strict=True))
        self.sample = Inputs(joint_sample(joints, stamps), imu_sample(imu, stamps), None, None)

    def admit(self) -> None:
        """Samples to a state."""
        self.inputs.admit(self.sample, self.now * 20_000_000)
        state = self.inputs.state(self.now * 20_000_000)
        assert not isinstance(state, Fault)
        self.state = state

    def observe(self) -> None:
        """State to observation."""
        self.observation = self.builder.build(self.state, self.velocity, self.now, self.last)

    def act(self) -> None:
        """Observation to raw action."""
        self.raw_action = self.actor(self.observation).astype(np.float64)

    def check(self) -> None:
        """Raw action to a safe target."""
        self.gate.state_fault(self.state)
        self.gate.observation_fault(self.observation)
        self.gate.action_fault(self.raw_action)
        target = self.action.target(self.raw_action)
        self.previous = self.gate.check(target, self.previous, self.state).target

    def serialize(self) -> None:
        """Target to the bytes of joint_command."""
        self.command.fill(self.now, self.previous)

    def record(self) -> None:
        """The row of timing.npz, and the bytes of ~/step."""
        self.recorder.add(self.row, self.velocity)
        blocks = ([0, 0], np.zeros(9), self.velocity, self.observation, self.raw_action, [0])
        np.concatenate(blocks, out=self.step.numbers)
        self.step.message()


PARTS = ('read', 'admit', 'observe', 'act', 'check', 'serialize', 'record')


def run(tick: Tick, ticks: int, wait: Callable[[int], None]) -> Mapping[str, float]:
    """Return the median us of each part over so many ticks."""
    took: dict[str, list[float]] = {part: [] for part in PARTS}
    for i in range(ticks):
        wait(i)
        for part in PARTS:
            before = time.perf_counter_ns()
            getattr(tick, part)()
            took[part].append((time.perf_counter_ns() - before) * 1e-3)
    return {part: float(np.median(values)) for part, values in took.items()}


def main() -> None:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    tick = Tick()
    hot = run(tick, 2000, lambda i: None)
    start = time.monotonic() + 0.02

    def wait(i: int) -> None:
        time.sleep(max(0.0, start + 0.02 * i - time.monotonic()))

    cold: Any = run(tick, int(seconds * 50), wait)
    print(f'{"":<10}{"hot, us":>10}{"at 50 Hz":>10}')
    for part in PARTS:
        print(f'{part:<10}{hot[part]:>10.1f}{cold[part]:>10.1f}')
    print(f'{"sum":<10}{sum(hot.values()):>10.1f}{sum(cold.values()):>10.1f}')


if __name__ == '__main__':
    main()
