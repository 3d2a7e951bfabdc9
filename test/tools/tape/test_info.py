"""What is missing from a tape is counted, and a tape that misses too much is not complete."""

from tapes import messages, write_tape

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
