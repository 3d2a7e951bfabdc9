"""Learning from a policy that walks before learning from rewards."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from samples import CONTRACT
from torch import nn

from g1_policy_node.bundle import Bundle, load_bundle, resolve_bundle
from g1_policy_node.contract import Contract
from g1_policy_node.training.imitation import (
    FIRST_LEARNING_RATE,
    MINI_BATCHES,
    Teacher,
    check_teacher,
    end_imitation,
    imitate,
)
from g1_policy_node.training.mirror import Mirror
from g1_policy_node.types import UserError

BUNDLE = load_bundle(resolve_bundle('g1_walk'))
MIRROR = Mirror(CONTRACT, 'cpu')


def teacher() -> Teacher:
    return Teacher(BUNDLE, CONTRACT, MIRROR, 'cpu')


class Model(nn.Module):
    """What is looked at of rsl_rl's actor or critic: it answers to one group of observations."""

    def __init__(self, group: str, rows: int, answers: int) -> None:
        super().__init__()
        self.group, self.mlp = group, nn.Linear(rows, answers)

    def forward(self, observations: dict[str, torch.Tensor]) -> torch.Tensor:
        answer: torch.Tensor = self.mlp(observations[self.group])
        return answer


class Storage:
    """A rollout of 64 rows of the golden walks, in the minibatches asked for."""

    def __init__(self) -> None:
        clean = torch.tensor(BUNDLE.golden_observations[:64])
        self.rows = {
            'policy': clean + 0.01 * torch.randn_like(clean),
            'critic': torch.cat([clean, torch.zeros(len(clean), 7)], dim=-1),
        }
        self.cleared = 0

    def mini_batch_generator(self, batches: int, epochs: int) -> Any:
        for _ in range(epochs * batches):
            yield SimpleNamespace(observations=self.rows, returns=torch.full((64, 1), 3.0))

    def clear(self) -> None:
        self.cleared += 1


def alg() -> Any:
    torch.manual_seed(1)
    actor, critic = Model('policy', 73, 29), Model('critic', 80, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=0.5)
    return SimpleNamespace(
        actor=actor, critic=critic, optimizer=optimizer, storage=Storage(), device='cpu',
        num_learning_epochs=2, max_grad_norm=1.0, is_multi_gpu=False, learning_rate=0.5,
    )  # fmt: skip


def test_a_teacher_answers_as_its_bundle_does_but_for_what_differs_in_the_mirror() -> None:
    rows = torch.tensor(BUNDLE.golden_observations)
    answers = torch.tensor(BUNDLE.golden_actions, dtype=torch.float32)
    mirrored = teacher()(MIRROR.observation.of(rows))
    torch.testing.assert_close(mirrored, MIRROR.action.of(teacher()(rows)), atol=1e-4, rtol=0)
    assert 0.01 < (teacher()(rows) - answers).abs().mean() < 0.5 * answers.abs().mean()


def test_the_actor_comes_closer_to_the_teacher_and_the_critic_to_the_returns() -> None:
    learning = alg()
    losses = [imitate(learning, teacher()) for _ in range(4)]
    for name in ('imitation', 'value'):
        assert losses[-1][name] < 0.9 * losses[0][name]
    assert learning.storage.cleared == 4


def test_the_teacher_is_asked_without_noise_and_the_actor_with_it() -> None:
    learning, asked = alg(), []

    def answer(rows: torch.Tensor) -> torch.Tensor:
        asked.append(rows)
        return torch.zeros(len(rows), 29)

    imitate(learning, answer)  # type: ignore[arg-type]
    assert len(asked) == 2 * MINI_BATCHES
    rows = learning.storage.rows
    assert all(torch.equal(seen, rows['critic'][:, :73]) for seen in asked)
    assert not torch.equal(asked[0], rows['policy'])


def test_ppo_begins_with_an_optimizer_that_remembers_nothing() -> None:
    learning = alg()
    imitate(learning, teacher())
    assert learning.optimizer.state
    end_imitation(learning)
    assert not learning.optimizer.state
    assert learning.learning_rate == FIRST_LEARNING_RATE
    assert {group['lr'] for group in learning.optimizer.param_groups} == {FIRST_LEARNING_RATE}


def changed(**parts: Any) -> Bundle:
    contract: Contract = dataclasses.replace(BUNDLE.contract, **parts)
    return dataclasses.replace(BUNDLE, contract=contract)


def test_the_reference_teaches_although_its_torques_were_limited_otherwise() -> None:
    check_teacher(BUNDLE, CONTRACT)


@pytest.mark.parametrize(
    ('parts', 'told'),
    [
        ({'step_dt': 0.01}, 'was trained by other step_dt than'),
        ({'joint_names': CONTRACT.joint_names[::-1]}, 'was trained by other joint_names than'),
        ({'gait': None, 'step_dt': 0.01}, 'other step_dt, gait than'),
        ({'normalizer': 'required'}, 'was trained by other normalizer than'),
    ],
)
def test_a_teacher_that_means_something_else_is_refused(parts: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        check_teacher(changed(**parts), CONTRACT)


def test_a_normalizer_is_refused_even_where_the_contract_has_one_too() -> None:
    with pytest.raises(UserError, match='has a normalizer, which is not read here'):
        check_teacher(
            changed(normalizer='required'), dataclasses.replace(CONTRACT, normalizer='required')
        )
