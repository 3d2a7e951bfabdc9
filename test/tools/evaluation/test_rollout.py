import dataclasses

import numpy as np
import pytest

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.paths import find_data
from g1_policy_node.policy import Policy
from g1_policy_node.sim.robot import MujocoRobot
from g1_policy_node.tools.evaluation.plan import Case, Condition, load_plan
from g1_policy_node.tools.evaluation.rollout import TRUNK, Bench

PLAN = dataclasses.replace(load_plan(find_data('config/evaluation.yaml')), seconds=1.0)
BUNDLE = load_bundle(resolve_bundle('g1_walk'))
WALK = Case('straight', (0.5, 0.0, 0.0))
NAMES = {
    condition: name
    for name, condition in PLAN.conditions.items()
}  # fmt: skip


@pytest.fixture(scope='module')
def bench() -> Bench:
    return Bench(BUNDLE, PLAN)


def kicked(seed: int, speed: float = 1.0) -> Case:
    return WALK._replace(group='kick', kick=speed, seed=seed)


def test_it_walks_as_the_nodes_own_step_on_the_simulators_robot(bench: Bench) -> None:
    contract = BUNDLE.contract
    policy = Policy(contract, load_actor(contract.network, BUNDLE.weights, 'cpu'))
    robot = MujocoRobot(contract)
    track = bench.run(WALK)
    for k in range(50):
        state = robot.state()
        np.testing.assert_array_equal(track.joint_pos[k], state.joint_pos)
        target = policy.step(state, np.array(WALK.command), k).target
        np.testing.assert_array_equal(track.target[k], target)
        for _ in range(4):
            robot.step(target)


def test_a_run_depends_on_its_case_alone(bench: Bench) -> None:
    soon = Bench(BUNDLE, dataclasses.replace(
        PLAN, kicks=dataclasses.replace(PLAN.kicks, apart=(0.2, 0.4))
    ))  # fmt: skip
    first = soon.run(kicked(0))
    other = soon.run(kicked(1))
    again = soon.run(kicked(0))
    np.testing.assert_array_equal(first.target, again.target)
    assert not np.array_equal(first.target, other.target)


def test_a_kick_adds_its_speed_and_comes_every_so_often() -> None:
    apart = dataclasses.replace(PLAN.kicks, apart=(0.25, 0.25))
    bench = Bench(BUNDLE, dataclasses.replace(PLAN, kicks=apart, seconds=0.6))
    added = []
    robot = bench._robot(Condition())
    robot.push = lambda velocity: added.append(velocity)
    bench.run(kicked(3, 0.8))
    assert len(added) == 2
    np.testing.assert_allclose(np.linalg.norm(added, axis=1), 0.8)
    assert not np.allclose(*added)


def test_arms_that_swing_into_the_legs_are_seen_and_a_walk_has_none(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not bench.run(WALK).self_contact.any()
    policy = bench._policy
    inwards = np.zeros(len(BUNDLE.contract.joint_names))
    for name, turn in (('left_shoulder_roll_joint', -1.0), ('left_elbow_joint', -0.5)):
        inwards[BUNDLE.contract.joint_names.index(name)] = turn
    step = policy.step

    def swinging(*seen):
        done = step(*seen)
        return done._replace(target=done.target + inwards)

    monkeypatch.setattr(policy, 'step', swinging)
    assert bench.run(WALK).self_contact.any()


def test_a_fall_ends_the_run(bench: Bench) -> None:
    at_once = dataclasses.replace(PLAN.kicks, apart=(0.1, 0.1))
    track = Bench(BUNDLE, dataclasses.replace(PLAN, kicks=at_once, seconds=5.0)).run(
        kicked(0, 4.0)
    )
    assert track.fell_at is not None and track.fell_at < 5.0
    assert len(track.target) == round(track.fell_at / 0.02)
    assert bench.run(WALK).fell_at is None


@pytest.mark.parametrize(('delay', 'late'), [(0.0, 0), (0.02, 4), (0.04, 8)])
def test_targets_come_late_by_the_delay_and_before_them_the_default_pose(
    delay: float, late: int
) -> None:
    plan = dataclasses.replace(PLAN, conditions={'late': Condition(delay=delay)}, seconds=0.2)
    bench = Bench(BUNDLE, plan)
    followed = []
    robot = bench._robot(Condition())
    step = robot.step
    robot.step = lambda target: (followed.append(target), step(target))
    track = bench.run(WALK._replace(condition='late'))
    default = BUNDLE.contract.per_joint('default_position')
    expected = [*[default] * late, *np.repeat(track.target, 4, axis=0)][: len(followed)]
    np.testing.assert_array_equal(followed, expected)


def test_friction_is_that_of_every_contact(bench: Bench) -> None:
    robot = bench._robot(Condition(friction=0.4))
    for _ in range(40):
        robot.step(robot.data.ctrl)
    assert robot.data.ncon
    assert {contact.friction[0] for contact in robot.data.contact} == {0.4}


def test_only_the_trunk_gets_another_mass(bench: Bench) -> None:
    plain, heavy = bench._robot(Condition()).model, bench._robot(Condition(trunk_mass=1.1)).model
    ratio = heavy.body_mass[1:] / plain.body_mass[1:]
    trunk = plain.body(TRUNK).id - 1
    assert ratio[trunk] == pytest.approx(1.1)
    assert np.delete(ratio, trunk) == pytest.approx(1.0)
    assert heavy.body_subtreemass[1] - plain.body_subtreemass[1] == pytest.approx(
        0.1 * plain.body(TRUNK).mass[0]
    )


def test_noise_reaches_the_policy_and_not_the_truth(bench: Bench) -> None:
    noisy = WALK._replace(condition=NAMES[Condition(noise=True)])
    clean, seen = bench.run(WALK), bench.run(noisy)
    np.testing.assert_array_equal(clean.joint_pos[0], seen.joint_pos[0])
    assert not np.array_equal(clean.target[0], seen.target[0])


def test_a_command_beyond_the_trained_range_is_given_as_it_is(bench: Bench) -> None:
    most, beyond = (bench.run(WALK._replace(command=(vx, 0.0, 0.0))) for vx in (1.0, 1.5))
    assert not np.array_equal(most.target[0], beyond.target[0])
