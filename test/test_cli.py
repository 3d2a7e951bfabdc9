import subprocess
import sys
from pathlib import Path

import pytest

from g1_policy_node import cli
from g1_policy_node.bringup import KINDS


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['walk', '--vx', 'fast'], "vx: expected a number, got 'fast'"),
        (['walk', '--sim', 'gazebo'], "sim: 'gazebo' is none of mujoco, isaac, none"),
        (['walk', '--lockstep', 'maybe'], "lockstep: 'maybe' is none of true, false"),
        (['walk', '--storage', 'tar'], "storage: 'tar' is none of mcap, sqlite3"),
        (['walk', '--duration=-3'], 'duration: -3 s is negative'),
        (['walk', '--policy', 'no_such_policy'], 'no_such_policy'),
        (['walk', '--params-file', '/nowhere.yaml'], 'params_file: no file /nowhere.yaml'),
        (['report', '/nowhere'], '/nowhere: no such folder'),
        (['evaluate', '--bar', 'sky'], "bar 'sky' is none of walks, ship"),
        (['evaluate', 'no_such_policy'], 'no_such_policy'),
        (['evaluate', '--quick', '--write'], '--quick judges nothing'),
        (['evaluate', '--jobs', '-1'], '--jobs: -1 processes'),
    ],
)
def test_a_users_mistake_is_one_line_and_two(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(arguments) == 2
    shown = capsys.readouterr()
    assert expected in shown.err
    assert shown.err.count('\n') == 1
    assert shown.out == ''
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('arguments', [[], ['dance'], ['walk', '--fast'], ['walk', '--vx']])
def test_what_is_no_command_is_one_line_and_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cli.run(arguments)
    assert end.value.code == 2
    assert capsys.readouterr().err.count('\n') == 1


def test_an_empty_folder_has_nothing_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(['report']) == 2
    assert capsys.readouterr().err == f'g1-policy: report: no run in {tmp_path}/runs\n'


def test_every_option_of_the_bring_up_is_an_option_of_walk(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.run(['walk', '--help'])
    shown = capsys.readouterr().out
    assert [n for n in KINDS if f'--{n.replace("_", "-")} ' not in shown] == []


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        ([], {}),
        (['--vx', '-0.4'], {'vx': '-0.4'}),
        (['--lockstep'], {'lockstep': 'true'}),
        (['--auto-run', 'false', '--wz', '1'], {'auto_run': 'false', 'wz': '1'}),
    ],
)
def test_only_what_was_typed_is_passed_on(arguments: list[str], expected: dict[str, str]) -> None:
    parsed = vars(cli.build_parser([]).parse_args(['walk', *arguments]))
    assert {name: parsed[name] for name in parsed if name in KINDS} == expected


def test_the_bundle_commands_are_reached(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(['bundle', 'check']) == 0
    assert 'cpu: largest action difference' in capsys.readouterr().out


def test_starting_it_loads_nothing_heavy() -> None:
    code = (
        'import sys; from g1_policy_node import cli; cli.build_parser(["walk"]); '
        'print(*{"rclpy", "torch", "mujoco", "rich", "safetensors"} & set(sys.modules))'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ''
