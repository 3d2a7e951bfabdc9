"""Every export comes back as a bundle with the same two hashes, or is refused by name."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import yaml
from samples import CONTRACT

from g1_policy_node.bundle import Bundle, load_bundle, save_bundle
from g1_policy_node.contract import contract_from_mapping
from g1_policy_node.golden_vectors import Golden
from g1_policy_node.paths import find_data
from g1_policy_node.tools.bundle_export import EXPORTS, export_bundle
from g1_policy_node.tools.formats.deploy_yaml import EMBEDDED
from g1_policy_node.tools.formats.said import contract_of
from g1_policy_node.tools.formats.source import read_source
from g1_policy_node.tools.golden import forward
from g1_policy_node.types import UserError
from g1_policy_node.weights import tensor_shapes, weights_bytes

pytest.importorskip('onnx')


def awkward_bundle(path: Path, **changes) -> Bundle:
    """History, clips, a list of scales, an action clip, a normalizer, values beyond float32."""
    data = CONTRACT.to_mapping()
    rows = {row['term']: row for row in data['observations']}
    rows['base_ang_vel'] |= {'scale': [0.2, 0.3, 1 / 3], 'clip': [-2.0, 2.0], 'history': 3}
    rows['joint_pos_rel'] |= {'history': 2, 'scale': 0.7}
    rows['gait_contact'] |= changes
    rows['last_action'] = {**rows['joint_vel_rel'], 'term': 'last_action', 'history': 1}
    data['observations'] = list(rows.values())
    data['joints']['left_knee_joint']['stiffness'] = 99.09842777666113
    data['action']['clip'] = [-7.0, 9.0]
    width = sum(row['size'] * row['history'] for row in rows.values())
    data |= {'network': {'sizes': [width, 8, 29], 'activation': 'tanh'}, 'normalizer': 'required'}
    contract = contract_from_mapping(data)
    random = np.random.default_rng(1)
    weights = {n: random.uniform(0.1, 1, s).astype(np.float32)
               for n, s in tensor_shapes(contract).items()}  # fmt: skip
    rows = random.normal(size=(4, width)).astype(np.float32)
    golden = Golden(rows, forward(contract.network, weights, rows))
    return save_bundle(path, contract, weights, golden, {})


@pytest.fixture
def bundle(request, tmp_path) -> Bundle:
    if request.param == 'shipped':
        return load_bundle(find_data('policies/g1_walk'))
    return awkward_bundle(tmp_path / 'awkward')


@pytest.mark.parametrize('kind', EXPORTS)
@pytest.mark.parametrize('bundle', ['shipped', 'awkward'], indirect=True)
def test_an_export_comes_back_equal(tmp_path: Path, bundle: Bundle, kind: str) -> None:
    export_bundle(bundle, kind, tmp_path / 'out')
    path = tmp_path / 'out' / ('policy.onnx' if kind == 'onnx' else '')
    source = read_source(path, ())
    assert contract_of(source.parts, str(path)).sha256 == bundle.contract_sha256
    assert hashlib.sha256(weights_bytes(source.weights)).hexdigest() == bundle.weights_sha256


@pytest.mark.parametrize('kind', ['deploy-yaml', 'leapp'])
def test_an_edit_of_one_copy_alone_is_refused(tmp_path: Path, kind: str) -> None:
    export_bundle(load_bundle(find_data('policies/g1_walk')), kind, tmp_path / 'out')
    (path,) = (tmp_path / 'out').glob('*.yaml')
    data = yaml.safe_load(path.read_text())
    if kind == 'leapp':
        data['pipeline']['configs']['frequency'] = 100.0
    else:
        data['step_dt'] = 0.01
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    source = read_source(path, ())
    with pytest.raises(UserError, match=r'step_dt is 0\.02, but the source says 0\.01'):
        contract_of(source.parts, str(path))


@pytest.mark.parametrize('kind', ['onnx', 'leapp'])
def test_an_exported_model_acts_as_the_bundle(tmp_path: Path, kind: str) -> None:
    runtime = pytest.importorskip('onnxruntime')
    bundle = load_bundle(find_data('policies/g1_walk'))
    export_bundle(bundle, kind, tmp_path / 'out')
    session = runtime.InferenceSession(str(tmp_path / 'out' / 'policy.onnx'))
    contract, default = bundle.contract, bundle.contract.per_joint('default_position')
    for row, wanted in zip(
        bundle.golden_observations[::20], bundle.golden_actions[::20], strict=True
    ):
        inputs, start = {}, 0
        for term in contract.observations:
            value = row[start : start + term.size] / term.scale
            start += term.size
            value = value + default if term.term == 'joint_pos_rel' else value
            inputs[term.term] = value[None].astype(np.float32)
        if kind == 'onnx':
            inputs = {'observation': row[None]}
        else:
            wanted = default + 0.25 * wanted.clip(*(contract.action.clip or (-np.inf, np.inf)))
        np.testing.assert_allclose(session.run(None, inputs)[0][0], wanted, atol=2e-5)


def test_a_deploy_yaml_cannot_hold_newest_first_and_nothing_is_left(tmp_path: Path) -> None:
    bundle = awkward_bundle(tmp_path / 'b', history=2, history_order='newest_first')
    with pytest.raises(UserError, match='no history newest_first'):
        export_bundle(bundle, 'deploy-yaml', tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def test_a_leapp_model_that_was_changed_is_refused(tmp_path: Path) -> None:
    export_bundle(load_bundle(find_data('policies/g1_walk')), 'leapp', tmp_path / 'out')
    with (tmp_path / 'out' / 'policy.onnx').open('ab') as stream:
        stream.write(b'\0')
    with pytest.raises(UserError, match='not the file whose sha256sum'):
        read_source(tmp_path / 'out', ())


def test_a_leapp_pipeline_without_an_embedded_contract_gives_what_it_says(tmp_path: Path) -> None:
    bundle = load_bundle(find_data('policies/g1_walk'))
    export_bundle(bundle, 'leapp', tmp_path / 'out')
    path = tmp_path / 'out' / 'g1_walk.yaml'
    data = yaml.safe_load(path.read_text())
    del data['pipeline']['configs'][EMBEDDED]
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    source = read_source(path, ())
    with pytest.raises(UserError) as refusal:
        contract_of(source.parts, 'it')
    for name in ('imu_frame', 'commands', 'normalizer', 'joints.*.armature'):
        assert name in str(refusal.value)
    said = source.parts[1].data
    assert said['joint_names'] == list(bundle.contract.joint_names)
    for name, joint in bundle.contract.joints.items():
        for key in ('default_position', 'stiffness', 'damping'):
            assert said['joints'][name][key] == getattr(joint, key)
    assert said['action']['scale'] == bundle.contract.action.scale
    assert [row['scale'] for row in said['observations']] == [
        term.scale for term in bundle.contract.observations
    ]
