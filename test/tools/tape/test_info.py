"""What is missing from a tape is counted, and a tape that misses too much is not complete."""

from tapes import T0, TICK, messages, write_tape

from g1_policy_node.tools.tape.info import describe
from g1_policy_node.tools.tape.tape import open_tape


def test_rates_coverage_and_ages_of_a_steady_tape(tmp_path) -> None:
    found = describe(open_tape(write_tape(tmp_path / 'a')))
    assert found['topics']['/joint_states']['rate_hz'] == 200.0
    assert found['topics']['/joint_states']['missing'] == 0
    assert found['topics']['/joint_states']['gaps'] == 0
    assert found['steps']['covered'] == 1.0
    assert found['sensor_age_ms']['max'] == 2.0
    assert found['complete']['problems'] == ['no g1_policy/mode']


def test_lost_messages_are_gaps_and_make_it_incomplete(tmp_path) -> None:
    content = [m for i, m in enumerate(messages()) if not 100 <= i < 130]
    found = describe(open_tape(write_tape(tmp_path / 'a', content)))
    joints = found['topics']['/joint_states']
    assert joints['gaps'] == 1
    assert joints['missing'] >= 12
    assert found['steps']['covered'] < 1.0
    assert any('joint_states' in problem for problem in found['complete']['problems'])


def test_a_topic_slower_than_the_walk_needs_it_is_not_complete_however_steady(tmp_path) -> None:
    halved = [m for m in messages() if m[1] != '/joint_states' or not (m[0] - T0) % (2 * TICK)]
    found = describe(open_tape(write_tape(tmp_path / 'a', halved)))
    assert found['topics']['/joint_states']['gaps'] == 0
    assert found['topics']['/joint_states']['missing'] == 29
    assert 'joint_states: 29 of 59 missing, at one every 20.0 ms' in found['complete']['problems']
