"""What is asked for grows, within the contract's ranges."""

import torch
from samples import CONTRACT

from g1_policy_node.training.curriculum import (
    EXPLORING_AT_LAST,
    FIRST_SHARE,
    REFINED_AFTER,
    REFINED_FROM,
    CommandSampler,
    command_share,
    exploring_share,
    refinement_share,
)


def test_commands_grow_first_and_refinement_comes_after_them() -> None:
    steps = range(0, REFINED_AFTER + 1, 600)
    commands, refinement = [command_share(k) for k in steps], [refinement_share(k) for k in steps]
    assert commands == sorted(commands)
    assert refinement == sorted(refinement)
    assert (commands[0], refinement[0]) == (FIRST_SHARE, 0.0)
    assert (commands[-1], refinement[-1]) == (1.0, 1.0)
    assert command_share(REFINED_FROM) == 1.0
    assert refinement_share(REFINED_FROM) == 0.0


def test_exploring_is_worth_less_as_the_walk_is_refined_but_never_nothing() -> None:
    worth = [exploring_share(share / 10) for share in range(11)]
    assert worth == sorted(worth, reverse=True)
    assert worth[0] == 1.0
    assert abs(worth[-1] - EXPLORING_AT_LAST) < 1e-12
    assert EXPLORING_AT_LAST > 0


def test_commands_stay_in_range_and_some_are_along_one_axis_or_none() -> None:
    torch.manual_seed(1)
    drawn = CommandSampler(CONTRACT, 'cpu').sample(4000, 0.5)
    lower, upper = 0.5 * torch.tensor(CONTRACT.command_limits).T
    assert (lower <= drawn).all()
    assert (drawn <= upper).all()
    asked = (drawn != 0).sum(-1)
    for count, least, most in ((0, 0.1, 0.3), (1, 0.1, 0.35), (2, 0.0, 0.0), (3, 0.4, 0.7)):
        share = float((asked == count).float().mean())
        assert least <= share <= most, count
    for axis in range(3):
        assert ((asked == 1) & (drawn[:, axis] != 0)).any(), axis
        assert (drawn[:, axis] > 0).any()
        assert (drawn[:, axis] < 0).any()


def test_no_robot_to_draw_for_is_no_error() -> None:
    assert CommandSampler(CONTRACT, 'cpu').sample(0, 1.0).shape == (0, 3)
