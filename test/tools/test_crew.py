import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from g1_policy_node.bringup import ProcessSpec
from g1_policy_node.tools import crew as crew_module
from g1_policy_node.tools.crew import Crew

OBEDIENT = """
import pathlib, signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
print('[WARN] ready', flush=True)
pathlib.Path(sys.argv[1]).write_text('')
time.sleep(60)
"""
STUBBORN = OBEDIENT.replace('lambda *_: sys.exit(0)', 'signal.SIG_IGN')
FAILING = "import sys; print('[ERROR] no such thing'); sys.exit(3)"


def until(condition: Callable[[], object], limit: float = 10.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, 'waited in vain'
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except FileNotFoundError:
        return False


def crew_of(folder: Path, *programs: str) -> Crew:
    """A crew of programs, each of which makes its file `p<i>.ready` once it can be stopped."""
    specs = []
    for i, program in enumerate(programs):
        (folder / f'p{i}.py').write_text(program)
        ready = (str(folder / f'p{i}.ready'),)
        specs.append(ProcessSpec(f'p{i}', f'p{i}', arguments=ready))
    return Crew(specs, folder, {**os.environ, 'PYTHONPATH': str(folder)})


def test_leaving_the_context_stops_every_process(tmp_path: Path) -> None:
    with crew_of(tmp_path, OBEDIENT, OBEDIENT) as crew:
        until(lambda: len(list(tmp_path.glob('*.ready'))) == 2)
        assert crew.ended() is None
    assert [member.exit_code for member in crew.members] == [0, 0]


def test_an_exception_inside_leaves_no_process(tmp_path: Path) -> None:
    crew = crew_of(tmp_path, OBEDIENT)
    with pytest.raises(ZeroDivisionError), crew:
        1 / 0  # noqa: B018
    assert crew.members[0].exit_code is not None


def test_one_that_ignores_the_signal_is_ended_named_and_says_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew_module, 'GRACE', 0.2)
    with crew_of(tmp_path, OBEDIENT, STUBBORN) as crew:
        until(lambda: len(list(tmp_path.glob('*.ready'))) == 2)
        assert crew.stop() == ['p1']
    assert [member.exit_code for member in crew.members] == [0, -signal.SIGABRT]
    where = f'File "{tmp_path}/p1.py", line 6 in <module>'
    assert any(where in line for line in crew.members[1].tail(5))


def test_one_that_is_frozen_is_killed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew_module, 'GRACE', 0.2)
    with crew_of(tmp_path, OBEDIENT) as crew:
        until(lambda: (tmp_path / 'p0.ready').exists())
        os.kill(crew.members[0].process.pid, signal.SIGSTOP)
        assert crew.stop() == ['p0']
    assert crew.members[0].exit_code == -signal.SIGKILL


def test_the_one_that_failed_is_told_apart_with_its_last_lines(tmp_path: Path) -> None:
    with crew_of(tmp_path, 'pass', FAILING) as crew:
        until(lambda: all(member.exit_code is not None for member in crew.members))
        gone = crew.ended()
    assert gone is not None
    assert (gone.name, gone.exit_code, gone.tail(5)) == ('p1', 3, ['[ERROR] no such thing'])


def test_a_warning_is_reported_once(tmp_path: Path) -> None:
    with crew_of(tmp_path, OBEDIENT) as crew:
        until(lambda: (tmp_path / 'p0.ready').exists())
        [member] = crew.members
        assert member.new_warnings() == ['[WARN] ready']
        assert member.new_warnings() == []


def test_a_killed_parent_leaves_no_orphans(tmp_path: Path) -> None:
    parent = tmp_path / 'parent.py'
    parent.write_text(
        f'import sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r})\n'
        'from pathlib import Path\n'
        'from test_crew import STUBBORN, crew_of\n'
        f'with crew_of(Path({str(tmp_path)!r}), STUBBORN) as crew:\n'
        '    print(crew.members[0].process.pid, flush=True)\n'
        '    time.sleep(60)\n'
    )
    with subprocess.Popen([sys.executable, str(parent)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        until(lambda: (tmp_path / 'p0.ready').exists())
        assert alive(child)
        process.kill()
        process.wait()
        until(lambda: not alive(child))
