"""What is asked for grows, within the contract's ranges."""

import torch
from samples import CONTRACT

from g1_policy_node.training.curriculum import (
    FIRST_SHARE,
    FULL_AFTER,
    REFINED_AFTER,
    CommandSampler,
    command_share,
    refinement_share,
)


def test_commands_grow_first_and_kicks_after_them() -> None:
    steps = range(0, REFINED_AFTER + 1, 600)
    commands, refinement = [command_share(k) for k in steps], [refinement_share(k) for k in steps]
    for shares in (commands, refinement):
        assert shares == sorted(shares)
        assert (shares[0], shares[-1]) == (FIRST_SHARE, 1.0)
    assert command_share(FULL_AFTER) == 1.0
    assert refinement_share(FULL_AFTER) == FIRST_SHARE


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
