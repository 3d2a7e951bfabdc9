"""docs/SAFETY.md says what was measured, and the SROS 2 policy what it promises."""

import importlib.util
import json
import xml.etree.ElementTree as ElementTree

from faults.injector import FAULTS
from faults.watch import MAX_MB_PER_MINUTE
from samples import REPOSITORY

spec = importlib.util.spec_from_file_location('safety_doc', REPOSITORY / 'bench' / 'safety_doc.py')
safety_doc = importlib.util.module_from_spec(spec)
spec.loader.exec_module(safety_doc)
RESULT = json.loads(safety_doc.EVIDENCE.read_text())
SOAK = json.loads(safety_doc.SOAK.read_text())


def test_the_page_is_made_from_the_evidence_and_the_limits_as_they_stand() -> None:
    assert safety_doc.PAGE.read_text() == safety_doc.page(RESULT, SOAK)


def test_every_fault_there_is_was_measured_as_it_stands() -> None:
    assert list(RESULT['faults']) == list(FAULTS)
    for name, fault in FAULTS.items():
        assert RESULT['faults'][name]['limit'] == fault.limit
        assert RESULT['faults'][name]['outcome'] == fault.outcome


def test_no_fault_made_an_unsafe_command_or_ended_the_node() -> None:
    assert RESULT['unsafe_commands'] == 0
    assert RESULT['node_alive_at_the_end']
    assert RESULT['node_exit_code'] == 0


def test_the_soak_was_ten_minutes_of_every_fault_there_is_and_no_trip_is_without_a_cause() -> None:
    assert SOAK['soak_seconds'] >= 600
    assert set(SOAK['faults_injected']) == set(FAULTS)
    explained = {f'{n!r} tripped {layer}' for n, f in FAULTS.items() for layer in f.explains}
    assert [p for p in SOAK['soak_problems'] if p.partition(' (')[0] not in explained] == []
    assert SOAK['unsafe_commands'] == 0
    assert SOAK['node_alive_at_the_end']
    assert SOAK['node_exit_code'] == 0
    assert SOAK['memory_mb_per_minute'] <= SOAK['memory_limit_mb_per_minute'] == MAX_MB_PER_MINUTE


def test_by_the_sros2_policy_only_the_router_commands() -> None:
    tree = ElementTree.parse(REPOSITORY / 'docs' / 'sros2_policy.xml')
    senders = [
        profile.get('node')
        for profile in tree.iter('profile')
        for topics in profile.iter('topics')
        if topics.get('publish') == 'ALLOW'
        for topic in topics
        if topic.text == 'joint_command'
    ]
    assert senders == ['g1_policy']
