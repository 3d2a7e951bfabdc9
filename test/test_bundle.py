"""A bundle: what fits is loaded exactly, what does not is refused by name, nothing is run."""

import hashlib
import io
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from g1_policy_node.actor import NumpyActor, load_actor
from g1_policy_node.bundle import (
    ACTION_TOLERANCE,
    FILES,
    Bundle,
    check_actor,
    load_bundle,
    resolve_bundle,
    save_bundle,
    write_evaluation,
)
from g1_policy_node.contract import Contract, contract_from_mapping, load_contract
from g1_policy_node.golden_vectors import Golden
from g1_policy_node.paths import find_data
from g1_policy_node.tools.golden import forward
from g1_policy_node.types import UserError
from g1_policy_node.weights import tensor_shapes

YAML, WEIGHTS, GOLDEN, MANIFEST = FILES


def small_contract(normalizer: str = 'none') -> Contract:
    data = load_contract(find_data('config/g1_walk_contract.yaml')).to_mapping()
    data.update(normalizer=normalizer, network={'sizes': [73, 4, 29], 'activation': 'elu'})
    return contract_from_mapping(data)


def random_weights(contract: Contract) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(3)
    return {
        name: random.uniform(0.1 if 'divisor' in name else -1.0, 1.0, shape).astype(np.float32)
        for name, shape in tensor_shapes(contract).items()
    }


def make_bundle(path: Path, normalizer: str = 'none', **options: Any) -> Bundle:
    contract = small_contract(normalizer)
    weights = random_weights(contract)
    observations = np.random.default_rng(4).normal(size=(10, 73)).astype(np.float32)
    golden = Golden(observations, forward(contract.network, weights, observations))
    return save_bundle(path, contract, weights, golden, {'golden_source': 'test'}, **options)


@pytest.fixture(scope='module')
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle(tmp_path_factory.mktemp('bundles') / 'pristine').path


@pytest.fixture
def folder(pristine: Path, tmp_path: Path) -> Path:
    """A bundle of the test's own, to be damaged."""
    return Path(shutil.copytree(pristine, tmp_path / 'bundle'))


def edit_yaml(folder: Path, **changes: Any) -> None:
    data = yaml.safe_load((folder / YAML).read_text())
    (folder / YAML).write_text(yaml.safe_dump(data | changes, sort_keys=False))


def edit_manifest(folder: Path, **changes: Any) -> None:
    data = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(data | changes))


def put_weights(folder: Path, raw: bytes) -> None:
    """Replace the weights file, with its hash put right in the contract."""
    (folder / WEIGHTS).write_bytes(raw)
    edit_yaml(folder, weights_sha256=hashlib.sha256(raw).hexdigest())


def edit_weights(folder: Path, **changes: Any) -> None:
    weights = {k: np.array(v) for k, v in load_file(folder / WEIGHTS).items()}
    for name, value in changes.items():
        key = name.replace('__', '.')
        if value is None:
            del weights[key]
        else:
            weights[key] = value(weights.get(key))
    save_file(weights, folder / WEIGHTS)
    put_weights(folder, (folder / WEIGHTS).read_bytes())


def edit_golden(folder: Path, **changes: Any) -> None:
    arrays = dict(np.load(folder / GOLDEN))
    for name, value in changes.items():
        if value is None:
            del arrays[name]
        else:
            arrays[name] = value(arrays.get(name))
    np.savez(folder / GOLDEN, **arrays)


def with_nan(array: Any) -> Any:
    array = array.copy()
    array.flat[0] = np.nan
    return array


class Touch:
    """Unpickled, it would make the file `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


def write_zip(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)


def npy_claiming(shape: str) -> bytes:
    """An npy file whose header claims `shape` and whose data are 8 bytes."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += ' ' * (118 - len(header) - 1) + '\n'
    return b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') + header.encode() + b'x' * 8


REFUSALS: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    'no contract': (lambda f: (f / YAML).unlink(), ['policy.yaml not there']),
    'three files gone': (
        lambda f: [(f / name).unlink() for name in FILES[1:]],
        ['not a policy bundle', *FILES[1:]],
    ),
    'no weights hash': (
        lambda f: edit_yaml(f, weights_sha256=None),
        ['policy.yaml', 'weights_sha256 is null'],
    ),
    'another weights hash': (
        lambda f: edit_yaml(f, weights_sha256='0' * 64),
        ['actor.safetensors', '0' * 64, 'bytes'],
    ),
    'one bit of the weights': (
        lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-1] + b'\x7f'),
        ['weights_sha256 is', 'policy.yaml says'],
    ),
    'truncated weights': (
        lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-40]),
        ['weights_sha256 is', 'bytes'],
    ),
    'truncated weights with their hash': (
        lambda f: put_weights(f, (f / WEIGHTS).read_bytes()[:-40]),
        ['actor.safetensors', 'not a safetensors file'],
    ),
    'empty weights': (lambda f: put_weights(f, b''), ['not a safetensors file']),
    'weights with a lying header': (
        lambda f: put_weights(f, (2**62).to_bytes(8, 'little') + b'{}'),
        ['not a safetensors file'],
    ),
    'a tensor missing': (
        lambda f: edit_weights(f, layers__1__bias=None),
        ['missing layers.1.bias'],
    ),
    'a tensor too many': (
        lambda f: edit_weights(f, layers__2__bias=lambda w: np.zeros(3, np.float32)),
        ['unexpected layers.2.bias'],
    ),
    'a tensor of another shape': (
        lambda f: edit_weights(f, layers__1__weight=lambda w: w.T.copy()),
        ['layers.1.weight is (4, 29), the contract needs (29, 4)'],
    ),
    'weights of another observation': (
        lambda f: edit_weights(f, layers__0__weight=lambda w: np.zeros((4, 96), np.float32)),
        ['sum to 73, the weights take 96', 'joint_pos_rel', 'gait_contact'],
    ),
    'weights in double precision': (
        lambda f: edit_weights(f, layers__0__bias=lambda w: w.astype(np.float64)),
        ['layers.0.bias is float64, not float32'],
    ),
    'weights that are not finite': (
        lambda f: edit_weights(f, layers__0__weight=with_nan),
        ['layers.0.weight has 1 of 292 values that are not finite'],
    ),
    'a normalizer that the contract does not know': (
        lambda f: edit_weights(f, normalizer__mean=lambda w: np.zeros(73, np.float32)),
        ['unexpected normalizer.mean', 'the contract says normalizer: none'],
    ),
    'a normalizer that is required and absent': (
        lambda f: edit_yaml(f, normalizer='required'),
        ['missing normalizer.mean, normalizer.divisor', 'the contract says normalizer: required'],
    ),
    'an observation term that does not exist': (
        lambda f: edit_yaml(f, observations=[{'term': 'base_height', 'size': 73}]),
        ['policy.yaml', 'base_height'],
    ),
    'contract and network that do not sum': (
        lambda f: edit_yaml(f, network={'sizes': [80, 4, 29], 'activation': 'elu'}),
        ['sum to 73, the network takes 80', '38-66'],
    ),
    'golden vectors of another contract': (
        lambda f: edit_yaml(f, name='other'),
        ['golden.npz', 'made for contract_sha256', 'this one is'],
    ),
    'no golden actions': (
        lambda f: edit_golden(f, actions=None),
        ['golden.npz', 'no array actions', 'observations'],
    ),
    'golden vectors without rows': (
        lambda f: edit_golden(f, observations=lambda a: a[:0], actions=lambda a: a[:0]),
        ['golden.npz', 'no rows'],
    ),
    'a golden action missing': (
        lambda f: edit_golden(f, actions=lambda a: a[:-1]),
        ['actions are (9, 29), not (10, 29)'],
    ),
    'golden observations too narrow': (
        lambda f: edit_golden(f, observations=lambda a: a[:, :-1]),
        ['observations are (10, 72), not (10, 73)'],
    ),
    'golden observations in double precision': (
        lambda f: edit_golden(f, observations=lambda a: a.astype(np.float64)),
        ['observations are float64, not float32'],
    ),
    'golden actions in single precision': (
        lambda f: edit_golden(f, actions=lambda a: a.astype(np.float32)),
        ['actions are float32, not float64'],
    ),
    'golden actions that are not finite': (
        lambda f: edit_golden(f, actions=with_nan),
        ['actions have values that are not finite'],
    ),
    'golden scalars': (
        lambda f: edit_golden(f, observations=lambda a: np.float32(1)),
        ['golden.npz', 'no rows'],
    ),
    'golden vectors that are one array': (
        lambda f: np.save(f / GOLDEN, np.zeros(3)) or (f / 'golden.npz.npy').rename(f / GOLDEN),
        ['golden.npz', 'not an npz file'],
    ),
    'a golden file that unpacks to more than it may': (
        lambda f: write_zip(f / GOLDEN, 'observations.npy', b'\0' * 70_000_000),
        ['golden.npz', '70000000 bytes unpacked'],
    ),
    'a golden header that claims too much': (
        lambda f: write_zip(f / GOLDEN, 'observations.npy', npy_claiming('(10**12,)')),
        ['golden.npz', 'not an npz file'],
    ),
    'a golden header that claims terabytes': (
        lambda f: write_zip(f / GOLDEN, 'observations.npy', npy_claiming('(1000000000000,)')),
        ['golden.npz', 'not an npz file'],
    ),
    'a manifest of other weights': (
        lambda f: edit_manifest(f, weights_sha256='1' * 64),
        ['manifest.json', 'weights_sha256 is ' + '1' * 64, 'the bundle has'],
    ),
    'a manifest of another contract': (
        lambda f: edit_manifest(f, contract_sha256='2' * 64),
        ['manifest.json', 'contract_sha256 is ' + '2' * 64, 'the bundle has'],
    ),
    'a manifest without hashes': (
        lambda f: (f / MANIFEST).write_text('{}'),
        ['manifest.json', 'missing weights_sha256, contract_sha256'],
    ),
    'a manifest with an unknown field': (
        lambda f: edit_manifest(f, gpuu='H200'),
        ['manifest.json', 'unknown gpuu'],
    ),
    'a manifest that is no JSON': (
        lambda f: (f / MANIFEST).write_text('{'),
        ['manifest.json', 'not plain JSON'],
    ),
}


@pytest.mark.parametrize(('damage', 'names'), REFUSALS.values(), ids=list(REFUSALS))
def test_a_bundle_that_does_not_fit_is_refused(
    folder: Path, damage: Callable[[Path], Any], names: list[str]
) -> None:
    damage(folder)
    with pytest.raises(UserError) as refusal:
        load_bundle(folder)
    message = str(refusal.value)
    assert message.startswith(str(folder))
    for name in names:
        assert name in message


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match='absent: no such folder'):
        load_bundle(tmp_path / 'absent')


@pytest.mark.parametrize('name', FILES)
def test_no_file_of_a_bundle_is_ever_unpickled(folder: Path, tmp_path: Path, name: str) -> None:
    witness = tmp_path / 'witness'
    evil = Touch(witness)
    pickle.loads(pickle.dumps(evil))  # the trap works
    witness.rmdir()
    raw = pickle.dumps(evil)
    if name == WEIGHTS:
        put_weights(folder, raw)
    else:
        (folder / name).write_bytes(raw)
    with pytest.raises(UserError, match=name.replace('.', r'\.')):
        load_bundle(folder)
    assert not witness.exists()


@pytest.mark.parametrize('name', ['observations', 'actions', 'contract_sha256', 'extra'])
def test_a_pickled_golden_array_is_refused_and_not_run(
    folder: Path, tmp_path: Path, name: str
) -> None:
    witness = tmp_path / 'witness'
    evil = np.array([Touch(witness)], dtype=object)
    arrays = dict(np.load(folder / GOLDEN)) | {name: evil}
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    (folder / GOLDEN).write_bytes(stream.getvalue())
    with pytest.raises(UserError, match='allow_pickle=False'):
        load_bundle(folder)
    assert not witness.exists()


@settings(deadline=None, max_examples=60)
@given(data=st.data(), name=st.sampled_from(FILES))
def test_random_damage_is_refused_or_harmless(
    pristine: Path, tmp_path_factory: pytest.TempPathFactory, data: Any, name: str
) -> None:
    folder = tmp_path_factory.mktemp('damaged') / 'bundle'
    shutil.copytree(pristine, folder)
    raw = bytearray((folder / name).read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    (folder / name).write_bytes(raw)
    try:
        bundle = load_bundle(folder)
    except UserError:
        return
    intact = load_bundle(pristine)
    assert bundle.contract == intact.contract
    np.testing.assert_array_equal(bundle.golden_actions, intact.golden_actions)
    np.testing.assert_array_equal(bundle.golden_observations, intact.golden_observations)


@pytest.mark.parametrize('normalizer', ['none', 'required'])
def test_what_is_saved_is_loaded_exactly(tmp_path: Path, normalizer: str) -> None:
    bundle = make_bundle(tmp_path / 'made', normalizer)
    contract = small_contract(normalizer)
    weights = random_weights(contract)
    assert bundle.contract.weights_sha256 == bundle.weights_sha256
    raw = (bundle.path / WEIGHTS).read_bytes()
    assert bundle.weights_sha256 == hashlib.sha256(raw).hexdigest()
    assert bundle.contract_sha256 == bundle.contract.sha256
    assert bundle.weights.keys() == weights.keys()
    for name, tensor in weights.items():
        np.testing.assert_array_equal(bundle.weights[name], tensor)
    assert bundle.manifest.golden_source == 'test'
    assert bundle.manifest.training.gpu is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ['made']


def test_unknown_manifest_fields_are_written_as_null(pristine: Path) -> None:
    manifest = json.loads((pristine / MANIFEST).read_text())
    assert manifest['training']['gpu'] is None
    assert manifest['source']['sha256'] is None


def test_the_loaded_arrays_cannot_be_changed(pristine: Path) -> None:
    bundle = load_bundle(pristine)
    for array in (*bundle.weights.values(), bundle.golden_observations, bundle.golden_actions):
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 0


def test_a_bundle_is_replaced_only_where_asked(tmp_path: Path) -> None:
    make_bundle(tmp_path / 'made')
    with pytest.raises(UserError, match='exists already'):
        make_bundle(tmp_path / 'made')
    replaced = make_bundle(tmp_path / 'made', 'required', overwrite=True)
    assert 'normalizer.mean' in replaced.weights
    assert sorted(p.name for p in tmp_path.iterdir()) == ['made']


def test_a_folder_that_is_no_bundle_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine' / 'thesis.txt').write_text('x')
    with pytest.raises(UserError, match='not a policy bundle, so not replaced'):
        make_bundle(tmp_path / 'mine', overwrite=True)
    assert (tmp_path / 'mine' / 'thesis.txt').read_text() == 'x'


def test_nothing_is_left_where_saving_is_refused(tmp_path: Path) -> None:
    contract = small_contract()
    weights = random_weights(contract)
    golden = Golden(np.zeros((1, 73), np.float32), np.zeros((1, 29)))
    for bad_weights, bad_golden, manifest in (
        ({**weights, 'layers.0.bias': with_nan(weights['layers.0.bias'])}, golden, {}),
        (weights, golden._replace(actions=np.zeros((2, 29))), {}),
        (weights, golden, {'typo': 1}),
        (weights, golden, {'training': {'gpus': 'one'}}),
    ):
        with pytest.raises(UserError):
            save_bundle(tmp_path / 'made', contract, bad_weights, bad_golden, manifest)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(contract: Contract, path: Path) -> None:
        path.write_text('half')
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr('g1_policy_node.bundle.dump_contract', full)
    with pytest.raises(UserError, match=r'made: cannot be written \(No space left'):
        make_bundle(tmp_path / 'made')
    assert list(tmp_path.iterdir()) == []


def test_a_term_this_package_does_not_have_is_never_saved(tmp_path: Path) -> None:
    data = small_contract().to_mapping()
    data['observations'] = [{'term': 'base_height', 'size': 73}]
    contract = contract_from_mapping(data)
    golden = Golden(np.zeros((1, 73), np.float32), np.zeros((1, 29)))
    with pytest.raises(UserError, match=r'made: .*base_height'):
        save_bundle(tmp_path / 'made', contract, random_weights(contract), golden, {})


def test_a_normalizer_that_divides_by_nothing_is_refused(tmp_path: Path) -> None:
    contract = small_contract('required')
    golden = Golden(np.zeros((1, 73), np.float32), np.zeros((1, 29)))
    for divisor in (0.0, -1.0):
        weights = random_weights(contract)
        weights['normalizer.divisor'][5] = divisor
        with pytest.raises(UserError, match=r'normalizer\.divisor has values that are not pos'):
            save_bundle(tmp_path / 'made', contract, weights, golden, {})


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    with pytest.raises(UserError, match='cannot be written'):
        make_bundle(tmp_path / 'file' / 'made')


def test_an_evaluation_is_kept_in_the_manifest_and_changes_nothing_else(
    pristine: Path, tmp_path: Path
) -> None:
    path = shutil.copytree(pristine, tmp_path / 'mine')
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    kept = {'figures': {'vx_error': 0.03, 'energy': None}}
    bundle = write_evaluation(load_bundle(path), kept)
    assert bundle.manifest.evaluation == kept
    after = {file.name: file.read_bytes() for file in path.iterdir()}
    assert before.keys() == after.keys()
    assert {name for name in FILES if before[name] != after[name]} == {MANIFEST}


def test_the_shipped_bundle_is_the_reference_policy() -> None:
    bundle = load_bundle(resolve_bundle('g1_walk'))
    default = load_contract(find_data('config/g1_walk_contract.yaml')).to_mapping()
    shipped = bundle.contract.to_mapping()
    assert shipped | {'weights_sha256': None} == default
    assert sum(tensor.size for tensor in bundle.weights.values()) == 205_853
    assert bundle.manifest.source.sha256 == (
        '4f653bc3b7795febbd58fee295317f5aeb5f71c0e34bed61ff26a88a03e9604f'
    )
    assert bundle.manifest.source.iteration == 1920
    assert (bundle.path / GOLDEN).stat().st_size < 400_000


@pytest.mark.parametrize('kind', ['numpy', 'torch'])
def test_the_shipped_golden_actions_are_reproduced(kind: str) -> None:
    bundle = load_bundle(resolve_bundle('g1_walk'))
    if kind == 'numpy':
        actor: Any = load_actor(bundle.contract.network, bundle.weights, 'cpu')
    else:
        torch_actor = pytest.importorskip('g1_policy_node.torch_actor')
        actor = torch_actor.TorchActor(bundle.contract.network, bundle.weights, 'cpu')
    assert 0 < check_actor(bundle, actor) <= ACTION_TOLERANCE / 5


@pytest.mark.parametrize('normalizer', ['none', 'required'])
def test_an_actor_that_differs_is_refused_with_the_difference(
    tmp_path: Path, normalizer: str
) -> None:
    bundle = make_bundle(tmp_path / 'made', normalizer)
    honest = NumpyActor(bundle.contract.network, bundle.weights)
    assert check_actor(bundle, honest) <= ACTION_TOLERANCE
    for name in bundle.weights:
        changed = {k: np.array(v) for k, v in bundle.weights.items()}
        changed[name] *= np.float32(1.01)
        with pytest.raises(UserError, match=r'made: cpu: .* differs .* by'):
            check_actor(bundle, NumpyActor(bundle.contract.network, changed))


def test_an_actor_that_gives_nan_is_refused(pristine: Path) -> None:
    class Broken:
        device = 'broken:0'

        def __call__(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
            return np.full(29, np.nan, np.float32)

    with pytest.raises(UserError, match=r'broken:0: .*nan'):
        check_actor(load_bundle(pristine), Broken())


def test_a_plain_name_is_one_of_the_shipped_policies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'g1_walk').mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve_bundle('g1_walk') == find_data('policies/g1_walk')


def test_anything_else_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', str(tmp_path))
    assert resolve_bundle('./g1_walk') == Path('g1_walk')
    assert resolve_bundle('~/g1_walk') == tmp_path / 'g1_walk'
    assert resolve_bundle(str(tmp_path)) == tmp_path


def test_a_name_that_is_not_there_is_refused_with_the_way_to_write_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'mine').mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r'policies/mine: .*write \./mine'):
        resolve_bundle('mine')
    for empty in ('', ' '):
        with pytest.raises(UserError, match='neither a name nor a folder'):
            resolve_bundle(empty)
