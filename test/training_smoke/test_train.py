"""`g1-policy train` from its start to its end, whatever the end is."""

import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from training_smoke.runs import NUM_ENVS, checkpoint, command, disturb, read, train

from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.paths import find_data
from g1_policy_node.training.curriculum import IMITATED_FROM
from g1_policy_node.training.imitation import ACTION_STD
from g1_policy_node.training.memory import BOUNDARIES

pytestmark = pytest.mark.timeout(600)

STEPS = 24
UPDATES = 5 * 4
"""Optimizer steps of one iteration: epochs times minibatches."""


def test_a_run_leaves_its_manifest_curve_memory_and_checkpoint(trained: Path) -> None:
    manifest = read(trained, 'manifest')
    assert manifest['status'] == 'done'
    assert (manifest['device'], manifest['num_envs'], manifest['processes']) == ('cpu', 2, 1)
    assert manifest['shapes'] == [73, 29]
    assert manifest['versions']['isaaclab'] == '3.0.0'
    assert manifest['overflow'] == {'lines': 0, 'first': []}
    curve = read(trained, 'curve')
    losses = [values for name, values in curve.items() if name.startswith('loss_')]
    assert len(losses) >= 3
    assert all(len(values) == 1 and math.isfinite(values[0]) for values in losses)
    assert tuple(read(trained, 'memory')['boundaries']) == BOUNDARIES
    assert manifest['checkpoint'] == 'model_1.pt'
    assert checkpoint(trained, 'model_1.pt')['iter'] == 1
    assert list((trained / 'tensorboard').iterdir())


def test_the_manifest_records_where_every_buffer_is(trained: Path) -> None:
    assert read(trained, 'manifest')['buffers_device'] == 'cpu'


def test_a_resumed_run_goes_on_and_says_from_what(trained: Path, tmp_path: Path) -> None:
    source = trained / 'checkpoints' / 'model_1.pt'
    said = train(tmp_path, '--iterations=1', '--bundle=false', f'--resume={source}')
    assert f'resumed from {source}' in said
    assert '  iteration 1\n' in said
    assert '  optimizer: state of ' in said
    assert f'  curriculum: step {STEPS} (of the checkpoint)' in said
    assert '  normalizer: none in the contract' in said
    assert 'iteration 2 ' in said
    infos = checkpoint(tmp_path, 'model_2.pt')['infos']
    assert infos['curriculum_steps'] == 2 * STEPS
    assert infos['environment_steps'] == 2 * STEPS * NUM_ENVS
    assert infos['resumed_runs'] == 1
    moments = checkpoint(tmp_path, 'model_2.pt')['optimizer_state_dict']['state'].values()
    assert {int(state['step']) for state in moments} == {2 * UPDATES}


def test_a_training_with_a_teacher_says_so_wherever_its_weights_go(tmp_path: Path) -> None:
    said = train(tmp_path, '--iterations=1', '--teacher=g1_walk')
    sha256 = load_bundle(resolve_bundle('g1_walk')).weights_sha256
    assert 'imitates ' in said
    assert read(tmp_path, 'manifest')['teacher_sha256'] == sha256
    assert read(tmp_path, 'curve')['loss_imitation'][0] > 0
    assert read(tmp_path, 'curve')['action_std'] == pytest.approx([ACTION_STD])
    infos = checkpoint(tmp_path, 'model_1.pt')['infos']
    assert infos['teacher_sha256'] == sha256
    assert infos['curriculum_steps'] == IMITATED_FROM + STEPS
    assert load_bundle(tmp_path / 'policy').manifest.training.teacher_sha256 == sha256


def test_a_checkpoint_of_another_contract_is_refused(trained: Path, tmp_path: Path) -> None:
    other = yaml.safe_load(find_data('config/g1_walk_contract.yaml').read_text())
    other['name'] = 'another'
    (tmp_path / 'other.yaml').write_text(yaml.safe_dump(other, sort_keys=False))
    source = trained / 'checkpoints' / 'model_1.pt'
    arguments = (f'--contract={tmp_path}/other.yaml', f'--resume={source}', '--iterations=1')
    said = train(tmp_path / 'run', *arguments, code=2)
    assert 'trained by contract' in said.splitlines()[-1]
    assert 'Traceback' not in said


@pytest.mark.parametrize(
    ('spoiled', 'told'),
    [
        ({'gamma': 1e38, 'num_learning_epochs': 1, 'num_mini_batches': 1}, 'the losses of iter'),
        ({'learning_rate': 1e30, 'schedule': 'fixed'}, 'the update of iteration 0'),
    ],
    ids=['loss', 'deviation'],
)
def test_what_is_not_finite_stops_it_and_leaves_the_weights_before(
    spoiled: dict[str, object], told: str, tmp_path: Path
) -> None:
    config = yaml.safe_load(find_data('config/rsl_rl_ppo_cfg.yaml').read_text())
    config['algorithm'].update(spoiled)
    (tmp_path / 'ppo.yaml').write_text(yaml.safe_dump(config))
    folder = tmp_path / 'run'
    said = train(folder, f'--config={tmp_path}/ppo.yaml', '--iterations=3', code=1)
    assert f'stopped: not finite: {told}' in said
    assert 'Traceback' not in said
    manifest = read(folder, 'manifest')
    assert manifest['status'] == 'not_finite'
    assert told in manifest['not_finite']
    before = checkpoint(folder, 'diagnostic.pt')
    assert before['iter'] == 0
    assert all(torch.isfinite(x).all() for x in before['actor_state_dict'].values())
    assert not (folder / 'policy').exists()


@pytest.mark.parametrize(
    ('number', 'gpus'), [(signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGINT, 2)]
)
def test_asked_to_stop_it_writes_its_checkpoint_and_ends(
    number: signal.Signals, gpus: int, tmp_path: Path
) -> None:
    arguments = command(tmp_path, '--iterations=1000', '--bundle=false', f'--gpus={gpus}')
    code, said = disturb(arguments, lambda pid: os.kill(pid, number))
    assert code == 130, said
    assert 'Traceback' not in said
    manifest = read(tmp_path, 'manifest')
    assert manifest['status'] == 'interrupted'
    last = checkpoint(tmp_path, manifest['checkpoint'])
    assert last['iter'] == read(tmp_path, 'curve')['iteration'][-1] < 1000


def test_two_processes_of_one_training_over_gloo(tmp_path: Path) -> None:
    said = train(tmp_path, '--gpus=2', '--iterations=4', '--stage-times', '--bundle=false')
    manifest = read(tmp_path, 'manifest')
    assert manifest['status'] == 'done', said
    assert (manifest['processes'], manifest['hosts']) == (2, 1)
    assert read(tmp_path, 'summary')['environment_steps'] == 4 * 2 * NUM_ENVS * STEPS
    assert [path.name for path in (tmp_path / 'checkpoints').iterdir()] == ['model_4.pt']
    stages = read(tmp_path, 'stage_times')['stages']
    assert 0 < stages['gradient_reduction']['mean'] < stages['update']['mean']


@pytest.mark.parametrize('victim', [0, 1])
def test_a_process_that_is_gone_ends_all_and_its_checkpoint_goes_on_with_any_number(
    victim: int, tmp_path: Path
) -> None:
    config = yaml.safe_load(find_data('config/rsl_rl_ppo_cfg.yaml').read_text())
    (tmp_path / 'ppo.yaml').write_text(yaml.safe_dump({**config, 'save_interval': 1}))
    folder = tmp_path / 'run'
    often = f'--config={tmp_path}/ppo.yaml'
    arguments = command(folder, '--gpus=2', '--iterations=1000', often)
    code, said = disturb(arguments, lambda pid: os.kill(child(pid, victim), signal.SIGKILL))
    assert code == 1, said
    assert 'Traceback' not in said
    told = f'stopped: process {victim} of 2 was ended by SIGKILL; last checkpoint: '
    (line,) = [line for line in said.splitlines() if line.startswith(told)]
    last = Path(line.removeprefix(told))
    assert read(folder, 'manifest')['status'] == 'failed'
    assert read(folder, 'manifest')['checkpoint'] == last.name
    for gpus in (1, 2):
        again = (f'--gpus={gpus}', '--iterations=1', '--bundle=false', f'--resume={last}')
        said = train(tmp_path / f'{gpus}', *again)
        assert f'resumed from {last}' in said
        assert read(tmp_path / f'{gpus}', 'manifest')['processes'] == gpus


def child(parent: int, number: int) -> int:
    """The process of this rank among the children of a training's first process."""
    for entry in Path('/proc').glob('[0-9]*'):
        try:
            status, environment = (entry / 'status').read_text(), (entry / 'environ').read_bytes()
        except OSError:
            continue  # it has ended, or is not ours
        if f'PPid:\t{parent}\n' in status and f'\0RANK={number}\0'.encode() in environment:
            return int(entry.name)
    raise AssertionError(f'no process {number} under {parent}')


def test_two_processes_see_other_robots_and_keep_equal_weights(tmp_path: Path) -> None:
    script = Path(__file__).with_name('two_processes.py')
    torchrun = [sys.executable, '-m', 'torch.distributed.run', '--standalone']
    done = subprocess.run(
        [*torchrun, '--nproc-per-node=2', str(script), str(tmp_path), str(NUM_ENVS)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (torch.load(tmp_path / f'{i}.pt', weights_only=True) for i in range(2))
    assert first['world_size'] == second['world_size'] == 2
    assert not torch.equal(first['seen'], second['seen'])
    for one, other in zip(first['weights'], second['weights'], strict=True):
        assert torch.equal(one, other)


def test_a_sweep_measures_every_size_and_draws_it(tmp_path: Path) -> None:
    said = train(tmp_path, '--sweep=2,3', '--iterations=1')
    rows = read(tmp_path, 'sweep')['rows']
    assert [(row['num_envs'], row['status']) for row in rows] == [(2, 'done'), (3, 'done')]
    assert all(row['steps_per_s'] > 0 for row in rows)
    assert read(tmp_path, 'sweep')['model'] is None, 'device memory is not measured on a cpu'
    assert '2 robots   done' in said
    assert (tmp_path / 'sweep.png').stat().st_size > 1000
