"""`g1-policy rehearse`: the real robot's processes against a simulated robot, killed in turn."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from g1_policy_node.bringup import Options, ProcessSpec, processes, write_parameters
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.run_folder import create_run_folder, write_json, write_plan
from g1_policy_node.tools.crew import Crew, Member
from g1_policy_node.tools.doctor import host_checks, run_checks, write
from g1_policy_node.tools.monitor import Monitor
from g1_policy_node.tools.ros_environment import bound_udp_ports, free_domain, ros_environment
from g1_policy_node.types import UserError

VICTIMS = ('policy_node', 'unitree_bridge', 'writer', 'cmd_source')
DAMP_WITHIN_S = 0.3
"""How long a robot may go uncommanded: 0.3 s is survived, 0.5 s is not (measured)."""

STEP_LIMIT_S = 60.0
_WATCH_S = 3.0
_SENDING = re.compile(r'\[writer (\d+)\] following')


class Trial(NamedTuple):
    """One rehearsal: what was killed, and what the robot did.

    `speed` m/s forwards before the kill; `damped_s` from the kill to damping, None if it did
    not; `right` whether that is what should happen; `problem` what kept it from being tried.
    """

    victim: str
    speed: float | None = None
    fell_before: bool = False
    damped_s: float | None = None
    right: bool = False
    problem: str = ''


class Events:
    """What the simulated robot writes about itself."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def since(self, mono_ns: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the events since a time, oldest first; a line half written is left out."""
        text = self._path.read_text() if self._path.exists() else ''
        for line in text.splitlines(keepends=True):
            if line.endswith('\n'):
                event = json.loads(line)
                if event['mono_ns'] >= mono_ns:
                    yield event

    def first(self, name: str, since: int = 0) -> int | None:
        """Return when something first happened since then, monotonic ns."""
        return next((e['mono_ns'] for e in self.since(since) if e['event'] == name), None)

    def doing(self) -> str:
        """Return what the motors do now."""
        kinds = ('silent', 'damping', 'following')
        return next((e['event'] for e in reversed(list(self.since())) if e['event'] in kinds), '')

    def speed(self, start: int, end: int) -> float | None:
        """Return the mean speed over ground between two times, m/s."""
        places = [e for e in self.since(start) if e['event'] == 'at' and e['mono_ns'] <= end]
        if len(places) < 2:
            return None
        first, last = places[0], places[-1]
        dx, dy = (last['position'][i] - first['position'][i] for i in (0, 1))
        seconds = (last['mono_ns'] - first['mono_ns']) * 1e-9
        return float((dx * dx + dy * dy) ** 0.5 / seconds)


def rehearse(policy: str, seconds: float, victims: Sequence[str], run_dir: str) -> int:
    """Walk and kill, once for each victim; 0 if the robot did what it should each time."""
    for victim in victims:
        if victim not in VICTIMS:
            raise UserError(f'kill: {victim!r} is none of {", ".join(VICTIMS)}')
    load_bundle(resolve_bundle(policy or 'g1_walk'))
    console = Console()
    folder = create_run_folder(run_dir, 'rehearse')
    write(run_checks(host_checks(policy or 'g1_walk', 'lo')), folder)
    trials = []
    for victim in victims:
        trial = _rehearse_one(policy, seconds, victim, folder / victim, console)
        console.print(f'  {_outcome(trial)}', highlight=False)
        trials.append(trial)
    good = all(trial.right for trial in trials)
    write_json(
        folder / 'rehearsal.json',
        {
            'command_line': sys.argv,
            'limit_s': DAMP_WITHIN_S,
            'load': list(os.getloadavg()),
            'trials': [trial._asdict() for trial in trials],
            'accepted': good,
        },
    )
    console.print(_table(trials))
    console.print(f'{"accepted" if good else "not accepted"}  {folder}', soft_wrap=True)
    return 0 if good else 1


def specs(options: Options, domain: int, events: Path) -> list[ProcessSpec]:
    """Return real.launch.py's processes, the bridge on a loopback domain, and a peer."""
    policy = ('--policy', options.policy) if options.policy else ()
    peer = ProcessSpec(
        'unitree_peer',
        'g1_policy_node.sim.unitree_peer',
        arguments=('--domain', str(domain), '--events', str(events), *policy),
    )
    real = [
        replace(spec, parameters={**spec.parameters, 'domain': domain})
        if spec.executable == 'unitree_bridge'
        else spec
        for spec in processes(options)
        if spec.executable != 'floor'
    ]
    return [peer, *real]


def _rehearse_one(
    policy: str, seconds: float, victim: str, folder: Path, console: Console
) -> Trial:
    folder.mkdir()
    options = Options(
        sim='none',
        interface='lo',
        policy=policy,
        auto_run=False,
        duration=0.0,
        run_dir=str(folder),
    )
    environment = ros_environment()
    os.environ.update(environment)
    events = Events(folder / 'events.jsonl')
    ports = bound_udp_ports() | {7400 + 250 * int(environment['ROS_DOMAIN_ID'])}
    crew_specs = specs(options, free_domain(ports), folder / 'events.jsonl')
    write_parameters(crew_specs)
    write_plan(options, crew_specs, sys.argv)
    console.print(f'[bold]{victim}[/bold]: starting')
    try:
        with Crew(crew_specs, folder, environment) as crew, Monitor('') as monitor:
            return _Rehearsal(crew, monitor, events, victim, console).run(seconds)
    except TimeoutError as late:
        return Trial(victim, problem=str(late))


class _Rehearsal:
    """The steps of docs/BRINGUP.md, done by a program."""

    def __init__(
        self, crew: Crew, monitor: Monitor, events: Events, victim: str, console: Console
    ) -> None:
        self._crew, self._monitor, self._events = crew, monitor, events
        self._victim, self._console = victim, console
        self._members = {member.name: member for member in crew.members}

    def run(self, seconds: float) -> Trial:
        self._until_mode('READY')
        self._until(lambda: self._events.doing() == 'following', 'the robot follows')
        if refused := self._monitor.ask_to_run(True):
            raise TimeoutError(f'~/run was refused: {refused}')
        self._until_mode('RUN')
        self._members['unitree_peer'].process.send_signal(signal.SIGUSR1)
        start = time.monotonic_ns()
        self._console.print(f'  RUN, off the hoist, walking for {seconds:g} s')
        self._until(lambda: time.monotonic_ns() - start > seconds * 1e9, 'the walk')
        pid = self._pid()
        killed = time.monotonic_ns()
        os.kill(pid, signal.SIGKILL)
        return self._judge(start, killed)

    def _judge(self, start: int, killed: int) -> Trial:
        while time.monotonic_ns() - killed < _WATCH_S * 1e9:
            time.sleep(0.1)
        damped = self._events.first('damping', killed)
        fell = self._events.first('fell')
        fell_before = fell is not None and fell < killed
        damped_s = None if damped is None else (damped - killed) * 1e-9
        if self._victim == 'cmd_source':
            right = damped is None and fell is None
        else:
            # It must stay damped, too.
            right = damped_s is not None and damped_s <= DAMP_WITHIN_S
            right = right and self._events.first('following', damped or 0) is None
        # A second to get going.
        speed = self._events.speed(min(start + 10**9, killed), killed)
        return Trial(self._victim, speed, fell_before, damped_s, right and not fell_before)

    def _pid(self) -> int:
        if self._victim != 'writer':
            return self._members[self._victim].process.pid
        log = self._members['unitree_bridge'].log.read_text(errors='replace')
        return int(_SENDING.findall(log)[-1])

    def _until_mode(self, mode: str) -> None:
        self._until(lambda: self._monitor.poll().mode == mode, f'mode {mode}')

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + STEP_LIMIT_S
        while not condition():
            if (gone := self._crew.ended()) is not None:
                raise TimeoutError(f'{gone.name} ended by itself: {_last_line(gone)}')
            if time.monotonic() > deadline:
                snapshot = self._monitor.poll()
                raise TimeoutError(f'{what} did not come ({snapshot.mode}: {snapshot.reason})')
            time.sleep(0.02)


def _last_line(member: Member) -> str:
    return ''.join(member.tail(1)) or f'code {member.exit_code}'


def _outcome(trial: Trial) -> str:
    if trial.problem:
        return trial.problem
    if trial.fell_before:
        return 'fell before the kill'
    if trial.victim == 'cmd_source':
        return 'stands' if trial.right else 'does not stand'
    if trial.damped_s is None:
        return 'NOT DAMPED'
    return f'damped after {trial.damped_s * 1e3:.0f} ms'


def _table(trials: Sequence[Trial]) -> Table:
    table = Table('killed', 'walked at', 'then', '', box=None)
    for trial in trials:
        speed = '' if trial.speed is None else f'{trial.speed:.2f} m/s'
        table.add_row(trial.victim, speed, _outcome(trial), 'ok' if trial.right else 'WRONG')
    return table
