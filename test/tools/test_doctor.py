import io
import json

import pytest
from rich.console import Console

from g1_policy_node.tools import doctor_host as host
from g1_policy_node.tools import doctor_network as network
from g1_policy_node.tools.doctor import Finding, Level, report, run_checks
from g1_policy_node.tools.doctor_network import Heard

LOCK = 'numpy==2.4.6\nmujoco==4.0.0\n'
GOOD = Finding('a', Level.PASS, 'fine')
BAD = Finding('b', Level.FAIL, 'broken [x]', 'mend it')


def levels(findings) -> list[str]:
    return [finding.level.value for finding in findings]


def shown(findings, as_json=False, out='') -> tuple[int, str]:
    text = io.StringIO()
    return report(findings, as_json, out, Console(file=text, width=200)), text.getvalue()


def test_a_failed_check_makes_the_exit_code_and_comes_with_its_remedy() -> None:
    code, text = shown([GOOD, BAD])
    assert code == 1
    assert 'broken [x]' in text and 'mend it' in text
    assert '1 passed, 0 to look at, 1 failed' in text


def test_a_warning_alone_is_no_failure() -> None:
    assert shown([GOOD, Finding('c', Level.WARN, 'hm')])[0] == 0


def test_json_is_printed_and_put_into_the_run_folder(tmp_path, capsys) -> None:
    shown([GOOD, BAD], as_json=True, out=str(tmp_path))
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / 'doctor.json').read_text())
    assert printed['failed'] == 1
    assert printed['findings'][1]['level'] == 'fail'


def test_a_check_that_breaks_is_told_and_the_others_go_on() -> None:
    findings = run_checks([('x', lambda: [1 / 0]), ('y', lambda: [GOOD])])
    assert levels(findings) == ['warn', 'pass']
    assert 'ZeroDivisionError' in findings[0].found


@pytest.mark.parametrize(
    ('installed', 'level'),
    [
        ({'numpy': '2.4.6', 'mujoco': '4.0.0'}, 'pass'),
        ({'numpy': '2.4.7'}, 'warn'),
        ({'numpy': None}, 'fail'),
        ({'mujoco': None}, 'warn'),
        ({'unheard_of': '1'}, 'pass'),
    ],
)
def test_versions_are_held_against_the_lock(installed, level) -> None:
    assert levels(host.versions(LOCK, installed)) == [level]


@pytest.mark.parametrize(
    ('state', 'wireless', 'level'),
    [('up', False, 'pass'), ('down', False, 'fail'), ('up', True, 'fail')],
)
def test_the_interface_must_be_a_wire_that_is_up(tmp_path, state, wireless, level) -> None:
    (tmp_path / 'eth7').mkdir()
    (tmp_path / 'eth7/operstate').write_text(f'{state}\n')
    if wireless:
        (tmp_path / 'eth7/wireless').mkdir()
    assert levels(host.interface('eth7', tmp_path)) == [level]


def test_an_interface_that_is_not_there_is_named_with_those_that_are(tmp_path) -> None:
    (tmp_path / 'lo').mkdir()
    [finding] = host.interface('eth9', tmp_path)
    assert finding.level is Level.FAIL
    assert 'lo' in finding.remedy


@pytest.mark.parametrize(('found', 'level'), [('performance', 'pass'), ('powersave', 'warn')])
def test_the_governor_must_be_performance(tmp_path, found, level) -> None:
    folder = tmp_path / 'cpu0/cpufreq'
    folder.mkdir(parents=True)
    (folder / 'scaling_governor').write_text(f'{found}\n')
    assert levels(host.governor(tmp_path)) == [level]


@pytest.mark.parametrize(
    ('finding', 'level'),
    [
        (host.real_time(0), 'warn'),
        (host.real_time(host.PRIORITY), 'pass'),
        (host.real_time(host.resource.RLIM_INFINITY), 'pass'),
        (host.cores(2, 0.3), 'pass'),
        (host.cores(2, 1.5), 'warn'),
        (host.cores(2, 2.5), 'fail'),
        (host.disk(10**9), 'fail'),
        (host.disk(10**10), 'pass'),
        (host.ros({'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}), 'pass'),
        (host.ros({}), 'warn'),
        (host.check_bundle('g1_walk'), 'pass'),
        (host.check_bundle('no_such_policy'), 'fail'),
        (network.ros_clock(0), 'pass'),
        (network.ros_clock(1), 'warn'),
    ],
)
def test_each_check_knows_good_from_bad(finding, level) -> None:
    assert levels(finding) == [level]


@pytest.mark.parametrize(
    ('heard', 'level', 'says'),
    [
        (Heard(('/sim', '/bridge'), 400.0, 1.0), 'fail', '2 senders: /sim, /bridge'),
        (Heard(('/sim',), 0.0, None), 'fail', '/sim publishes nothing'),
        (Heard((), 0.0, None), 'warn', 'nobody publishes joint_states'),
        (Heard(('/sim',), 40.0, 1.0), 'warn', '40 Hz'),
        (Heard(('/sim',), 200.0, 70.0), 'warn', '70.0 ms old'),
        (Heard(('/sim',), 200.0, 1.25), 'pass', '200 Hz from /sim, newest 1.2 ms old'),
    ],
)
def test_a_topic_has_one_sender_that_sends(heard, level, says) -> None:
    [finding] = network.topics({'joint_states': heard})
    assert finding.level.value == level
    assert says in finding.found


def test_what_only_speaks_when_it_has_to_may_be_silent_but_is_not_passed() -> None:
    [finding] = network.topics({'cmd_vel': Heard(('/joy',), 0.0, None)})
    assert finding.level is Level.WARN
    [finding] = network.topics({'g1_policy/mode': Heard(('/g1_policy',), 0.5, 9000.0)})
    assert finding.level is Level.PASS


def test_what_cannot_be_looked_at_is_never_a_pass(tmp_path) -> None:
    (tmp_path / 'lo').mkdir()
    unseen = [
        *host.governor(tmp_path),
        *host.interface('', tmp_path),
        *network.topics({name: Heard((), 0.0, None) for name in network.TOPICS}),
        *host.clock_source(tmp_path / 'none'),
        *host.versions('', {'numpy': '1'}),
    ]
    assert {finding.level for finding in unseen} == {Level.WARN}
    assert len(unseen) == 5


def robot(contract, **changes) -> dict[str, Finding]:
    heard = {'state_hz': 500.0, 'state_age_ms': 2.0, 'bad_crcs': 0, 'mode_machine': 5}
    findings = network.robot({**heard, 'senders': [], **changes}, contract)
    return {finding.found: finding for finding in findings}


@pytest.mark.parametrize(
    ('changes', 'level', 'says'),
    [
        ({'state_hz': 0}, 'fail', 'no LowState'),
        ({'state_hz': 300.0}, 'warn', '300 Hz'),
        ({'bad_crcs': 3}, 'fail', '3 LowState with a wrong CRC'),
        ({'senders': ['participant 7']}, 'fail', 'LowCmd is sent by participant 7'),
        ({'mode_machine': 6}, 'fail', 'locked on this robot'),
        ({}, 'pass', 'mode_machine 5 fits'),
    ],
)
def test_what_the_robot_says_is_judged(changes, level, says) -> None:
    from samples import CONTRACT

    found = robot(CONTRACT, **changes)
    assert any(f.level.value == level and says in text for text, f in found.items())
