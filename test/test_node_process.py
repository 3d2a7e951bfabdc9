"""The router and the simulator as processes: signals, kills, restarts and bad usage."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.ros
PATIENCE_S = 30.0


class Crew:
    """Starts processes with a log each, and ends them all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen] = []

    def start(self, module: str, name: str, **parameters) -> subprocess.Popen:
        line = [sys.executable, '-m', f'g1_policy_node.{module}', '--ros-args']
        for key, value in parameters.items():
            line += ['-p', f'{key}:={value}']
        with (self.folder / f'{name}.log').open('w') as log:
            process = subprocess.Popen(line, stdout=log, stderr=log)
        self.started.append(process)
        return process

    def log(self, name: str) -> str:
        return (self.folder / f'{name}.log').read_text()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            logs = {path.name: path.read_text()[-2000:] for path in self.folder.glob('*.log')}
            assert time.monotonic() < deadline, f'{what} did not come: {logs}'
            time.sleep(0.02)

    def simulator(self) -> subprocess.Popen:
        return self.start('sim.mujoco_sim', 'sim', run_dir=self.folder)

    def node(self, name: str = 'node') -> subprocess.Popen:
        process = self.start('node', name, auto_run='true', run_dir=self.folder)
        self.until(lambda: ': RUN: auto_run' in self.log(name), 'RUN')
        return process


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(tmp_path)
    yield crew
    for process in crew.started:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_a_killed_node_is_damped_by_the_simulator_and_a_restarted_one_comes_back_on_the_hoist(
    crew: Crew,
) -> None:
    simulator = crew.simulator()
    node = crew.node()
    node.send_signal(signal.SIGKILL)
    node.wait()
    killed_ns = time.monotonic_ns()
    crew.until(lambda: 'damping: no joint_command for 100 ms' in crew.log('sim'), 'damping')
    crew.until(lambda: 'the robot fell' in crew.log('sim'), 'the fall')
    second = crew.node('second')
    log = crew.log('second')
    order = [m for m in ('WAITING', 'RAMP', 'READY', 'RUN') if f'[g1_policy]: {m}: ' in log]
    assert order == ['WAITING', 'RAMP', 'READY', 'RUN']
    for process in (second, simulator):
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0
    with np.load(crew.folder / 'sim.npz') as track:
        damping, t = track['damping'].astype(bool), track['time']
        last_command = np.flatnonzero((track['mono_ns'] < killed_ns) & ~damping)[-1]
        first_damped = last_command + int(np.argmax(damping[last_command:]))
        assert t[first_damped] - t[last_command] <= 0.150
        # Picked up again: on the hoist until the second RUN, then walking or standing.
        again = track['hoisted'].astype(bool) & (t > t[first_damped])
        assert again.any()
        assert np.all(track['position'][again][:, 2] > 0.7)
        assert track['running'][-1] or track['running'][t > t[first_damped]].any()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('stage', ['waiting', 'running'])
def test_a_signal_ends_the_node_with_zero_and_without_a_traceback(crew, number, stage) -> None:
    if stage == 'running':
        crew.simulator()
        node = crew.node()
    else:
        node = crew.start('node', 'node', run_dir=crew.folder)
        crew.until(lambda: 'WAITING: no joint_states' in crew.log('node'), 'WAITING')
    node.send_signal(number)
    assert node.wait(timeout=PATIENCE_S) == 0
    log = crew.log('node')
    assert 'Traceback' not in log
    assert 'INACTIVE: shut down' in log
    part = json.loads((crew.folder / 'node.json').read_text())
    assert part['transitions'][-1]['mode'] == 'INACTIVE'


@pytest.mark.parametrize(
    ('parameters', 'says'),
    [
        ({'policy': '/no/such/folder'}, '/no/such/folder: no such folder'),
        ({'device': 'cuda:7'}, 'cuda:7'),
        ({'device': 'gpu'}, "device 'gpu' is neither cpu nor cuda:N"),
        ({'state_timeout': 'soon'}, "parameter state_timeout: expected a number, got 'soon'"),
        ({'stat_timeout': '0.1'}, 'parameter stat_timeout does not exist'),
        ({'devices': '[cpu,cuda:0]'}, "Couldn't parse parameter override rule"),
        ({'devices': "['cpu','cuda:0']"}, 'cuda:0 cannot be used'),
    ],
)
def test_a_users_mistake_at_start_is_one_line_and_exit_code_two(crew, parameters, says) -> None:
    node = crew.start('node', 'node', **parameters)
    assert node.wait(timeout=PATIENCE_S) == 2
    log = crew.log('node')
    assert says in log
    assert 'Traceback' not in log
    own = [line for line in log.splitlines() if 'INACTIVE' not in line and '[rcl]' not in line]
    assert len(own) == 1


def test_the_node_runs_without_torch_on_the_cpu(crew: Crew) -> None:
    node = crew.start('node', 'node', run_dir=crew.folder)
    crew.until(lambda: 'WAITING: no joint_states' in crew.log('node'), 'WAITING')
    node.send_signal(signal.SIGINT)
    assert node.wait(timeout=PATIENCE_S) == 0
    assert json.loads((crew.folder / 'node.json').read_text())['versions']['torch'] is None
