import pytest

from g1_policy_node.bringup import read_options
from g1_policy_node.training.options import TrainOptions
from g1_policy_node.types import UserError


def test_what_is_typed_for_options_reads_back_as_the_same_options() -> None:
    options = TrainOptions(num_envs=512, device='cpu', time_limit=1.5, bundle=False)
    texts = dict(item.removeprefix('--').split('=', 1) for item in options.arguments())
    named = {name.replace('-', '_'): text for name, text in texts.items()}
    assert read_options(named, TrainOptions) == options


def test_defaults_need_no_arguments() -> None:
    assert TrainOptions().arguments() == []


def test_a_sweep_is_ascending_and_without_repeats() -> None:
    assert TrainOptions(sweep='1024,512,1024').sweep_sizes() == (512, 1024)


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('num_envs', -1),
        ('iterations', -1),
        ('gpus', 0),
        ('seed', -2),
        ('time_limit', -0.5),
        ('action_std', -0.1),
        ('action_std', float('inf')),
        ('resume', 'no/such.pt'),
        ('config', 'no/such.yaml'),
        ('contract', 'no/such.yaml'),
        ('sweep', '512'),
        ('sweep', '512,many'),
        ('sweep', '0,512'),
    ],
)
def test_what_no_training_could_use_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(UserError, match=f'^{name}: '):
        TrainOptions(**{name: value})
