"""Networks that are the same in the mirror before, while and after they learn."""

import pytest
import torch
from samples import CONTRACT
from torch import nn

from g1_policy_node.training.env_sizes import PRIVILEGED
from g1_policy_node.training.mirror import Mirror
from g1_policy_node.training.symmetry import make_symmetric

MIRROR = Mirror(CONTRACT, 'cpu')
ROWS, PRIVILEGED_ROWS = torch.randn(50, 73), torch.randn(50, 73 + PRIVILEGED)


class Model(nn.Module):
    """What is looked at of rsl_rl's models."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for i in range(len(sizes) - 1):
            layers += [nn.Linear(sizes[i], sizes[i + 1]), nn.ELU()]
        self.mlp = nn.Sequential(*layers[:-1])
        self.distribution = nn.Module()
        self.distribution.std_param = nn.Parameter(torch.rand(sizes[-1]))


def models() -> tuple[Model, Model]:
    torch.manual_seed(1)
    return Model((73, 64, 32, 29)), Model((73 + PRIVILEGED, 64, 1))


def asymmetry(actor: Model, critic: Model) -> float:
    """How far the answers to mirrored rows are from the mirrored answers."""
    answers, mirrored = actor.mlp(ROWS), actor.mlp(MIRROR.observation.of(ROWS))
    values, same = critic.mlp(PRIVILEGED_ROWS), critic.mlp(MIRROR.critic.of(PRIVILEGED_ROWS))
    std = actor.distribution.std_param
    return max(
        float(difference.detach().abs().max())
        for difference in (
            MIRROR.action.of(answers) - mirrored, values - same, std - std[MIRROR.action.ids],
        )
    )  # fmt: skip


def test_new_networks_become_symmetric_and_keep_the_size_of_their_answers() -> None:
    actor, critic = models()
    before, size = asymmetry(actor, critic), actor.mlp(ROWS).std()
    make_symmetric(actor, critic, MIRROR)
    assert before > 0.01
    assert asymmetry(actor, critic) < 1e-6
    assert 0.5 * size < actor.mlp(ROWS).std() < 2.0 * size


def test_learning_from_one_side_alone_teaches_the_other() -> None:
    actor, critic = models()
    make_symmetric(actor, critic, MIRROR)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=0.01)
    wanted = torch.randn(50, 29)
    losses = []
    for _ in range(30):
        loss = (actor.mlp(ROWS) - wanted).square().mean() + critic.mlp(
            PRIVILEGED_ROWS
        ).square().mean()
        loss = loss + (actor.distribution.std_param[:7] - 0.3).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < losses[0] - 1.0
    assert asymmetry(actor, critic) < 1e-4


def test_a_hidden_layer_that_has_no_halves_is_refused() -> None:
    with pytest.raises(ValueError, match='a hidden layer of 31 has no halves'):
        make_symmetric(Model((73, 31, 29)), models()[1], MIRROR)
