import pytest
import torch

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


def test_without_the_free_memory_of_the_start_nothing_is_guessed() -> None:
    found = diagnose(torch.OutOfMemoryError(TORCH), 'rollout', LAYOUT, None)
    assert found['num_envs_that_fits'] is None
    assert 'not known' in describe(found)[-1]
