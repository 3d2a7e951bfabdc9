"""Training and robot observe and act alike: the same states through both, to 1e-6."""

import dataclasses

import numpy as np
import pytest
import torch
from samples import CONTRACT, DEFAULT, random_state, with_terms

from g1_policy_node.action import JointPositionAction
from g1_policy_node.contract import Contract, ObservationTerm
from g1_policy_node.observation import ObservationBuilder
from g1_policy_node.training.terms import BatchAction, BatchObservation, BatchState
from g1_policy_node.types import UserError

STATES = 1000
TOLERANCE = 1e-6
OTHER_GAIT = dataclasses.replace(CONTRACT.gait, period=30, offsets=(0, 10), contact=17)
OTHERS = {
    'every term, reordered and rescaled': with_terms(
        ObservationTerm('gait_contact', 2, scale=0.5),
        ObservationTerm('last_action', 29, scale=0.1, clip=(-1.0, 1.0)),
        ObservationTerm('base_lin_vel', 3, scale=2.0),
        ObservationTerm('joint_vel_rel', 29, clip=(-0.5, 0.8), scale=0.05),
        ObservationTerm('joint_pos_rel', 29),
        ObservationTerm('gait_phase_cos', 2),
        ObservationTerm('gait_phase_sin', 2),
        ObservationTerm('base_ang_vel', 3, scale=(0.1, 0.2, 0.3)),
        ObservationTerm('projected_gravity', 3),
        ObservationTerm('velocity_commands', 3, scale=(2.0, 2.0, 0.25)),
    ),
    'history': with_terms(
        ObservationTerm('base_ang_vel', 3, scale=0.2, history=5),
        ObservationTerm('joint_pos_rel', 29, history=3, history_order='newest_first'),
        ObservationTerm('gait_phase_sin', 2, history=2),
    ),
    'another gait': dataclasses.replace(CONTRACT, gait=OTHER_GAIT),
}


def commands(rng: np.random.Generator, count: int) -> np.ndarray:
    """Float32 commands, a third of them small enough to stand or nearly so."""
    lower, upper = CONTRACT.command_limits.T
    rows = rng.uniform(lower, upper, (count, 3))
    rows[::3] *= 0.15
    rows[::30] = 0.0
    return rows.astype(np.float32)


def batch(states: list) -> BatchState:
    def stack(name: str) -> torch.Tensor:
        return torch.tensor(np.array([getattr(s, name) for s in states]), dtype=torch.float32)

    return BatchState(*map(stack, BatchState._fields))


def compare(contract: Contract, steps: int, envs: int) -> float:
    """Return the largest difference over `steps` ticks of `envs` robots."""
    rng = np.random.default_rng(5)
    builders = [ObservationBuilder(contract) for _ in range(envs)]
    batched = BatchObservation(contract, envs, 'cpu')
    start = rng.integers(1000, size=envs)
    worst = 0.0
    for tick in range(steps):
        states = [random_state(rng, lin_vel=True) for _ in range(envs)]
        command, last = commands(rng, envs), rng.normal(size=(envs, 29)).astype(np.float32)
        if tick == steps // 2:
            builders[0].reset()
            batched.reset(torch.tensor([0]))
        rows = batched.build(
            batch(states),
            torch.tensor(command),
            torch.tensor(start + tick),
            torch.tensor(last),
            noise=False,
        ).numpy()
        wanted = [
            builder.build(states[i], command[i].astype(float), int(start[i]) + tick, last[i])
            for i, builder in enumerate(builders)
        ]
        worst = max(worst, float(np.abs(rows - np.array(wanted)).max()))
    return worst


def test_a_thousand_states_give_the_observations_of_the_robot() -> None:
    assert compare(CONTRACT, steps=1, envs=STATES) < TOLERANCE


@pytest.mark.parametrize('name', OTHERS)
def test_a_changed_contract_changes_both_alike(name: str) -> None:
    assert compare(OTHERS[name], steps=10, envs=100) < TOLERANCE


def test_a_contract_the_robot_refuses_is_refused() -> None:
    with pytest.raises(UserError, match='observation term base_ang_vel has 3 values'):
        BatchObservation(with_terms(ObservationTerm('base_ang_vel', 4)), 1, 'cpu')


def test_a_thousand_actions_give_the_targets_of_the_robot() -> None:
    raw = np.random.default_rng(1).normal(scale=6.0, size=(STATES, 29)).astype(np.float32)
    one = JointPositionAction(CONTRACT)
    wanted = np.array([one.target(row.astype(float)) for row in raw])
    batched = BatchAction(CONTRACT, 'cpu').target(torch.tensor(raw)).numpy()
    np.testing.assert_allclose(batched, wanted, atol=TOLERANCE, rtol=0)


def test_noise_is_uniform_within_the_contracts_bounds_and_only_there() -> None:
    torch.manual_seed(0)
    batched = BatchObservation(CONTRACT, 4000, 'cpu')
    at_rest = BatchState(
        torch.tensor(DEFAULT, dtype=torch.float32).repeat(4000, 1), *torch.zeros(4, 4000, 1)
    )
    at_rest = at_rest._replace(
        joint_vel=torch.zeros(4000, 29),
        **dict.fromkeys(BatchState._fields[2:], torch.zeros(4000, 3)),
    )
    args = (at_rest, torch.zeros(4000, 3), torch.zeros(4000, dtype=torch.long))
    noisy = batched.build(*args, torch.zeros(4000, 29), noise=True)
    clean = batched.build(*args, torch.zeros(4000, 29), noise=False)
    spread = (noisy - clean).abs().amax(0)
    bound = torch.cat(
        [torch.full((row.size,), row.noise * row.scale) for row in CONTRACT.observations]
    )
    assert (spread <= bound + 1e-6).all()
    assert (spread >= 0.98 * bound).all()
