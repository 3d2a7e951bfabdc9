"""The router and the simulator as processes: signals, kills, restarts and bad usage."""

import json
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import rclpy
from faults.line import Line
from rig import stamp
from rosgraph_msgs.msg import Clock

from g1_policy_node.journal import read_rows
from g1_policy_node.newest import SENSOR_QOS
from g1_policy_node.tools.parts import read_parts
from g1_policy_node.types import Mode

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


def test_a_killed_node_leaves_its_ticks_and_the_report_reads_them(crew: Crew) -> None:
    def rows() -> int:
        return sum(len(read_rows(path)) for path in crew.folder.glob('timing-*.rows'))

    node = crew.start('node', 'node', run_dir=crew.folder)
    crew.until(lambda: rows() >= 100, 'a hundred ticks')
    node.send_signal(signal.SIGKILL)
    node.wait()
    parts = read_parts(crew.folder)
    assert len(parts.timing['slot']) >= 100
    assert np.all(np.diff(parts.timing['tick_ns']) > 0)
    assert {'node.json', 'timing.npz'} <= set(parts.missing)


@pytest.fixture
def line() -> Iterator[Callable[..., Line]]:
    """Make a driver in this process, 200 times a second, until the test ends."""
    rclpy.init()
    lines = []

    def make(kind: type[Line] = Line) -> Line:
        lines.append(kind())
        lines[-1].start()
        return lines[-1]

    yield make
    for each in lines:
        each.stopping = True
        each.join()
        each.node.destroy_node()
        each.stranger.destroy_node()
    rclpy.shutdown()


class SlowLine(Line):
    """Simulated time at a quarter of real time."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = self.node.create_publisher(Clock, '/clock', SENSOR_QOS)
        self.first = time.monotonic_ns()

    def now(self) -> int:
        return 10**9 + (time.monotonic_ns() - self.first) // 4

    def tell(self, now: int) -> None:
        self.clock.publish(Clock(clock=stamp(now)))


def test_in_slow_simulated_time_there_is_one_command_per_slot_of_that_time(crew, line) -> None:
    slow = line(SlowLine)
    node = crew.start('node', 'node', auto_run='true', use_sim_time='true', run_dir=crew.folder)
    crew.until(lambda: slow.mode == 'RUN', 'RUN')
    told, commands, began = len(slow.told), slow.watch.commands, slow.now()
    crew.until(lambda: slow.watch.commands >= commands + 50, 'fifty commands')
    spent = (slow.now() - began) * 1e-9
    assert [text for _, text in slow.told[told:]] == []
    assert 0.9 < spent < 1.2
    assert slow.watch.unsafe == []
    node.send_signal(signal.SIGINT)
    assert node.wait(timeout=PATIENCE_S) == 0
    with np.load(crew.folder / 'timing.npz') as timing:
        run = timing['mode'] == list(Mode).index(Mode.RUN)
        assert np.all(np.diff(timing['slot'][run]) == 1)
        assert timing['joint_age'][run].max() <= 40_000_000


SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *seconds;
__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("CLOCK_STEP_FILE"), O_RDONLY);
    seconds = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
}
int clock_gettime(clockid_t id, struct timespec *t) {
    int code = syscall(SYS_clock_gettime, id, t);
    if (id == CLOCK_REALTIME && seconds) t->tv_sec += *seconds;
    return code;
}
int gettimeofday(struct timeval *t, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""
"""Puts the system clock of one process, its DDS included, off by the seconds in a file."""


@pytest.mark.skipif(not shutil.which('cc'), reason='the shim of the clock needs a C compiler')
def test_a_system_clock_that_steps_is_told_and_no_fault(crew, line, monkeypatch) -> None:
    """The clock of the host may not be set here: that of the node's process alone is."""
    (crew.folder / 'shim.c').write_text(SHIM)
    shim, offset = crew.folder / 'shim.so', crew.folder / 'seconds'
    build = ['cc', '-shared', '-fPIC', '-o', str(shim), str(crew.folder / 'shim.c')]
    subprocess.run(build, check=True)
    offset.write_bytes(bytes(8))
    driver = line()
    with monkeypatch.context() as environment:
        environment.setenv('LD_PRELOAD', str(shim))
        environment.setenv('CLOCK_STEP_FILE', str(offset))
        node = crew.start('node', 'node', auto_run='true', state_timeout='0.4')
    crew.until(lambda: driver.mode == 'RUN', 'RUN')
    told = len(driver.told)
    for seconds, says in ((5, 'stepped by +5.'), (-5, 'stepped by -10.')):
        with offset.open('r+b') as file:
            file.write(struct.pack('<q', seconds))
        crew.until(lambda says=says: says in crew.log('node'), says)
        commands = driver.watch.commands
        crew.until(lambda since=commands: driver.watch.commands > since + 25, 'commands')
    assert [text for _, text in driver.told[told:]] == []
    # The step is in the source stamps as well: five seconds without a command, by those.
    assert [line for line in driver.watch.unsafe if 'of silence' not in line] == []
    node.send_signal(signal.SIGINT)
    assert node.wait(timeout=PATIENCE_S) == 0
