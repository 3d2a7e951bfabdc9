"""`g1-policy train`: a training run from its first kernel to the bundle, and its evidence."""

import itertools
import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from g1_policy_node.bundle import Bundle, load_bundle, resolve_bundle
from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.run_folder import write_json
from g1_policy_node.tools.bundle_import import import_bundle
from g1_policy_node.tools.walk import stop_signals
from g1_policy_node.training import oom, record
from g1_policy_node.training.curriculum import IMITATED_FROM, IMITATED_UNTIL
from g1_policy_node.training.imitation import ACTION_STD, Teacher, check_teacher
from g1_policy_node.training.memory import Layout, MemoryLog
from g1_policy_node.training.options import INTERRUPTED, TrainOptions
from g1_policy_node.training.overflow import OverflowWatch
from g1_policy_node.training.ppo_config import contract_path, load_ppo_config
from g1_policy_node.training.processes import in_torchrun, local_device, lost_another, rank, spawn
from g1_policy_node.training.progress import Countdown, Curve, EpisodeStatistics, Status
from g1_policy_node.training.run import Run, save_checkpoint, write_evidence
from g1_policy_node.training.stage_times import StageTimes
from g1_policy_node.training.sweep import sweep
from g1_policy_node.types import UserError


def train(options: TrainOptions) -> int:
    """Train as asked and leave the evidence; 0 done, 1 failed, 130 interrupted."""
    if options.sweep:
        return sweep(options)
    if options.gpus > 1 and not in_torchrun():
        return spawn(options)
    began = time.monotonic()
    record.require_isaaclab()
    run = _prepare(options, began)
    with OverflowWatch() as watch, stop_signals() as stopped:
        console = Console(file=watch.terminal, highlight=False, quiet=rank() > 0)
        try:
            _train(run, watch, stopped, console)
        except Exception as error:
            if oom.is_out_of_memory(error):
                console.quiet = False  # whichever process it is
                _out_of_memory(run, error, console)
            elif in_torchrun() and lost_another(error):
                console.print('another process of this training is gone', markup=False)
            else:
                raise
        finally:
            if run.status == 'running':
                run.status = 'failed'
            watch.flush()
            write_evidence(run, watch)
        if run.status == 'done' and options.bundle and run.folder:
            _make_bundle(run, console)
        if run.folder:
            console.print(f'{run.status}  {_shown(run.folder)}', markup=False)
    return {'done': 0, 'interrupted': INTERRUPTED}.get(run.status, 1)


def _prepare(options: TrainOptions, began: float) -> Run:
    """Read and check everything that can be wrong before anything slow starts."""
    contract = load_contract(contract_path(options.contract))
    config = load_ppo_config(options.config, contract)
    if options.seed >= 0:
        config['seed'] = options.seed
    options = replace(options, num_envs=options.num_envs or config['num_envs'])
    device = local_device(options.device or config['device'])
    teacher = load_bundle(resolve_bundle(options.teacher)) if options.teacher else None
    if teacher:
        check_teacher(teacher, contract)
    folder = record.make_folder(options) if rank() == 0 else None
    layout = _layout(options, contract, config)
    run = Run(
        options, contract, config, device, folder, began, layout,
        MemoryLog(device), StageTimes(device, options.stage_times), teacher,
    )  # fmt: skip
    run.manifest = record.manifest(options, contract, config, device)
    run.manifest['teacher_sha256'] = teacher.weights_sha256 if teacher else None
    if folder:
        write_json(folder / record.MANIFEST, run.manifest)
        run.curve = Curve(folder / 'tensorboard')
    return run


def _layout(options: TrainOptions, contract: Contract, config: dict[str, Any]) -> Layout:
    from g1_policy_node.training.env_sizes import PRIVILEGED

    actor = contract.network.sizes
    critic = (actor[0] + PRIVILEGED, *config['critic']['hidden_dims'], 1)
    weights = sum(
        (fan_in + 1) * fan_out
        for sizes in (actor, critic)
        for fan_in, fan_out in itertools.pairwise(sizes)
    )
    # And the actor's standard deviations.
    return Layout(
        options.num_envs, config['num_steps_per_env'], actor[0], critic[0], actor[-1],
        weights + actor[-1],
    )  # fmt: skip


def _train(run: Run, watch: OverflowWatch, stopped: Callable[[], bool], console: Console) -> None:
    """Make the environment and iterate until the end, whatever it is."""
    run.memory.measure('start')
    console.print(f'{run.options.num_envs} robots on {run.device}: starting', markup=False)
    from g1_policy_node.training.isaac import make_env
    from g1_policy_node.training.runner import NotFiniteError, Runner

    seed = run.config['seed'] + rank()
    # As Isaac Lab's own scripts: matrix products of float32 with TF32's mantissa, on a GPU.
    torch.backends.cuda.matmul.allow_tf32 = True
    env = make_env(run.options.contract, run.options.num_envs, run.device, seed)
    run.memory.measure('environment')
    runner = Runner(env, run.config, None, run.device)
    run.manifest.update(runner.found())
    totals = _resume(run, runner, console)
    if run.teacher:
        _take_teacher(run, run.teacher, runner, totals, console)
    if run.options.action_std:
        runner.set_action_std(run.options.action_std)
    try:
        _iterate(run, runner, totals, watch, stopped, console)
    except NotFiniteError as error:
        run.status, run.manifest['not_finite'] = 'not_finite', str(error)
        console.print(f'stopped: not finite: {error}', markup=False)
        if run.folder:
            path = run.folder / 'checkpoints' / 'diagnostic.pt'
            path.parent.mkdir(exist_ok=True)
            torch.save(error.checkpoint, path)
            console.print(f'weights as they were before it: {_shown(path)}', markup=False)


def _resume(run: Run, runner: Any, console: Console) -> record.Totals:
    """Go on from a checkpoint, if there is one, and say what was taken from it."""
    if not run.options.resume:
        return record.Totals({})
    infos = runner.restore(Path(run.options.resume))
    told = infos.get('contract_sha256')
    if told not in (None, run.contract.sha256):
        raise UserError(
            f'{run.options.resume}: trained by contract {told[:16]}, this is '
            f'{run.contract.sha256[:16]}'
        )
    steps, whence = infos.get('curriculum_steps'), 'of the checkpoint'
    if steps is None:
        steps = runner.iteration * run.config['num_steps_per_env']
        whence = 'by the iteration; the checkpoint does not say'
    runner.env.unwrapped.common_step_counter = steps
    alg = runner.alg
    moments = len(alg.optimizer.state_dict()['state'])
    normalizer = 'restored' if run.contract.normalizer == 'required' else 'none in the contract'
    for line in (
        f'resumed from {run.options.resume}',
        f'  iteration {runner.iteration}',
        f'  optimizer: state of {moments} tensors, learning rate {alg.learning_rate:.3g}',
        f'  curriculum: step {steps} ({whence})',
        f'  normalizer: {normalizer}',
    ):
        console.print(line, markup=False, soft_wrap=True)
    return record.Totals(infos)


def _take_teacher(
    run: Run, bundle: Bundle, runner: Any, totals: record.Totals, console: Console
) -> None:
    """Let a new training begin with imitation, and a resumed one go on with it."""
    env = runner.env.unwrapped
    runner.teacher = Teacher(bundle, run.contract, env.mirror, run.device)
    if not run.options.resume:
        env.common_step_counter = IMITATED_FROM
        runner.set_action_std(ACTION_STD)
    totals.teacher_sha256 = bundle.weights_sha256
    console.print(f'imitates {bundle.path} until step {IMITATED_UNTIL}', markup=False)


def _iterate(
    run: Run,
    runner: Any,
    totals: record.Totals,
    watch: OverflowWatch,
    stopped: Callable[[], bool],
    console: Console,
) -> None:
    """Iterate until there is a reason to stop; write checkpoints and show the progress."""
    statistics = EpisodeStatistics(run.options.num_envs, run.device)
    iterations = run.options.iterations or run.config['max_iterations']
    steps = run.config['num_steps_per_env'] * run.options.num_envs * runner.gpu_world_size
    runner.start()
    countdown = Countdown(iterations, run.options.time_limit, run.began)
    with Status(console) as status:
        why = ''
        while not why:
            losses = _iteration(run, runner, statistics)
            speed = steps / countdown.tick()
            totals.environment_steps += steps
            watch.flush()
            run.infos = totals.infos(runner.env.unwrapped.common_step_counter, run.contract)
            row = _row(run, runner, statistics, losses, speed)
            why = 'interrupted' if stopped() else countdown.over
            if runner.any_process(bool(why)):
                why = why or 'another process stopped'
            if run.folder and (why or runner.iteration % run.config['save_interval'] == 0):
                run.checkpoint = save_checkpoint(run, runner)
            status.show(_line(row, countdown.left_s), last=bool(why))
    console.print(why, markup=False)
    run.status = 'interrupted' if stopped() else 'done'


def _iteration(run: Run, runner: Any, statistics: EpisodeStatistics) -> dict[str, float]:
    """Roll out and update once; return the losses."""
    with run.times.iteration():
        run.stage = 'rollout'
        runner.roll_out(run.times, statistics)
        run.memory.measure('first_rollout')
        run.stage = 'update'
        losses: dict[str, float] = runner.update(run.times)
        run.memory.measure('first_update')
    return losses


def _row(
    run: Run, runner: Any, statistics: EpisodeStatistics, losses: dict[str, float], speed: float
) -> dict[str, float]:
    """Return the figures of the iteration just done, and put them on the curve."""
    reward, length, terms = statistics.read()
    row = {
        'steps_per_s': speed,
        'reward': reward,
        'episode_length_s': length * run.contract.step_dt,
        **{f'loss_{name}': value for name, value in losses.items()},
        'learning_rate': runner.alg.learning_rate,
        'action_std': runner.alg.get_policy().output_std.mean().item(),
        'environment_steps': run.infos['environment_steps'],
        'wall_time_s': run.infos['wall_time_s'],
    }
    run.curve.add(runner.iteration, row, terms)
    return {'iteration': runner.iteration, **row}


def _line(row: dict[str, float], left_s: float) -> str:
    minutes, seconds = divmod(round(left_s), 60)
    ended = math.isfinite(row['reward'])
    episodes = f'reward {row["reward"]:.2f}   episode {row["episode_length_s"]:.1f} s'
    return (
        f'iteration {row["iteration"]:.0f}   {row["steps_per_s"]:,.0f} steps/s   '
        f'{episodes if ended else "no episode over yet"}   {minutes}:{seconds:02} left'
    )


def _out_of_memory(run: Run, error: BaseException, console: Console) -> None:
    start = run.memory.boundaries.get('start', {})
    found = oom.diagnose(error, run.stage, run.layout, start.get('driver_free'))
    run.status, run.manifest['oom'] = 'oom', found
    for line in oom.describe(found):
        console.print(line, markup=False, soft_wrap=True)


def _make_bundle(run: Run, console: Console) -> None:
    assert run.folder is not None and run.checkpoint is not None
    training = run.folder / 'training.json'
    iteration = run.curve.columns['iteration'][-1]
    write_json(training, record.bundle_training(run.manifest, run.infos, int(iteration)))
    bundle = import_bundle(
        run.checkpoint,
        [contract_path(run.options.contract)],
        run.folder / 'policy',
        training,
        progress=lambda line: console.print(line, markup=False, soft_wrap=True),
    )
    console.print(f'bundle: g1-policy walk --policy {_shown(bundle.path)}', markup=False)


def _shown(path: Path) -> str:
    """Return a path as a user would type it from here."""
    here = Path.cwd()
    return os.path.relpath(path) if path.is_relative_to(here) else str(path)
