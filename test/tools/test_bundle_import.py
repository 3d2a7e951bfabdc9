"""Checkpoints of every known layout become the same bundle; everything else is refused, unrun."""

import hashlib
import itertools
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import check_actor, load_bundle
from g1_policy_node.contract import contract_from_mapping, dump_contract, load_contract
from g1_policy_node.paths import find_data
from g1_policy_node.tools import bundle_import
from g1_policy_node.tools.bundle_import import import_bundle
from g1_policy_node.tools.formats import rsl_rl
from g1_policy_node.tools.formats.rsl_rl import read_checkpoint
from g1_policy_node.types import UserError

torch = pytest.importorskip('torch')

SIZES = (73, 6, 5, 29)
CONTRACT = find_data('config/g1_walk_contract.yaml')


def mlp(prefix: str, sizes: tuple[int, ...] = SIZES, seed: int = 0) -> dict[str, Any]:
    """An rsl_rl MLP's state: linear layers at 0, 2, 4 and so on."""
    make = torch.Generator().manual_seed(seed)
    state = {}
    for i, (n, m) in enumerate(itertools.pairwise(sizes)):
        state[f'{prefix}{2 * i}.weight'] = torch.randn((m, n), generator=make) * 0.05
        state[f'{prefix}{2 * i}.bias'] = torch.randn(m, generator=make) * 0.05
    return state


def statistics(prefix: str = '') -> dict[str, Any]:
    """An EmpiricalNormalization's state."""
    return {
        f'{prefix}_mean': torch.linspace(-1, 1, 73).reshape(1, 73),
        f'{prefix}_var': torch.linspace(0.25, 4, 73).reshape(1, 73),
        f'{prefix}_std': torch.linspace(0.25, 4, 73).sqrt().reshape(1, 73),
        f'{prefix}count': torch.tensor(1000),
    }


def new(**extra: Any) -> dict[str, Any]:
    """A checkpoint as rsl_rl 5 writes it."""
    actor = {'distribution.std_param': torch.ones(29), **mlp('mlp.')}
    return {
        'actor_state_dict': {**actor, **extra},
        'critic_state_dict': mlp('mlp.', (79, 4, 1), 1),
        'optimizer_state_dict': {'state': {}, 'param_groups': []},
        'iter': 7,
        'infos': None,
    }


def old(**extra: Any) -> dict[str, Any]:
    """A checkpoint as rsl_rl 3 and older write it."""
    model = {'std': torch.ones(29), **mlp('actor.'), **mlp('critic.', (79, 4, 1), 1)}
    return {'model_state_dict': {**model, **extra}, 'iter': 7, 'infos': None}


def saved(folder: Path, data: object, **options: Any) -> Path:
    path = folder / 'model_7.pt'
    torch.save(data, path, **options)
    return path


@pytest.fixture
def contract_file(tmp_path: Path) -> Callable[..., Path]:
    def write(normalizer: str = 'none', **changes: Any) -> Path:
        data = load_contract(CONTRACT).to_mapping()
        data.update(normalizer=normalizer, network={'sizes': [*SIZES], 'activation': 'elu'})
        dump_contract(contract_from_mapping(data | changes), tmp_path / 'contract.yaml')
        return tmp_path / 'contract.yaml'

    return write


PLAIN_LAYOUTS: dict[str, tuple[dict[str, Any], str]] = {
    '5.x': (new(), '5.x'),
    '5.x, log std': (new(**{'distribution.log_std_param': torch.ones(29)}), '5.x'),
    '3.x': (old(), '3.x and older'),
    '3.x, log std': (old(log_std=torch.ones(29)), '3.x and older'),
    '3.x, critic normalizer': (old(**statistics('critic_obs_normalizer.')), '3.x and older'),
}
NORMALIZED_LAYOUTS: dict[str, dict[str, Any]] = {
    '5.x': new(**statistics('obs_normalizer.')),
    '3.x': old(**statistics('actor_obs_normalizer.')),
    '2.x': old() | {'obs_norm_state_dict': statistics()},
}


@pytest.mark.parametrize(('data', 'format_part'), PLAIN_LAYOUTS.values(), ids=PLAIN_LAYOUTS)
@pytest.mark.parametrize('legacy', [False, True])
def test_every_layout_gives_the_same_actor(
    tmp_path: Path, data: dict[str, Any], format_part: str, legacy: bool
) -> None:
    path = saved(tmp_path, data, _use_new_zipfile_serialization=not legacy)
    checkpoint = read_checkpoint(path)
    assert format_part in checkpoint.format
    assert (checkpoint.mapped, checkpoint.iteration) == (6, 7)
    assert checkpoint.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    expected = mlp('')
    assert set(checkpoint.weights) == {f'layers.{i}.{k}' for i in range(3) for k in
                                       ('weight', 'bias')}  # fmt: skip
    for i in range(3):
        for kind in ('weight', 'bias'):
            np.testing.assert_array_equal(
                checkpoint.weights[f'layers.{i}.{kind}'], expected[f'{2 * i}.{kind}'].numpy()
            )


@pytest.mark.parametrize('data', NORMALIZED_LAYOUTS.values(), ids=NORMALIZED_LAYOUTS)
def test_the_normalizer_is_found_wherever_it_was_kept(
    tmp_path: Path, data: dict[str, Any]
) -> None:
    checkpoint = read_checkpoint(saved(tmp_path, data))
    assert checkpoint.mapped == 6 + 4
    mean, divisor = (checkpoint.weights[f'normalizer.{k}'] for k in ('mean', 'divisor'))
    x = torch.linspace(-3, 3, 73)
    state = statistics()
    expected = (x - state['_mean'][0]) / (state['_std'][0] + 1e-2)  # rsl_rl's formula
    np.testing.assert_array_equal((x.numpy() - mean) / divisor, expected.numpy())


@pytest.mark.parametrize(
    ('data', 'normalized'),
    [(new(), False), (NORMALIZED_LAYOUTS['5.x'], True), (NORMALIZED_LAYOUTS['2.x'], True)],
    ids=['plain', '5.x normalized', '2.x normalized'],
)
def test_an_imported_bundle_acts_as_the_trained_network(
    tmp_path: Path, contract_file: Callable[..., Path], data: dict[str, Any], normalized: bool
) -> None:
    bundle = import_bundle(
        saved(tmp_path, data),
        [contract_file('required' if normalized else 'none')],
        tmp_path / 'out',
    )
    net = torch.nn.Sequential(
        torch.nn.Linear(73, 6), torch.nn.ELU(),
        torch.nn.Linear(6, 5), torch.nn.ELU(),
        torch.nn.Linear(5, 29),
    )  # fmt: skip
    net.load_state_dict(mlp(''))
    x = torch.tensor(bundle.golden_observations)
    if normalized:
        state = statistics()
        x = (x - state['_mean']) / (state['_std'] + 1e-2)
    np.testing.assert_allclose(bundle.golden_actions, net(x).detach().numpy(), rtol=0, atol=2e-6)
    assert check_actor(bundle, load_actor(bundle.contract.network, bundle.weights, 'cpu')) < 1e-5


def test_the_manifest_says_where_the_bundle_came_from(
    tmp_path: Path, contract_file: Callable[..., Path]
) -> None:
    facts = tmp_path / 'facts.json'
    facts.write_text('{"gpu": "NVIDIA H200", "environments": 4096}')
    path = saved(tmp_path, new())
    lines: list[str] = []
    import_bundle(path, [contract_file()], tmp_path / 'out', facts, progress=lines.append)
    manifest = load_bundle(tmp_path / 'out').manifest
    assert lines[0] == 'format=rsl_rl actor_state_dict (5.x), 6 tensors mapped, 0 left over'
    assert manifest.source.file == 'model_7.pt'
    assert manifest.source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (manifest.source.iteration, manifest.training.environments) == (7, 4096)
    assert (manifest.training.gpu, manifest.training.seed) == ('NVIDIA H200', None)
    assert manifest.versions is not None
    assert manifest.versions['torch'] == torch.__version__
    assert 'seed 0' in (manifest.golden_source or '')


def no_bytes(path: Path) -> None:
    path.write_bytes(b'')


def cut(part: float, **options: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        torch.save(new(), path, **options)
        raw = path.read_bytes()
        path.write_bytes(raw[: int(len(raw) * part)])

    return write


def torch_script(path: Path) -> None:
    torch.jit.save(torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2)), path)


def plain_zip(path: Path) -> None:
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('readme.txt', 'x')


def torch_save(data: object) -> Callable[[Path], None]:
    return lambda path: torch.save(data, path)


def without(data: dict[str, Any], state: str, key: str) -> dict[str, Any]:
    return data | {state: {k: v for k, v in data[state].items() if k != key}}


NAN = torch.full((6, 73), float('nan'))
REFUSALS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    'empty': (no_bytes, ['the file is empty']),
    'truncated zip': (cut(0.5), ['truncated or damaged']),
    'truncated old format': (
        cut(0.5, _use_new_zipfile_serialization=False), ['truncated, damaged or no checkpoint']
    ),
    'TorchScript': (torch_script, ['a TorchScript export', 'training checkpoint']),
    'a zip': (plain_zip, ['a zip archive, but not one of torch.save']),
    'text': (lambda p: p.write_text('weights') and None, ['not a file of torch.save']),
    'a list': (torch_save([1, 2]), ['holds a list']),
    'a tensor': (torch_save(torch.zeros(3)), ['holds a Tensor']),
    'unknown layout': (
        torch_save({'policy': {}, 'epoch': 3}),
        ['not exactly one of actor_state_dict or model', 'top-level keys: policy, epoch'],
    ),
    'no keys': (torch_save({}), ['top-level keys: none']),
    'both layouts': (torch_save(new() | old()), ['not exactly one of']),
    'state that is no map': (
        torch_save({'actor_state_dict': [1]}), ['actor_state_dict is a list']
    ),
    'a recurrent actor': (
        torch_save(old(**{'memory_a.rnn.weight_ih_l0': torch.zeros(2)})),
        ['left over: memory_a.rnn.weight_ih_l0'],
    ),
    'a layer norm in between': (
        torch_save(new(**{'mlp.1.weight': torch.zeros(6)})), ['left over: mlp.1.weight']
    ),
    'a layer number written twice': (
        torch_save(new(**{'mlp.00.weight': torch.zeros(6)})), ['left over: mlp.00.weight']
    ),
    'not finite': (
        torch_save(new(**{'mlp.0.weight': NAN})),
        ['actor_state_dict.mlp.0.weight has 438 of 438 values that are not finite'],
    ),
    'half precision': (
        torch_save(new(**{'mlp.0.bias': torch.zeros(6).half()})), ['mlp.0.bias', 'float16']
    ),
    'sparse': (
        torch_save(new(**{'mlp.0.weight': torch.zeros(6, 73).to_sparse()})), ['sparse']
    ),
    'more values than bytes': (
        torch_save(new(**{'mlp.0.weight': torch.zeros(1).expand(10**6, 10**6)})),
        ['mlp.0.weight has 1000000000000 values, not all of them in the file'],
    ),
    'on no device': (
        torch_save(new(**{'mlp.0.weight': torch.empty(6, 73, device='meta')})),
        ['mlp.0.weight has 438 values, not all of them in the file'],
    ),
    'no tensor': (torch_save(new(**{'mlp.0.bias': 3.0})), ['mlp.0.bias is a float']),
    'two normalizers': (
        torch_save(old(**statistics('actor_obs_normalizer.')) | {'obs_norm_state_dict': {}}),
        ['a normalizer in model_state_dict and in obs_norm_state_dict'],
    ),
    'half a normalizer': (
        torch_save(new(**{'obs_normalizer._mean': torch.zeros(1, 73)})),
        ['not a known normalizer: _mean'],
    ),
    'another normalizer': (
        torch_save(new(**statistics('obs_normalizer.'), **{'obs_normalizer.scale': NAN})),
        ['not a known normalizer', 'scale'],
    ),
}  # fmt: skip


@pytest.mark.filterwarnings('ignore:.*torch.jit:DeprecationWarning')
@pytest.mark.parametrize(('write', 'names'), REFUSALS.values(), ids=REFUSALS)
def test_what_is_no_known_checkpoint_is_refused_in_one_line(
    tmp_path: Path, write: Callable[[Path], None], names: list[str]
) -> None:
    path = tmp_path / 'model.pt'
    write(path)
    with pytest.raises(UserError) as refusal:
        read_checkpoint(path)
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert '\n' not in message
    for name in names:
        assert name in message


class RunsCode:
    """Unpickled, it would make a folder at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize('kind', ['zip', 'old', 'pickle', 'among the weights'])
def test_a_foreign_pickle_is_refused_by_name_and_never_run(tmp_path: Path, kind: str) -> None:
    witness, path = tmp_path / 'witness', tmp_path / 'model.pt'
    evil = RunsCode(witness)
    pickle.loads(pickle.dumps(evil))  # the trap works
    witness.rmdir()
    if kind == 'pickle':
        path.write_bytes(pickle.dumps(evil, protocol=2))
    elif kind == 'among the weights':
        torch.save(new(**{'mlp.0.bias': evil}), path)
    else:
        torch.save(evil, path, _use_new_zipfile_serialization=kind == 'zip')
    with pytest.raises(UserError, match=r'it asks for \w+\.mkdir, .*nothing was run'):
        read_checkpoint(path)
    assert not witness.exists()


@pytest.mark.parametrize('protocol', [3, 4, 5])
@pytest.mark.parametrize('kind', ['zip', 'old', 'pickle'])
def test_a_foreign_pickle_of_another_protocol_is_not_run_either(
    tmp_path: Path, kind: str, protocol: int
) -> None:
    witness, path = tmp_path / 'witness', tmp_path / 'model.pt'
    evil = RunsCode(witness)
    if kind == 'pickle':
        path.write_bytes(pickle.dumps(evil, protocol=protocol))
    else:
        new_format = kind == 'zip'
        torch.save(evil, path, pickle_protocol=protocol, _use_new_zipfile_serialization=new_format)
    with pytest.raises(UserError) as refusal:
        read_checkpoint(path)
    assert 'weights_only=False' not in str(refusal.value)
    assert 'nothing was run' in str(refusal.value) or 'not a file of' in str(refusal.value)
    assert not witness.exists()


def test_a_numpy_scalar_in_a_checkpoint_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path, new() | {'infos': np.float64(1.0)})
    with pytest.raises(UserError, match=r'it asks for numpy\.'):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ('data', 'normalizer', 'names'),
    [
        (new(), 'required', ['missing normalizer.mean', 'normalizer: required']),
        (NORMALIZED_LAYOUTS['5.x'], 'none', ['unexpected normalizer.mean', 'normalizer: none']),
        (NORMALIZED_LAYOUTS['2.x'], 'none', ['unexpected normalizer.mean', 'normalizer: none']),
        (new() | {'actor_state_dict': mlp('mlp.', (96, 6, 5, 29))}, 'none',
         ['sum to 73, the weights take 96', 'gait_contact']),
        (new() | {'actor_state_dict': mlp('mlp.', (73, 6, 29))}, 'none',
         ['missing layers.2.weight', 'layers.1.weight is (29, 6)']),
        (new() | {'actor_state_dict': mlp('mlp.', (73, 6, 5, 58))}, 'none',
         ['layers.2.weight is (58, 5), the contract needs (29, 5)']),
        (without(new(), 'actor_state_dict', 'mlp.2.bias'), 'none', ['missing layers.1.bias']),
    ],
    ids=['normalizer absent', '5.x normalizer', '2.x normalizer', '96 wide', 'a layer less',
         'std from the network', 'no bias'],
)  # fmt: skip
def test_a_checkpoint_that_does_not_fit_the_contract_is_refused(
    tmp_path: Path,
    contract_file: Callable[..., Path],
    data: dict[str, Any],
    normalizer: str,
    names: list[str],
) -> None:
    with pytest.raises(UserError) as refusal:
        import_bundle(saved(tmp_path, data), [contract_file(normalizer)], tmp_path / 'out')
    for name in names:
        assert name in str(refusal.value)
    assert not (tmp_path / 'out').exists()


def test_a_contract_that_names_other_weights_is_refused(
    tmp_path: Path, contract_file: Callable[..., Path]
) -> None:
    with pytest.raises(UserError, match='set it to null'):
        import_bundle(
            saved(tmp_path, new()), [contract_file(weights_sha256='0' * 64)], tmp_path / 'out'
        )


def test_an_import_whose_actor_differs_from_the_golden_actions_makes_nothing(
    tmp_path: Path, contract_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Off:
        device = 'cpu'

        def __call__(self, observation: Any) -> Any:
            return np.full(29, 100.0, np.float32)

    monkeypatch.setattr(bundle_import, 'load_actor', lambda *_: Off())
    with pytest.raises(UserError, match='cpu: an action differs'):
        import_bundle(saved(tmp_path, new()), [contract_file()], tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def test_training_facts_with_a_typo_are_refused(
    tmp_path: Path, contract_file: Callable[..., Path]
) -> None:
    facts = tmp_path / 'facts.json'
    facts.write_text('{"gpuu": 1}')
    with pytest.raises(UserError, match=r'facts\.json: unknown gpuu'):
        import_bundle(saved(tmp_path, new()), [contract_file()], tmp_path / 'out', facts)


def test_a_torch_with_an_unsafe_reader_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, new())
    monkeypatch.setattr(rsl_rl, 'FIRST_SAFE_TORCH', (99, 0))
    with pytest.raises(UserError, match='reads no untrusted files'):
        read_checkpoint(path)
