import math

import numpy as np
import pytest
from samples import CONTRACT, DEFAULT

from g1_policy_node.paths import find_data
from g1_policy_node.tools.evaluation.figures import figures_of, run_figures, summarize
from g1_policy_node.tools.evaluation.plan import Case, load_plan, quick
from g1_policy_node.tools.evaluation.rollout import Track

PLAN = load_plan(find_data('config/evaluation.yaml'))
TICKS = 750
JOINTS = CONTRACT.joint_names


def track(velocity=(0.5, 0.0, 0.0), ticks: int = TICKS, **changes) -> Track:
    """A robot that moves along a straight line at `velocity` in the base frame, its pose held."""
    time = 0.02 * np.arange(ticks)
    held = np.tile(DEFAULT, (ticks, 1))
    plain = Track(
        velocity=np.tile(np.array(velocity, float), (ticks, 1)),
        position=time[:, None] * np.array(velocity[:2]),
        yaw=np.zeros(ticks),
        joint_pos=held,
        target=held.copy(),
        torque=np.zeros_like(held),
        power=np.zeros(ticks),
        self_contact=np.zeros(ticks, bool),
        fell_at=None,
    )
    return plain._replace(**changes)


def figures(command=(0.5, 0.0, 0.0), **changes) -> dict:
    case = Case('straight', command)
    return run_figures(case, track(**changes), CONTRACT, PLAN.settling)


def test_error_is_that_of_the_mean_after_settling_and_rmse_has_the_sway() -> None:
    velocity = np.tile([0.6, 0.0, 0.0], (TICKS, 1))
    velocity[:150] = 9.0
    velocity[150::2, 1], velocity[151::2, 1] = 0.2, -0.2
    row = run_figures(
        Case('straight', (0.5, 0.0, 0.0)), track(velocity=(0.6, 0, 0))._replace(velocity=velocity),
        CONTRACT, PLAN.settling,
    )  # fmt: skip
    assert row['error'] == pytest.approx([0.1, 0.0, 0.0])
    assert row['rmse'] == pytest.approx([0.1, 0.2, 0.0])
    assert row['seconds'] == pytest.approx(12.0)


@pytest.mark.parametrize('command', [(0.5, 0.0, 0.0), (-0.5, 0.0, 0.0), (0.0, 0.5, 0.0)])
def test_drift_is_across_the_command_by_the_heading_at_settling(command) -> None:
    way = np.arctan2(command[1], command[0])
    time = 0.02 * np.arange(TICKS)
    # The body heads for `yaw`, and goes 0.3 rad to the left of what is asked.
    yaw = np.full(TICKS, 0.7)
    yaw[:150] = 0.0
    yaw[600:] = 0.9
    along = np.array([np.cos(0.7 + way + 0.3), np.sin(0.7 + way + 0.3)])
    row = figures(command, position=0.5 * time[:, None] * along, yaw=yaw)
    assert row['moved'] == pytest.approx(
        [0.5 * 11.98 * math.cos(0.3), 0.5 * 11.98 * math.sin(0.3)]
    )
    assert row['turned'] == pytest.approx(0.2)


def test_target_change_is_the_mean_over_ticks_and_joints() -> None:
    target = np.tile(DEFAULT, (TICKS, 1))
    target[1::2, 3] += 0.029  # one joint of 29, there and back
    assert figures(target=target)['target_change_mrad'] == pytest.approx(1.0)


def test_energy_is_what_was_spent_after_settling() -> None:
    power = np.full(TICKS, 60.0)
    power[:150] = 1e6
    row = figures(power=power)
    assert row['power_w'] == pytest.approx(60.0)
    assert row['energy_j'] == pytest.approx(720.0)


def test_joints_at_their_limits_are_named_with_their_share_of_ticks() -> None:
    wrist = JOINTS.index('left_wrist_yaw_joint')
    low = CONTRACT.joints['left_knee_joint'].position_limits[0]
    torque = np.zeros((TICKS, 29))
    torque[150:156, wrist] = -6.0  # hardware: 5 N m
    pose = np.tile(DEFAULT, (TICKS, 1))
    pose[-60:, JOINTS.index('left_knee_joint')] = low
    row = figures(torque=torque, joint_pos=pose)
    assert row['torque_over'] == {'left_wrist_yaw_joint': 0.01}
    assert row['torque_ratio']['left_wrist_yaw_joint'] == pytest.approx(1.2)
    assert row['limit_hits'] == {'left_knee_joint': 0.1}
    assert row['targets_beyond'] == {}


def test_touching_itself_counts_from_the_first_tick_on() -> None:
    touching = np.zeros(TICKS, bool)
    touching[:15] = True
    assert figures(self_contact=touching)['self_contact'] == pytest.approx(0.02)


def test_a_fall_before_settling_leaves_no_figure_but_the_fall() -> None:
    row = figures(ticks=100, fell_at=2.0)
    assert row['fell_at'] == 2.0
    assert 'error' not in row


def rows(**changes) -> list[dict]:
    part = quick(PLAN)
    groups = (('straight', part.straight), ('turning', part.turning), ('more', part.more))
    made = [
        run_figures(Case(group, command), track(command, **changes), CONTRACT, part.settling)
        for group, commands in groups
        for command in commands
    ]
    kicks = [
        run_figures(
            Case('kick', part.gait, kick=1.5, seed=seed),
            track(fell_at=4.0 if seed else None), CONTRACT, part.settling,
        )
        for seed in range(2)
    ]  # fmt: skip
    return [*made, *kicks]


def test_a_summary_has_every_figure_of_its_plan() -> None:
    part = quick(PLAN)
    assert list(summarize(rows(), part, JOINTS)['figures']) == list(figures_of(part))
    assert len(figures_of(PLAN)) == len(figures_of(part)) + 4  # sizes of kick


def test_one_fall_leaves_a_mean_unknown_and_is_counted() -> None:
    made = rows()
    summary = summarize(made, quick(PLAN), JOINTS)['figures']
    assert summary['vx_error'] == pytest.approx(0.0)
    assert summary['falls_commands'] == 0
    assert summary['falls_1.5'] == 1
    made[1] = {**made[1], 'fell_at': 5.0}
    summary = summarize(made, quick(PLAN), JOINTS)['figures']
    assert summary['vx_error'] is None
    assert summary['wz_error'] is not None
    assert summary['falls_commands'] == 1
