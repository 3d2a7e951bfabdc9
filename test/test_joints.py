"""The joint table against the model file, and matching by name."""

import xml.etree.ElementTree as ET

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from g1_policy_node.joints import G1_JOINT_NAMES, G1_JOINTS, JointOrder, describe_mismatch
from g1_policy_node.sim.model import find_mjcf

NAMES = st.lists(st.text('abcd', min_size=1, max_size=3), max_size=12)
orders = st.permutations(range(len(G1_JOINT_NAMES)))


def test_names_order_and_ranges_are_those_of_the_model_file() -> None:
    joints = [j for j in ET.parse(find_mjcf()).getroot().iter('joint') if 'range' in j.attrib]
    assert [j.attrib['name'] for j in joints] == list(G1_JOINT_NAMES)
    for joint, model in zip(G1_JOINTS, joints, strict=True):
        assert [joint.lower, joint.upper] == [float(x) for x in model.attrib['range'].split()]


def test_left_and_right_mirror_each_other() -> None:
    by_name = {joint.name: joint for joint in G1_JOINTS}
    for name, joint in by_name.items():
        if not name.startswith('left_'):
            continue
        other = by_name[name.replace('left_', 'right_')]
        mirrored = 'roll' in name or 'yaw' in name
        expected = (-joint.upper, -joint.lower) if mirrored else (joint.lower, joint.upper)
        assert (other.lower, other.upper) == expected, name
        assert (other.effort, other.velocity) == (joint.effort, joint.velocity), name


def test_the_limits_by_kind_are_those_of_rev_1_0() -> None:
    """docs/facts.md section 4.1, effort N m and velocity rad/s."""
    expected = {
        'hip_pitch': (88, 32), 'hip_roll': (139, 20), 'hip_yaw': (88, 32), 'knee': (139, 20),
        'ankle': (50, 37), 'waist_yaw': (88, 32), 'waist_roll': (50, 37), 'waist_pitch': (50, 37),
        'shoulder': (25, 37), 'elbow': (25, 37), 'wrist_roll': (25, 37), 'wrist_pitch': (5, 22),
        'wrist_yaw': (5, 22),
    }  # fmt: skip
    for joint in G1_JOINTS:
        [limits] = [value for kind, value in expected.items() if kind in joint.name]
        assert (joint.effort, joint.velocity) == limits, joint.name


@settings(deadline=None)
@given(orders)
def test_any_order_is_read_into_the_fixed_one(order: list[int]) -> None:
    names = tuple(G1_JOINT_NAMES[i] for i in order)
    values = np.array([100.0 + i for i in order])
    index = JointOrder(G1_JOINT_NAMES).index(names)
    assert index is not None
    np.testing.assert_array_equal(values[index], 100.0 + np.arange(len(G1_JOINT_NAMES)))


@settings(deadline=None)
@given(orders, orders)
def test_a_change_of_order_between_messages_is_followed(a: list[int], b: list[int]) -> None:
    matcher = JointOrder(G1_JOINT_NAMES)
    for order in (a, b, a):
        names = tuple(G1_JOINT_NAMES[i] for i in order)
        index = matcher.index(names)
        assert index is not None
        assert [names[i] for i in index] == list(G1_JOINT_NAMES)


def test_the_permutation_is_reused_while_the_names_stay() -> None:
    matcher = JointOrder(G1_JOINT_NAMES)
    first = matcher.index(tuple(reversed(G1_JOINT_NAMES)))
    assert matcher.index(tuple(reversed(G1_JOINT_NAMES))) is first


def test_a_mismatch_is_named_and_forgotten_once_the_names_fit() -> None:
    matcher = JointOrder(('a', 'b', 'c'))
    assert matcher.index(('a', 'a', 'x', 'b')) is None
    assert matcher.mismatch == 'missing c; unexpected x; duplicated a'
    assert matcher.index(('a', 'a', 'x', 'b')) is None
    assert matcher.mismatch == 'missing c; unexpected x; duplicated a'
    assert matcher.index(('c', 'b', 'a')) is not None
    assert matcher.mismatch == ''


@settings(deadline=None)
@given(NAMES, st.lists(st.text('abcd', min_size=1, max_size=3), unique=True, max_size=12))
def test_a_mismatch_is_empty_exactly_for_the_same_names_once_each(
    got: list[str], wanted: list[str]
) -> None:
    message = describe_mismatch(got, wanted)
    assert (message == '') == (sorted(got) == sorted(wanted))
    index = JointOrder(wanted).index(tuple(got))
    assert (index is None) == (message != '')


def test_a_hundred_thousand_names_are_described_at_once() -> None:
    names = [f'joint_{i}' for i in range(100_000)]
    assert 'joint_99999' in describe_mismatch(names, G1_JOINT_NAMES)
