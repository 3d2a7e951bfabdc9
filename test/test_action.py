"""Targets are offset + scale * clip(action), joint by joint."""

import dataclasses

import numpy as np
from samples import CONTRACT, DEFAULT

from g1_policy_node.action import JointPositionAction


def test_one_on_one_joint_moves_that_joint_by_exactly_its_scale() -> None:
    action = JointPositionAction(CONTRACT)
    for i in range(29):
        raw = np.zeros(29)
        raw[i] = 1.0
        change = action.target(raw) - DEFAULT
        assert np.flatnonzero(change).tolist() == [i]
        assert action.target(raw)[i] == DEFAULT[i] + 0.25


def test_the_raw_action_is_clipped_before_it_is_scaled() -> None:
    action = JointPositionAction(CONTRACT)
    np.testing.assert_array_equal(action.target(np.full(29, 99.0)), DEFAULT + 0.25 * 10)


def test_without_a_clip_nothing_is_cut() -> None:
    free = dataclasses.replace(CONTRACT, action=dataclasses.replace(CONTRACT.action, clip=None))
    target = JointPositionAction(free).target(np.full(29, 99.0))
    np.testing.assert_array_equal(target, DEFAULT + 0.25 * 99)


def test_scale_and_offset_go_by_name_not_by_place() -> None:
    reordered = dataclasses.replace(CONTRACT, joint_names=tuple(reversed(CONTRACT.joint_names)))
    scale = dict.fromkeys(CONTRACT.joint_names, 0.25) | {'left_knee_joint': 0.5}
    action = dataclasses.replace(CONTRACT.action, scale=scale)
    target = JointPositionAction(dataclasses.replace(reordered, action=action)).target(np.ones(29))
    knee = reordered.joint_names.index('left_knee_joint')
    assert target[knee] == 0.3 + 0.5
