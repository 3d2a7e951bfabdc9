import json
from pathlib import Path

import pytest

from g1_policy_node.bringup import Options
from g1_policy_node.tools.rehearse import VICTIMS, Events, rehearse, specs
from g1_policy_node.types import UserError

EVENTS = [
    {'mono_ns': 1, 'event': 'silent'},
    {'mono_ns': 10, 'event': 'following'},
    {'mono_ns': 10**9, 'event': 'at', 'position': [0, 0, 0.8]},
    {'mono_ns': 3 * 10**9, 'event': 'at', 'position': [0.6, 0.8, 0.8]},
    {'mono_ns': 4 * 10**9, 'event': 'damping'},
]


def events(folder: Path) -> Events:
    path = folder / 'events.jsonl'
    text = ''.join(json.dumps(event) + '\n' for event in EVENTS)
    path.write_text(text + '{"mono_ns": 5')
    return Events(path)


def test_events_are_read_up_to_the_line_being_written(tmp_path) -> None:
    told = events(tmp_path)
    assert told.doing() == 'damping'
    assert told.first('damping') == 4 * 10**9
    assert told.first('following', since=11) is None
    assert told.speed(0, 4 * 10**9) == pytest.approx(0.5)
    assert told.speed(0, 2 * 10**9) is None


def test_nothing_written_yet_is_nothing_done(tmp_path) -> None:
    assert Events(tmp_path / 'none').doing() == ''


def test_a_process_that_is_not_there_cannot_be_killed(tmp_path) -> None:
    with pytest.raises(UserError, match="'sim' is none of"):
        rehearse('', 1.0, ['sim'], str(tmp_path))


def test_the_processes_are_those_of_the_real_robot_and_a_peer_on_loopback(tmp_path) -> None:
    options = Options(sim='none', interface='lo', auto_run=False, run_dir=str(tmp_path))
    names = {spec.executable: spec for spec in specs(options, 9, tmp_path / 'e')}
    assert set(names) == {'unitree_peer', 'unitree_bridge', 'policy_node', 'cmd_source'}
    assert names['unitree_bridge'].parameters['domain'] == 9
    assert names['unitree_bridge'].parameters['interface'] == 'lo'
    assert names['policy_node'].parameters['auto_run'] is False
    assert set(VICTIMS) - {'writer'} < set(names)


@pytest.mark.ros
@pytest.mark.slow
def test_a_killed_router_is_damped_by_the_writer(tmp_path) -> None:
    # How fast it is damped, and whether it walks, is the machine's affair here.
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        rehearse('', 0.1, ['policy_node'], str(folder))
        [trial] = json.loads((folder / 'rehearsal.json').read_text())['trials']
        if not trial['problem'] and not trial['fell_before']:
            break
    if trial['fell_before'] or 'tilted' in trial['problem']:
        pytest.skip('fell three times: the machine is too busy to walk')
    assert not trial['problem'], trial
    assert trial['damped_s'] is not None, trial
    told = Events(folder / 'policy_node/events.jsonl')
    assert told.doing() in ('damping', 'silent'), 'followed again without a router'
    assert json.loads((folder / 'doctor.json').read_text())['findings']
