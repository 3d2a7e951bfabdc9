"""One session: an arm under a condition, beside the source, for so many seconds."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.arms import Condition, Process, link, processes
from g1_policy_node.tools.crew import _die_with_parent
from g1_policy_node.tools.ros_environment import bound_udp_ports, free_domain
from g1_policy_node.types import UserError

SETTLE_S = 1.5
START_LIMIT_S = 90.0
STOP_LIMIT_S = 10.0


class Session(NamedTuple):
    """What was seen from outside; the rest is in the folder.

    `window` is (start, end) in monotonic ns, `cpu_s` and `rss` of the arm's node processes,
    `started` system ns at exec, `rss` samples (seconds, kB), `peak_kb` the largest VmHWM.
    """

    arm: str
    condition: Condition
    folder: Path
    started: int
    window: tuple[int, int]
    cpu_s: float
    rss: list[tuple[float, int]]
    peak_kb: int


def run_session(arm: str, condition: Condition, folder: Path, seconds: float) -> Session:
    """Start source and arm, wait until it acts, measure, stop both. UserError if it fails."""
    folder.mkdir(parents=True)
    environment = {
        **os.environ,
        'ROS_DOMAIN_ID': str(free_domain(bound_udp_ports())),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        'ROS_LOG_DIR': str(folder / 'ros'),
    }
    swaps = 'cpu,cuda:0' if condition.swaps else ''
    # One message more in a session than the rate says: the ticks fall on every phase of it.
    rate = condition.rate + 1.0 / seconds
    line = [sys.executable, '-m', 'bench.source', str(folder), str(rate)]
    line += [link(arm, condition), swaps, *condition.namespaces]
    source = _start(Process(line, {}), environment, folder / 'source.log', subprocess.PIPE)
    running = [source]
    try:
        time.sleep(1.0)  # Its own start must not count in the arm's.
        started, nodes = time.time_ns(), []
        for i, process in enumerate(processes(arm, condition, folder)):
            nodes.append(_start(process, environment, folder / f'arm{i}.log', None))
            running.insert(0, nodes[-1])
        _wait_until_acting(source, nodes, folder)
        watched = nodes[: condition.robots]
        session = _measure(arm, condition, folder, seconds, started, watched)
    finally:
        for process in running:
            _stop(process)
    return session


def _measure(
    arm: str,
    condition: Condition,
    folder: Path,
    seconds: float,
    started: int,
    nodes: list[subprocess.Popen[bytes]],
) -> Session:
    time.sleep(SETTLE_S)
    if condition.swaps:
        (folder / 'swap').touch()
    begin, cpu = time.monotonic_ns(), sum(_cpu_s(node.pid) for node in nodes)
    rss = []
    while (left := begin * 1e-9 + seconds - time.monotonic()) > 0:
        time.sleep(min(left, 1.0))
        kb = sum(_status_kb(node.pid, 'VmRSS') for node in nodes)
        rss.append((time.monotonic() - begin * 1e-9, kb))
    cpu = sum(_cpu_s(node.pid) for node in nodes) - cpu
    window = (begin, time.monotonic_ns())
    peak = max(_status_kb(node.pid, 'VmHWM') for node in nodes)
    return Session(arm, condition, folder, started, window, cpu, rss, peak)


def _start(
    process: Process, environment: dict[str, str], log: Path, stdout: Any
) -> subprocess.Popen[bytes]:
    with log.open('wb') as file:
        return subprocess.Popen(
            process.argv,
            stdin=subprocess.DEVNULL,
            stdout=stdout or file,
            stderr=file,
            env={**environment, **process.environment},
            preexec_fn=_die_with_parent,
        )


def _wait_until_acting(
    source: subprocess.Popen[bytes], nodes: list[subprocess.Popen[bytes]], folder: Path
) -> None:
    told = threading.Event()
    assert source.stdout
    lines = source.stdout
    threading.Thread(target=lambda: lines.readline() and told.set(), daemon=True).start()
    deadline = time.monotonic() + START_LIMIT_S
    while not told.wait(0.05):
        gone = [p for p in (source, *nodes) if p.poll() is not None]
        if gone or time.monotonic() > deadline:
            why = f'a process ended ({gone[0].returncode})' if gone else 'nothing acts'
            raise UserError(f'{why}: see the logs in {folder}')


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of another process, by its CPU clock (clock_getcpuclockid(3))."""
    return time.clock_gettime((~pid << 3) | 2)


def _status_kb(pid: int, field: str) -> int:
    for line in Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith(f'{field}:'):
            return int(line.split()[1])
    raise UserError(f'/proc/{pid}/status has no {field}')


def machine() -> dict[str, Any]:
    """Return what the numbers depend on: CPU, cores, load."""
    models = [
        line.partition(':')[2].strip()
        for line in Path('/proc/cpuinfo').read_text().splitlines()
        if line.startswith('model name')
    ]
    commit = subprocess.run(['git', 'rev-parse', 'HEAD'], capture_output=True, text=True)
    return {
        'cpu': models[0] if models else 'unknown',
        'cores': len(os.sched_getaffinity(0)),
        'load_before': os.getloadavg(),
        'python': sys.version.split()[0],
        'git_commit': commit.stdout.strip() or None,
        'command_line': sys.argv,
    }


def dump(session: Session) -> str:
    """Return the session as JSON, beside its parts."""
    data = session._asdict() | {'condition': session.condition._asdict()}
    return json.dumps(data | {'folder': str(session.folder)})
