"""One PPO iteration at a time, its checkpoints, and what stops it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from samples import CONTRACT
from training_smoke.runs import NUM_ENVS

from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.training.curriculum import (
    EXPLORING_AT_LAST,
    IMITATED_UNTIL,
    REFINED_AFTER,
)
from g1_policy_node.training.imitation import Teacher
from g1_policy_node.training.ppo_config import load_ppo_config
from g1_policy_node.training.progress import EpisodeStatistics
from g1_policy_node.training.stage_times import StageTimes

pytestmark = pytest.mark.timeout(600)

STEPS = 24
"""Environment steps of an iteration."""


@pytest.fixture
def runner(env: Any) -> Any:
    from g1_policy_node.training.runner import Runner

    torch.manual_seed(1)
    with torch.inference_mode():  # As in a rollout: its buffers are made in this mode.
        env.reset()
    made = Runner(env, load_ppo_config('', CONTRACT), None, 'cpu')
    made.start()
    return made


def iterate(runner: Any) -> dict[str, float]:
    times = StageTimes('cpu', enabled=False)
    runner.roll_out(times, EpisodeStatistics(runner.env.num_envs, 'cpu'))
    return runner.update(times)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def test_an_iteration_changes_every_layer_and_its_losses_are_finite(runner: Any) -> None:
    before = [p.clone() for p in runner.alg.get_policy().parameters()]
    losses = iterate(runner)
    assert torch.isfinite(torch.tensor(list(losses.values()))).all()
    for old, new in zip(before, runner.alg.get_policy().parameters(), strict=True):
        assert not torch.equal(old, new)
    assert runner.iteration == 1


def test_the_actor_is_the_same_in_the_mirror_after_learning(runner: Any) -> None:
    for _ in range(2):
        iterate(runner)
    mirror, actor = runner.env.unwrapped.mirror, runner.alg.get_policy()
    rows = torch.randn(20, 73)
    with torch.no_grad():
        mirrored = actor.mlp(mirror.observation.of(rows))
        torch.testing.assert_close(mirrored, mirror.action.of(actor.mlp(rows)), atol=1e-5, rtol=0)


def test_smoothness_is_the_mean_change_of_the_action_since_the_tick_before(runner: Any) -> None:
    runner.roll_out(StageTimes('cpu', enabled=False), EpisodeStatistics(NUM_ENVS, 'cpu'))
    batch = next(iter(runner.alg.storage.mini_batch_generator(1, 1)))
    actor, rows = runner.alg.actor, batch.observations
    with torch.no_grad():
        actor(rows, stochastic_output=True)
        found = runner.alg.symmetry.compute_loss(actor, batch, len(rows))
        change = actor.mlp(rows['policy']) - actor.mlp(rows['previous'])
    torch.testing.assert_close(found, change.abs().mean())
    assert found > 0
    runner.alg.storage.clear()


def test_refinement_brings_smoothness_in_and_takes_exploration_out(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, weights = load_ppo_config('', CONTRACT), []
    for steps in (0, REFINED_AFTER):
        monkeypatch.setattr(runner.env.unwrapped, 'common_step_counter', steps)
        iterate(runner)
        weights.append((runner.alg.symmetry.mirror_loss_coeff, runner.alg.entropy_coef))
    smooth, explore = config['smoothness_loss_coeff'], config['algorithm']['entropy_coef']
    assert weights == [(0.0, explore), (smooth, pytest.approx(EXPLORING_AT_LAST * explore))]


def test_actions_deviate_by_what_is_asked_for(runner: Any) -> None:
    runner.set_action_std(0.45)
    runner.alg.act(runner.env.get_observations())
    assert torch.equal(runner.alg.get_policy().output_std, torch.full((NUM_ENVS, 29), 0.45))


def test_a_teacher_is_imitated_until_half_of_the_refinement_and_then_rewards_decide(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, bundle = runner.env.unwrapped, load_bundle(resolve_bundle('g1_walk'))
    runner.teacher = Teacher(bundle, CONTRACT, inner.mirror, 'cpu')
    monkeypatch.setattr(inner, 'common_step_counter', IMITATED_UNTIL - STEPS)
    assert iterate(runner).keys() == {'value', 'imitation'}
    assert inner.common_step_counter == IMITATED_UNTIL
    assert not runner.alg.optimizer.state
    assert iterate(runner).keys() == {'value', 'surrogate', 'entropy', 'smoothness'}
    assert runner.iteration == 2


def test_a_restored_runner_has_the_very_weights_optimizer_and_iteration(
    runner: Any, env: Any, tmp_path: Path
) -> None:
    from g1_policy_node.training.runner import Runner

    iterate(runner)
    torch.save(runner.state({'curriculum_steps': 24}), tmp_path / 'model_1.pt')
    torch.manual_seed(2)
    other = Runner(env, load_ppo_config('', CONTRACT), None, 'cpu')
    assert not equal(other.alg.save()['actor_state_dict'], runner.alg.save()['actor_state_dict'])
    assert other.restore(tmp_path / 'model_1.pt') == {'curriculum_steps': 24}
    assert other.iteration == 1
    assert equal(other.alg.save(), runner.alg.save())


def test_an_observation_that_is_not_finite_is_named_and_leaves_sound_weights(
    runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from g1_policy_node.training.runner import NotFiniteError

    inner = runner.env.unwrapped
    build = inner._get_observations

    def spoiled() -> dict[str, torch.Tensor]:
        rows: dict[str, torch.Tensor] = build()
        rows['policy'][1, 6] = float('nan')
        return rows

    monkeypatch.setattr(inner, '_get_observations', spoiled)
    told = 'policy value 6 of robot 1 at step 1 of the rollout of iteration 0 .1 robots in all'
    with pytest.raises(NotFiniteError, match=told) as stopped:
        iterate(runner)
    state = stopped.value.checkpoint['actor_state_dict']
    assert all(torch.isfinite(values).all() for values in state.values())
