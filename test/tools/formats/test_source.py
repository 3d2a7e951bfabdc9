"""Every format gives the same contract and weights; what it does not say is refused by name."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from samples import UNITREE_POLICY

from g1_policy_node.contract import Contract, contract_from_mapping, load_contract
from g1_policy_node.paths import find_data
from g1_policy_node.schema import read_yaml
from g1_policy_node.tools.bundle_import import find_contract, import_bundle
from g1_policy_node.tools.formats import deploy_yaml
from g1_policy_node.tools.formats.onnx_file import OnnxWriter
from g1_policy_node.tools.formats.said import Part, contract_of, part_of
from g1_policy_node.tools.formats.source import Source, read_source
from g1_policy_node.tools.golden import forward
from g1_policy_node.types import UserError
from g1_policy_node.weights import tensor_shapes

pytest.importorskip('onnx')
ROBOT = part_of('robot', read_yaml(find_contract('g1_29dof_rev_1_0')))
NORMALIZER = Part('user', {'normalizer': 'none'})
LABEL = Part('label', {'schema_version': 1, 'name': 'g1_walk'})
TERMS = ('base_ang_vel', 'projected_gravity', 'velocity_commands', 'joint_pos_rel',
         'joint_vel_rel', 'last_action')  # fmt: skip
TAG = '!!python/object/apply:builtins.slice [null, null, null]'
MAP = [0, 6, 12, 1, 7, 13, 2, 8, 14, 3, 9, 15, 22, 4, 10, 16, 23, 5, 11, 17, 24, 18, 25, 19, 26,
       20, 27, 21, 28]  # fmt: skip


def public_contract(history: int = 5) -> Contract:
    """A contract of unitree_rl_lab's form: 96 wide, 5 frames, breadth-first order."""
    data = load_contract(find_data('config/g1_walk_contract.yaml')).to_mapping()
    names = data['joint_names']
    rows = {row['term']: row for row in data['observations']}
    rows['last_action'] = {**rows['joint_pos_rel'], 'term': 'last_action'}
    data['observations'] = [{**rows[t], 'noise': 0.0, 'history': history} for t in TERMS]
    data['joint_names'] = [names[i] for i in MAP]
    data['network'] = {'sizes': [96 * history, 8, 6, 29], 'activation': 'elu'}
    data['gait'] = data['weights_sha256'] = data['action']['clip'] = None
    return contract_from_mapping(data)


def random_weights(contract: Contract) -> dict[str, Any]:
    random = np.random.default_rng(5)
    return {n: random.uniform(-0.2, 0.2, s).astype(np.float32)
            for n, s in tensor_shapes(contract).items()}  # fmt: skip


def write_onnx(path: Path, weights: Any, metadata: dict[str, str], extra: str = '') -> None:
    writer, x = OnnxWriter(), 'obs'
    depth = len(weights) // 2
    for i in range(depth):
        args = [x, *(writer.constant(f'{i}{k}', weights[f'layers.{i}.{k}'])
                     for k in ('weight', 'bias'))]  # fmt: skip
        last = i == depth - 1
        x = writer.add('Gemm', args, 'a' if last and not extra else f'l{i}', transB=1)
        x = x if last else writer.add('Elu', [x], f'e{i}')
    if extra:
        writer.add(extra, [x], 'a')
    width = weights['layers.0.weight'].shape[1]
    writer.write(path, {'obs': width}, {'a': 29}, metadata)


def deploy_folder(folder: Path, contract: Contract) -> dict[str, Any]:
    """Write what unitree_rl_lab would: no names, a Python tag, and a policy.onnx."""
    data = yaml.safe_load(deploy_yaml.deploy_text(contract))
    del data[deploy_yaml.EMBEDDED]
    text = yaml.safe_dump(data, sort_keys=False).replace('joint_ids: null', f'joint_ids: {TAG}')
    (folder / 'deploy.yaml').write_text(text)
    weights = random_weights(contract)
    write_onnx(folder / 'policy.onnx', weights, {})
    return weights


def contract_from(source: Source, *given: Part) -> Contract:
    return contract_of([*source.parts, *given, LABEL], str(source.path))


def test_a_deploy_yaml_and_a_robot_give_the_whole_contract(tmp_path: Path) -> None:
    contract = public_contract()
    weights = deploy_folder(tmp_path, contract)
    given = (ROBOT, NORMALIZER)
    source = read_source(tmp_path, given)
    found = contract_from(source, *given)
    assert found == contract
    assert list(found.joint_names) != list(load_contract(
        find_data('config/g1_walk_contract.yaml')).joint_names)  # fmt: skip
    assert all(np.array_equal(source.weights[name], weights[name]) for name in weights)


def test_what_a_deploy_yaml_does_not_say_is_refused_by_name(tmp_path: Path) -> None:
    deploy_folder(tmp_path, public_contract())
    with pytest.raises(UserError, match='does not say sdk_joint_names'):
        read_source(tmp_path, ())
    names = Part('names', {}, extras={'sdk_joint_names': ROBOT.extras['sdk_joint_names']})
    with pytest.raises(UserError) as refusal:
        contract_from(read_source(tmp_path, (names,)), names)
    for name in ('imu_frame', 'normalizer', 'joints.*.armature', 'joints.*.effort_limit_training',
                 'joints.*.position_limits'):  # fmt: skip
        assert name in str(refusal.value)


def test_a_python_tag_is_read_and_nothing_is_run(tmp_path: Path) -> None:
    deploy_folder(tmp_path, public_contract())
    path, mark = tmp_path / 'deploy.yaml', tmp_path / 'run'
    text = path.read_text().replace(TAG, f'!!python/object/apply:os.mkdir [{mark}]')
    path.write_text(text)
    with pytest.raises(UserError, match=r'joint_ids .*os\.mkdir.* are not all joints'):
        read_source(tmp_path, (ROBOT,))
    assert not mark.exists()


def test_gains_of_the_wrong_length_are_refused(tmp_path: Path) -> None:
    deploy_folder(tmp_path, public_contract())
    data = (tmp_path / 'deploy.yaml').read_text().replace('stiffness:\n- 100.0\n', 'stiffness:\n')
    (tmp_path / 'deploy.yaml').write_text(data)
    with pytest.raises(UserError, match='stiffness has 28 values for 29 joints'):
        read_source(tmp_path, (ROBOT,))


def test_what_the_user_says_against_the_source_is_refused(tmp_path: Path) -> None:
    deploy_folder(tmp_path, public_contract())
    wrong = Part('mine', {'step_dt': 0.01})
    source = read_source(tmp_path, (ROBOT,))
    with pytest.raises(UserError, match=r'mine: step_dt is 0\.01, but the source says 0\.02'):
        contract_from(source, ROBOT, NORMALIZER, wrong)


def csv(values: Any) -> str:
    return ','.join(f'{v:.3f}' if isinstance(v, float) else str(v) for v in values)


def mjlab_metadata(contract: Contract) -> dict[str, str]:
    names, rows = contract.joint_names, contract.observations
    return {
        'joint_names': csv(names),
        'joint_stiffness': csv(contract.joints[n].stiffness for n in names),
        'joint_damping': csv(contract.joints[n].damping for n in names),
        'default_joint_pos': csv(contract.joints[n].default_position for n in names),
        'action_scale': csv(contract.action.scale[n] for n in names),
        'observation_names': 'base_ang_vel,projected_gravity,command,joint_pos,joint_vel,actions',
        'observation_terms_scale': csv(t.scale for t in rows),
        'observation_terms_history_length': csv(0 if t.history == 1 else t.history for t in rows),
        'observation_terms_clip': csv('-inf;inf' for _ in rows),
        'observation_terms_flatten_history_dim': csv('True' for _ in rows),
    }


def mjlab_contract() -> Contract:
    """One whose wrist scale 0.0745 becomes 0.075 in the metadata."""
    contract = public_contract(1)
    scale = {**contract.action.scale, 'left_wrist_yaw_joint': 0.0745}
    return dataclasses.replace(contract, action=dataclasses.replace(contract.action, scale=scale))


def test_mjlabs_rounding_is_said_and_exact_values_replace_it(tmp_path: Path) -> None:
    contract = mjlab_contract()
    write_onnx(tmp_path / 'p.onnx', random_weights(contract), mjlab_metadata(contract))
    extras = Part('offset', {}, extras={'offset_is_default_pose': True})
    source = read_source(tmp_path / 'p.onnx', (extras,))
    assert any('precision lost' in note and 'left_wrist_yaw_joint' in note
               for note in source.notes)  # fmt: skip
    rest = contract.to_mapping()
    given = Part('mine', {key: rest[key] for key in ('step_dt', 'commands', 'action')})
    with pytest.raises(UserError) as refusal:
        contract_from(source, ROBOT)
    assert all(name in str(refusal.value) for name in ('step_dt', 'normalizer', 'commands'))
    assert contract_from(source, ROBOT, NORMALIZER, given) == contract
    off = {'action': {'scale': {'left_wrist_yaw_joint': 0.08}}}
    with pytest.raises(UserError, match=r'left_wrist_yaw_joint is 0\.08'):
        contract_from(source, Part('mine', off))


def test_mjlabs_history_order_and_action_offset_must_be_given(tmp_path: Path) -> None:
    contract = public_contract(5)
    write_onnx(tmp_path / 'p.onnx', random_weights(contract), mjlab_metadata(contract))
    with pytest.raises(UserError) as refusal:
        contract_from(read_source(tmp_path / 'p.onnx', ()), ROBOT)
    assert 'observations.*.history_order' in str(refusal.value)
    assert 'action.offset' in str(refusal.value)


@pytest.mark.parametrize('operator', ['Sigmoid', 'Softmax', 'Sin'])
def test_a_graph_that_is_more_than_an_mlp_is_refused_by_what_it_holds(
    tmp_path: Path, operator: str
) -> None:
    write_onnx(tmp_path / 'p.onnx', random_weights(public_contract(1)), {}, operator)
    with pytest.raises(UserError, match=f'not a plain MLP: operator {operator}'):
        read_source(tmp_path / 'p.onnx', ())


@pytest.mark.parametrize('content', [b'', b'ONNX', b'\x08\x07'])
def test_a_file_that_is_no_onnx_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / 'p.onnx').write_bytes(content)
    with pytest.raises(UserError, match='not an ONNX file'):
        read_source(tmp_path / 'p.onnx', ())


def scripted(torch: Any, weights: Any, normalized: bool = False, cell: bool = False) -> Any:
    class Policy(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            layers: list[Any] = []
            depth = len(weights) // 2
            for i in range(depth):
                n, m = weights[f'layers.{i}.weight'].shape[::-1]
                layer = torch.nn.Linear(n, m)
                state = {k: torch.tensor(weights[f'layers.{i}.{k}']) for k in ('weight', 'bias')}
                layer.load_state_dict(state)
                layers += [layer, torch.nn.ELU()]
            self.actor = torch.nn.Sequential(*layers[:-1])
            self.register_buffer('mean', torch.linspace(-1, 1, 96)[None])
            self.register_buffer('std', torch.linspace(0.5, 1, 96)[None])
            self.normalized, self.cell = normalized, cell

        def forward(self, x):
            if self.normalized:
                x = (x - self.mean) / (self.std + 0.01)
            if self.cell:
                x = torch.sigmoid(x)
            return self.actor(x)

    return torch.jit.trace(Policy().eval(), torch.zeros(1, 96))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('normalized', [False, True])
def test_torchscript_and_a_contract_by_hand_act_as_the_module(
    tmp_path: Path, normalized: bool
) -> None:
    torch = pytest.importorskip('torch')
    contract = public_contract(1)
    module = scripted(torch, random_weights(contract), normalized)
    module.save(str(tmp_path / 'p.pt'))
    source = read_source(tmp_path / 'p.pt', ())
    said = 'required' if normalized else 'none'
    by_hand = Part('hand', {**contract.to_mapping(), 'normalizer': said})
    found = contract_from(source, by_hand)
    x = np.random.default_rng(0).normal(size=(20, 96)).astype(np.float32)
    expected = np.array([module(torch.tensor(row[None]))[0].detach().numpy() for row in x])
    np.testing.assert_allclose(forward(found.network, source.weights, x), expected, atol=1e-5)
    if normalized:
        with pytest.raises(UserError, match="normalizer is 'none', but the source says 'requi"):
            contract_from(source, Part('hand', contract.to_mapping()))


@pytest.mark.filterwarnings('ignore')
def test_torchscript_with_another_operation_is_refused_by_its_name(tmp_path: Path) -> None:
    torch = pytest.importorskip('torch')
    module = scripted(torch, random_weights(public_contract(1)), cell=True)
    module.save(str(tmp_path / 'p.pt'))
    with pytest.raises(UserError, match='operation aten::sigmoid'):
        read_source(tmp_path / 'p.pt', ())


@pytest.mark.slow
def test_the_published_policy_of_unitree_becomes_a_bundle_that_acts_as_its_file(
    tmp_path: Path,
) -> None:
    folder = UNITREE_POLICY
    if not (folder / 'deploy.yaml').is_file():
        pytest.skip(f'{folder} is not there (G1_UNITREE_POLICY names another)')
    runtime = pytest.importorskip('onnxruntime')
    (tmp_path / 'said.yaml').write_text('normalizer: none\n')
    contracts = [find_contract('g1_29dof_rev_1_0'), tmp_path / 'said.yaml']
    bundle = import_bundle(folder, contracts, tmp_path / 'unitree')
    assert bundle.contract.observation_size == 480
    assert 'fell in 0' in (bundle.manifest.golden_source or '')
    session = runtime.InferenceSession(str(folder / 'policy.onnx'))
    rows = bundle.golden_observations
    actions = np.concatenate([session.run(None, {'obs': row[None]})[0] for row in rows])
    np.testing.assert_allclose(actions, bundle.golden_actions, atol=2e-5)


def test_the_robots_table_is_the_shipped_joints() -> None:
    contract = load_contract(find_data('config/g1_walk_contract.yaml'))
    for name, joint in contract.joints.items():
        row = ROBOT.data['joints'][name]
        for key in ('armature', 'velocity_limit', 'effort_limit_hardware'):
            assert row[key] == getattr(joint, key)
        assert tuple(row['position_limits']) == joint.position_limits
    assert list(itertools.chain(ROBOT.extras['sdk_joint_names'])) == list(contract.joint_names)


def test_aliases_that_make_a_billion_values_are_refused_at_once(tmp_path: Path) -> None:
    lines = ['a: &a [x, x, x, x, x, x, x, x, x]']
    for this, last in zip('bcdefghij', 'abcdefghi', strict=True):
        lines.append(f'{this}: &{this} [{", ".join([f"*{last}"] * 9)}]')
    path = tmp_path / 'deploy.yaml'
    path.write_text('\n'.join(lines))
    with pytest.raises(UserError, match='aliases counted each time'):
        deploy_yaml.read_tagged_yaml(path)
