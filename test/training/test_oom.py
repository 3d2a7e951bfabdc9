import json
from pathlib import Path

import pytest
import torch

from g1_policy_node.paths import data_root
from g1_policy_node.schema import read_yaml
from g1_policy_node.training import oom
from g1_policy_node.training.memory import Layout
from g1_policy_node.training.oom import describe, diagnose, is_out_of_memory, requested_bytes

LAYOUT = Layout(4096, 24, 73, 79, 29, 411195)
TORCH = 'CUDA out of memory. Tried to allocate 48.00 MiB. GPU 0 has a total capacity of 15 GiB'
WARP = 'Failed to allocate 4096 bytes on device cuda:0'


@pytest.mark.parametrize(
    ('message', 'size'), [(TORCH, 48 * 2**20), (WARP, 4096), ('out of memory', None)]
)
def test_what_was_asked_for_is_read_from_the_message(message: str, size: int | None) -> None:
    assert requested_bytes(message) == size


def test_torchs_and_warps_errors_are_known_and_others_are_not_taken_for_them() -> None:
    assert is_out_of_memory(torch.OutOfMemoryError(TORCH))
    assert is_out_of_memory(RuntimeError(WARP))
    assert not is_out_of_memory(RuntimeError('shapes do not match'))
    assert not is_out_of_memory(ValueError('out of memory'))


def test_a_diagnosis_names_the_stage_the_largest_and_what_would_fit() -> None:
    found = diagnose(torch.OutOfMemoryError(TORCH), 'update', LAYOUT, 8 * 2**30)
    assert (found['stage'], next(iter(found['largest']))) == ('update', 'rollout')
    model = found['model']
    fits = found['num_envs_that_fits']
    assert (
        model['fixed'] + model['k'] * fits <= 8 * 2**30 < model['fixed'] + model['k'] * (fits + 1)
    )
    text = '\n'.join(describe(found))
    assert 'stage update with 4096 robots: 48 MiB asked for' in text
    assert f'--num-envs {fits} would fit' in text


def test_what_would_fit_is_by_the_measured_model_in_config() -> None:
    model = read_yaml(data_root() / 'config/gpu_memory.yaml')
    assert isinstance(model, dict)
    free = 15 * 2**30
    found = diagnose(torch.OutOfMemoryError(TORCH), 'environment', LAYOUT, free)
    assert found['num_envs_that_fits'] == int((free - model['fixed']) // model['k'])
    sweep = json.loads((data_root() / 'docs/evidence/train_h200_sweep/sweep.json').read_text())
    assert sweep['model']['fixed'] == pytest.approx(model['fixed'])
    assert sweep['model']['k'] == pytest.approx(model['k'], rel=1e-5)


@pytest.mark.parametrize(
    ('text', 'fits'), [('fixed: 1000\nk: 10\n', 900), ('fixed: 20000\nk: 10\n', 0), ('', None)]
)
def test_another_model_gives_another_answer_and_none_gives_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, fits: int | None
) -> None:
    monkeypatch.setattr(oom, 'data_root', lambda: tmp_path)
    if text:
        (tmp_path / 'config').mkdir()
        (tmp_path / 'config' / 'gpu_memory.yaml').write_text(text)
    found = diagnose(torch.OutOfMemoryError(TORCH), 'update', LAYOUT, 10_000)
    assert found['num_envs_that_fits'] == fits
    told = {900: '--num-envs 900 would fit', 0: 'not even one robot would fit', None: 'not known'}
    assert told[fits] in describe(found)[-1]


def test_without_the_free_memory_of_the_start_nothing_is_guessed() -> None:
    found = diagnose(torch.OutOfMemoryError(TORCH), 'rollout', LAYOUT, None)
    assert found['num_envs_that_fits'] is None
    assert 'not known' in describe(found)[-1]
