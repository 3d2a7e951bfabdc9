"""The contract: complete, exact, and refused where it does not fit itself."""

import copy
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from g1_policy_node.contract import (
    Contract,
    canonical_json,
    contract_from_mapping,
    dump_contract,
    load_contract,
)
from g1_policy_node.joints import G1_JOINT_NAMES
from g1_policy_node.paths import find_data
from g1_policy_node.types import UserError

KNEE = 'left_knee_joint'
finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)


@pytest.fixture(scope='module')
def default() -> Contract:
    return load_contract(find_data('config/g1_walk_contract.yaml'))


def test_the_default_layout_is_73_wide_in_the_documented_order(default: Contract) -> None:
    assert [(t.term, t.size, t.scale) for t in default.observations] == [
        ('base_ang_vel', 3, 0.2),
        ('projected_gravity', 3, 1.0),
        ('velocity_commands', 3, 1.0),
        ('joint_pos_rel', 29, 1.0),
        ('joint_vel_rel', 29, 0.05),
        ('gait_phase_sin', 2, 1.0),
        ('gait_phase_cos', 2, 1.0),
        ('gait_contact', 2, 1.0),
    ]
    assert default.observation_size == default.network.sizes[0] == 73


def test_the_default_numbers_are_those_the_reference_policy_was_trained_with(
    default: Contract,
) -> None:
    """docs/facts.md section 1, per joint in SDK motor order."""
    leg = ([-0.1, 0, 0, 0.3, -0.2, 0], [100, 100, 100, 150, 40, 40], [2, 2, 2, 4, 2, 2])
    leg_armature = [0.01017752, 0.025101925, 0.01017752, 0.025101925, 0.00721945, 0.00721945]
    left_arm, right_arm = [0, 0.25, 0, 0.97, 0.15, 0, 0], [0, -0.25, 0, 0.97, -0.15, 0, 0]
    assert default.joint_names == G1_JOINT_NAMES
    for field, values in {
        'default_position': leg[0] * 2 + [0] * 3 + left_arm + right_arm,
        'stiffness': leg[1] * 2 + [200] * 3 + [40] * 14,
        'damping': leg[2] * 2 + [5] * 3 + [10] * 14,
        'armature': leg_armature * 2 + [0.00721945] * 3 + [0.003609725] * 14,
        'effort_limit_training': [88, 139, 88, 139, 50, 50] * 2 + [50] * 3 + [25] * 14,
    }.items():
        assert default.per_joint(field).tolist() == values, field
    assert default.command_limits.tolist() == [[-0.5, 1.0], [-0.4, 0.4], [-0.8, 0.8]]
    assert set(default.action.scale.values()) == {0.25}
    assert default.action.clip == (-10.0, 10.0)
    assert [default.action.offset[n] for n in G1_JOINT_NAMES] == (
        default.per_joint('default_position').tolist()
    )
    assert default.gait is not None
    assert (default.gait.period, default.gait.offsets, default.gait.contact) == (40, (0, 20), 22)


def test_the_table_gives_every_term_its_place(default: Contract) -> None:
    lines = default.table().splitlines()
    assert lines[3].split() == ['9-37', 'joint_pos_rel', '29', 'scale', '1']
    assert lines[-1].split() == ['total', '73']
    assert len(lines) == len(default.observations) + 1


def test_the_table_shows_scales_per_value_and_history(default: Contract) -> None:
    data = default.to_mapping()
    data['observations'][0].update(scale=[0.2, 0.2, 0.1], history=5)
    data['network']['sizes'][0] = 73 + 4 * 3
    first = contract_from_mapping(data).table().splitlines()[0]
    assert first.split() == [
        '0-14', 'base_ang_vel', '3', 'scale', '[3', 'values]', 'x', '5', 'frames,', 'oldest_first',
    ]  # fmt: skip


@settings(deadline=None, max_examples=20)
@given(armature=st.floats(0, 1e300), offset=finite, scale=st.lists(finite, min_size=3, max_size=3))
def test_writing_and_reading_is_exact(
    default: Contract,
    tmp_path_factory: pytest.TempPathFactory,
    armature: float,
    offset: float,
    scale: list[float],
) -> None:
    data = default.to_mapping()
    data['joints'][KNEE]['armature'] = armature
    data['action']['offset'][KNEE] = offset
    data['observations'][0]['scale'] = scale
    contract = contract_from_mapping(data)
    path = tmp_path_factory.getbasetemp() / 'contract.yaml'
    dump_contract(contract, path)
    again = load_contract(path)
    assert again == contract
    assert again.sha256 == contract.sha256


def test_names_in_any_script_survive_writing(default: Contract, tmp_path: Path) -> None:
    contract = contract_from_mapping(default.to_mapping() | {'name': 'gehört, 歩く: yes'})
    dump_contract(contract, tmp_path / 'c.yaml')
    assert load_contract(tmp_path / 'c.yaml') == contract


@settings(deadline=None, max_examples=20)
@given(st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_the_order_of_maps(default: Contract, random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: shuffled(value[k]) for k in random.sample(list(value), len(value))}
        return [shuffled(v) for v in value] if isinstance(value, list) else value

    assert contract_from_mapping(shuffled(default.to_mapping())).sha256 == default.sha256


def test_the_hash_does_not_depend_on_ints_written_for_floats(default: Contract) -> None:
    data = default.to_mapping()
    data['joints'][KNEE]['stiffness'] = 150
    assert contract_from_mapping(data).sha256 == default.sha256


def leaves(data: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, dict | list) and value:
            yield from leaves(value, (*place, key))
        else:
            yield (*place, key), value


def test_every_single_value_is_in_the_hash(default: Contract) -> None:
    hashes, count = {default.sha256}, 0
    for place, value in leaves(default.to_mapping()):
        data = default.to_mapping()
        inner: Any = data
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value * 1.0000001 if isinstance(value, float) and value else 'changed'
        hashes.add(canonical_hash(data))
        count += 1
    assert len(hashes) == count + 1


def canonical_hash(data: dict[str, Any]) -> str:
    """The hash of plain data that need not be a valid contract."""
    stand_in: Any = SimpleNamespace(to_mapping=lambda: data)
    return hashlib.sha256(canonical_json(stand_in).encode()).hexdigest()


def put(*place: Any) -> Callable[[dict[str, Any]], None]:
    """Return a change that puts the last of `place` at the keys before it."""

    def change(data: dict[str, Any]) -> None:
        inner: Any = data
        for key in place[:-2]:
            inner = inner[key]
        inner[place[-2]] = place[-1]

    return change


def drop(*place: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        inner: Any = data
        for key in place[:-1]:
            inner = inner[key]
        del inner[place[-1]]

    return change


REFUSALS: list[tuple[Callable[[dict[str, Any]], None], list[str]]] = [
    (drop('joints', KNEE), ['joints: missing left_knee_joint']),
    (put('joints', 'tail_joint', {}), ['joints.tail_joint: missing default_position']),
    (drop('action', 'scale', KNEE), ['action.scale: missing left_knee_joint']),
    (put('action', 'offset', 'tail', 1.0), ['action.offset: unexpected tail']),
    (put('joint_names', 0, KNEE), ['joint_names: duplicated left_knee_joint', 'left_hip_pitch']),
    (drop('joint_names', 28), ['28 joints, but the network gives 29', 'right_wrist_yaw_joint']),
    (drop('observations', 7), ['sum to 71, the network takes 73', 'joint_pos_rel', '9-37']),
    (put('observations', []), ['sum to 0, the network takes 73']),
    (put('network', 'sizes', 0, 96), ['sum to 73, the network takes 96', 'base_ang_vel']),
    (put('network', 'sizes', 4, 12), ['29 joints, but the network gives 12']),
    (put('network', 'sizes', [73]), ['network.sizes [73] is no network']),
    (put('network', 'sizes', 1, 0), ['is no network']),
    (put('network', 'activation', 'gelu'), ["'gelu' is none of 'elu', 'relu', 'tanh'"]),
    (put('normalizer', 'maybe'), ["'maybe' is none of"]),
    (put('schema_version', 2), ['schema_version 2, this package reads 1']),
    (put('step_dt', 0.0), ['step_dt 0.0 s']),
    (put('step_dt', -0.02), ['step_dt -0.02 s']),
    (put('name', ' '), ['name is empty']),
    (put('imu_frame', ''), ['imu_frame is empty']),
    (put('weights_sha256', 'F' * 64), ['weights_sha256', '64 lower case hex']),
    (put('joints', KNEE, 'position_limits', [1.0, -1.0]), [KNEE, 'default 0.3 is outside 1.0']),
    (put('joints', KNEE, 'stiffness', -1.0), [f'{KNEE}: stiffness is negative']),
    (put('joints', KNEE, 'effort_limit_hardware', 0), ['effort_limit_hardware is not positive']),
    (put('joints', KNEE, 'armature', float('nan')), [f'joints.{KNEE}.armature: nan']),
    (put('action', 'clip', [10.0, -10.0]), ['action: clip 10.0 to -10.0 is empty']),
    (put('observations', 0, 'clip', [1.0, 1.0]), ['base_ang_vel: clip 1.0 to 1.0 is empty']),
    (put('observations', 0, 'scale', [1, 2]), ['base_ang_vel: 2 scales for 3 values']),
    (put('observations', 0, 'noise', -0.1), ['base_ang_vel: noise is negative']),
    (put('observations', 0, 'history', 0), ['base_ang_vel: size and history']),
    (put('observations', 0, 'history_order', 'random'), ['history_order']),
    (put('observations', 0, 'parameters', {'x': float('inf')}), ['parameters.x: inf']),
    (put('commands', 'lin_vel_x', [0.1, 1.0]), ['commands.lin_vel_x', 'does not contain 0']),
    (put('gait', 'period', 0), ['gait: period 0']),
    (put('gait', 'contact', 41), ['gait: contact 41', '40']),
    (put('gait', 'offsets', [0, 40]), ['gait: offsets [0, 40]', '39']),
    (put('gait', 'stand_below', -0.1), ['stand_below is negative']),
    (drop('imu_frame'), ['missing imu_frame']),
    (put('typo', 1), ['unknown typo']),
]


@pytest.mark.parametrize(('change', 'names'), REFUSALS, ids=lambda value: str(value)[:50])
def test_a_contract_that_does_not_fit_itself_is_refused(
    default: Contract, change: Callable[[dict[str, Any]], None], names: list[str]
) -> None:
    data = copy.deepcopy(default.to_mapping())
    change(data)
    with pytest.raises(UserError) as refusal:
        contract_from_mapping(data, 'here')
    message = str(refusal.value)
    assert message.startswith('here')
    for name in names:
        assert name in message


def test_every_problem_is_listed_at_once(default: Contract) -> None:
    data = default.to_mapping()
    data['step_dt'], data['gait']['contact'] = 0.0, 99
    del data['joints'][KNEE]
    with pytest.raises(UserError) as refusal:
        contract_from_mapping(data)
    for name in ('step_dt', 'contact 99', KNEE):
        assert name in str(refusal.value)


@pytest.mark.parametrize('data', [None, [], 'text', 3, {}, {'joints': 1}])
def test_what_is_no_contract_is_refused(data: object) -> None:
    with pytest.raises(UserError, match='contract'):
        contract_from_mapping(data)


def test_a_contract_file_with_a_joint_twice_is_refused(default: Contract, tmp_path: Path) -> None:
    text = yaml.safe_dump(default.to_mapping())
    block = text[text.index('  left_knee_joint:\n') : text.index('  left_shoulder_pitch_joint:\n')]
    path = tmp_path / 'c.yaml'
    path.write_text(text.replace(block, block + block, 1))
    with pytest.raises(UserError, match="'left_knee_joint' twice"):
        load_contract(path)


def test_per_joint_follows_the_policy_order(default: Contract) -> None:
    data = default.to_mapping()
    data['joint_names'] = data['joint_names'][::-1]
    backwards = contract_from_mapping(data)
    for field in ('damping', 'position_limits'):
        np.testing.assert_array_equal(backwards.per_joint(field), default.per_joint(field)[::-1])
