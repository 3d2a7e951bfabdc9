"""`g1-policy walk`: simulator, node and command source as processes, watched to the end."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.live import Live

from g1_policy_node.bringup import Options, processes, write_parameters
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.run_folder import VIEW_URL, create_run_folder, write_plan
from g1_policy_node.tools.crew import Crew, Member
from g1_policy_node.tools.doctor import host_checks, run_checks, write
from g1_policy_node.tools.floor import read_live
from g1_policy_node.tools.report import show
from g1_policy_node.tools.ros_environment import ros_environment
from g1_policy_node.tools.summary import merge_run
from g1_policy_node.types import Mode, UserError

START_LIMIT = {'isaac': 300.0}
"""Seconds until RUN must be reached where nobody has to ask for it: Isaac Lab compiles first."""
OTHERS_START_LIMIT = 30.0

POLL_PERIOD = 0.2
PLAIN_PERIOD = 2.0

_STARTED = frozenset({Mode.RUN.value, Mode.HOLD.value, Mode.DAMP.value})
_BAD_USAGE = 2
_LOG_PREFIX = re.compile(r'^\[\w+\] \[[\d.]+\] \[\S+\]: ')


class End(Enum):
    """How a walk came to its end."""

    DONE = 'done'
    INTERRUPTED = 'interrupted'
    FAILED = 'failed'


class Ending(NamedTuple):
    """How a walk ended and what to tell about it, line by line."""

    end: End
    lines: tuple[str, ...] = ()


def walk(options: Options) -> int:
    """Walk, merge the evidence, show it; 0 accepted, 1 not accepted."""
    console = Console()
    if options.policy:
        load_bundle(resolve_bundle(options.policy))
    run_dir = create_run_folder(options.run_dir, 'walk')
    options = replace(options, run_dir=str(run_dir))
    specs = processes(options)
    write_parameters(specs)
    write_plan(options, specs, sys.argv)
    if options.interface:
        write(run_checks(host_checks(options.policy or 'g1_walk', options.interface)), run_dir)
    os.environ.update(ros_environment())
    with stop_signals() as stopped, Crew(specs, run_dir, os.environ) as crew:
        ending = _watch(crew, options, stopped, console)
        for line in ending.lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        for name in crew.stop():
            console.print(f'{name} did not stop when asked and was killed', style='red')
    summary = merge_run(run_dir)
    show(summary, run_dir, console)
    return 0 if summary['accepted'] and ending.end is not End.FAILED else 1


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Turn SIGINT, SIGTERM and SIGHUP into a flag: the processes have to be stopped first."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda n, _frame: received.append(n)) for number in numbers]
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _watch(crew: Crew, options: Options, stopped: Callable[[], bool], console: Console) -> Ending:
    """Show the progress until the walk ends."""
    # Costs half a second and 30 MB, so only once the processes are on their way.
    from g1_policy_node.tools.dashboard import dashboard
    from g1_policy_node.tools.monitor import Monitor

    started, shown, url = time.monotonic(), 0.0, ''
    limit = START_LIMIT.get(options.sim, OTHERS_START_LIMIT)
    waits_for_run = options.auto_run and options.autostart and bool(options.sender)
    with (
        Monitor(options.namespace) as monitor,
        Live(console=console, auto_refresh=False, transient=True) as live,
    ):
        while True:
            snapshot = monitor.poll()
            if (gone := crew.ended()) is not None:
                return _process_ended(gone)
            if snapshot.mode in _STARTED:
                _show_warnings(crew, console)
            url = url or _view_url(options, console)
            if console.is_terminal:
                board = dashboard(snapshot, read_live(Path(options.run_dir)))
                live.update(board, refresh=True)
            elif time.monotonic() - shown >= PLAIN_PERIOD:
                shown = time.monotonic()
                console.print(snapshot.line(), markup=False, highlight=False, soft_wrap=True)
            waits_for_run = waits_for_run and snapshot.mode not in _STARTED
            if stopped():
                return Ending(End.INTERRUPTED, ('stopped by a signal',))
            if waits_for_run and time.monotonic() - started > limit:
                where = f'{snapshot.mode}: {snapshot.reason}' if snapshot.mode else 'no mode heard'
                return Ending(End.FAILED, (f'no RUN within {limit:g} s ({where})',))
            time.sleep(POLL_PERIOD)


def _view_url(options: Options, console: Console) -> str:
    """Return where the view is, having said so; empty while it is not there."""
    path = Path(options.run_dir, VIEW_URL)
    if not path.is_file():
        return ''
    url: str = json.loads(path.read_text())['url']
    console.print(f'view: {url}', highlight=False)
    return url


def _process_ended(member: Member) -> Ending:
    if member.exit_code == 0 and member.name == 'cmd_source':
        return Ending(End.DONE)
    if member.exit_code == _BAD_USAGE:
        raise UserError(_last_words(member))
    if member.exit_code == 1 and member.name == 'cmd_source':
        return Ending(End.FAILED, (_last_words(member),))
    lines = tuple(f'  {line}' for line in member.tail(10))
    said = f'{member.name} ended by itself (code {member.exit_code}); its last lines:'
    return Ending(End.FAILED, (said, *lines))


def _last_words(member: Member) -> str:
    """Return its last line, without what ROS puts in front of a log line."""
    last = ''.join(member.tail(1)) or f'{member.name} ended with code {member.exit_code}'
    return _LOG_PREFIX.sub(f'{member.name}: ', last)


def _show_warnings(crew: Crew, console: Console) -> None:
    for member in crew.members:
        for line in member.new_warnings():
            console.print(f'{member.name}: {line}', markup=False, style='yellow', soft_wrap=True)
