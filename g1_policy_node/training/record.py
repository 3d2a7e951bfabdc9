"""What a training run writes down: manifest, memory, stage times, curve and summary."""

import math
import os
import platform
import statistics
import sys
import time
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from g1_policy_node import __version__
from g1_policy_node.contract import Contract
from g1_policy_node.run_folder import create_run_folder, write_json
from g1_policy_node.tools.manifest import (
    cpu_model,
    git_state,
    gpu_and_driver,
    gpu_link,
    usable_cores,
    version,
)
from g1_policy_node.training.options import TrainOptions
from g1_policy_node.training.rewards import WEIGHTS
from g1_policy_node.types import UserError

TASK = 'G1Walk'
PACKAGES = (
    'isaaclab', 'newton', 'warp-lang', 'mujoco', 'mujoco-warp', 'rsl-rl-lib',
    'torch', 'numpy',
)  # fmt: skip
MANIFEST = 'manifest.json'


def make_folder(options: TrainOptions) -> Path:
    """Make the run's folder; UserError if a run is in it already."""
    if options.run_dir and Path(options.run_dir, MANIFEST).exists():
        raise UserError(f'run_dir: {options.run_dir} already holds a run')
    return create_run_folder(options.run_dir, 'train')


def manifest(
    options: TrainOptions, contract: Contract, config: dict[str, Any], device: str
) -> dict[str, Any]:
    """Return what the run is and where it happens; what cannot be found out is null."""
    gpu, driver = gpu_and_driver()
    return {
        'status': 'running',
        'command_line': sys.argv,
        'started_utc': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
        'task': TASK,
        'git': git_state(Path(__file__).resolve()),
        'options': asdict(options),
        'device': device,
        **_processes(),
        'num_envs': options.num_envs,
        'headless': True,
        'camera': None,
        'dtype': 'float32',
        'matmul': 'tf32 on cuda',
        'seed': config['seed'],
        'contract_sha256': contract.sha256,
        'observation': contract.observation_size,
        'action': len(contract.joint_names),
        'reward_weights': WEIGHTS,
        'ppo': {key: value for key, value in config.items() if key != 'multi_gpu'},
        'cuda_available': torch.cuda.is_available(),
        'gpu': gpu,
        'driver': driver,
        'cuda': torch.version.cuda,
        'cudnn': torch.backends.cudnn.version(),
        'versions': {
            'g1_policy_node': __version__,
            'python': platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        'host': platform.node(),
        'system': platform.platform(),
        'cpu': {'model': cpu_model(), 'cores': os.cpu_count(), 'usable': usable_cores()},
        'background_load': list(os.getloadavg()),
    }


def _processes() -> dict[str, Any]:
    """Return how many processes train, on how many hosts, and what gradients travel by."""
    cuda, processes = torch.cuda.is_available(), int(os.environ.get('WORLD_SIZE', '1'))
    return {
        'processes': processes,
        'hosts': int(os.environ.get('GROUP_WORLD_SIZE', '1')),
        'nccl': '.'.join(map(str, torch.cuda.nccl.version())) if cuda else None,
        'gpu_link': gpu_link() if processes > 1 else None,
    }


class Totals:
    """What a training has cost so far, over all its resumed runs."""

    def __init__(self, infos: dict[str, Any]) -> None:
        self.environment_steps = int(infos.get('environment_steps') or 0)
        self.wall_time_s = float(infos.get('wall_time_s') or 0.0)
        self.resumed_runs = int(infos.get('resumed_runs', -1)) + 1
        self.teacher_sha256: str | None = infos.get('teacher_sha256')
        self._began = time.monotonic()

    def infos(self, curriculum_steps: int, contract: Contract) -> dict[str, Any]:
        """Return what a checkpoint says beside its weights."""
        return {
            'curriculum_steps': curriculum_steps,
            'environment_steps': self.environment_steps,
            'wall_time_s': self.wall_time_s + time.monotonic() - self._began,
            'resumed_runs': self.resumed_runs,
            'contract_sha256': contract.sha256,
            'teacher_sha256': self.teacher_sha256,
        }


def bundle_training(
    manifest: dict[str, Any], infos: dict[str, Any], iterations: int
) -> dict[str, Any]:
    """Return what a bundle's manifest says about its training."""
    versions = {name: text for name, text in manifest['versions'].items() if text}
    gpus = manifest['gpu'] if manifest['device'].startswith('cuda') else None
    return {
        'framework': f'rsl_rl {version("rsl-rl-lib")} PPO',
        'simulator': f'Isaac Lab {version("isaaclab")}, Newton {version("newton")}',
        'gpu': gpus[0] if gpus else None,
        'gpus': manifest['processes'] if gpus else None,
        'environments': manifest['num_envs'] * manifest['processes'],
        'steps_per_iteration': manifest['ppo']['num_steps_per_env'],
        'iterations': iterations,
        'environment_steps': infos['environment_steps'],
        'resumed_runs': infos['resumed_runs'],
        'wall_time_s': round(infos['wall_time_s'], 1),
        'seed': manifest['seed'],
        'teacher_sha256': infos['teacher_sha256'],
        'git_commit': (manifest['git'] or {}).get('commit'),
        'versions': versions,
    }


def write_curve(folder: Path, columns: dict[str, list[float]]) -> None:
    """Write the learning curve, column by column, to six digits."""
    rounded = {
        name: [float(f'{x:.6g}') if math.isfinite(x) else x for x in values]
        for name, values in columns.items()
    }
    write_json(folder / 'curve.json', rounded)


def summary(columns: dict[str, list[float]], infos: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a run: its end, and its speed without the first two iterations."""
    speed = columns.get('steps_per_s', [])[2:] or columns.get('steps_per_s', [])

    def last(name: str) -> float | None:
        return columns[name][-1] if columns.get(name) else None

    return {
        'iterations': len(columns.get('iteration', [])),
        'iteration': last('iteration'),
        'steps_per_s': statistics.median(speed) if speed else None,
        'reward': last('reward'),
        'episode_length_s': last('episode_length_s'),
        **infos,
    }


def require_isaaclab() -> None:
    """Refuse to train where Isaac Lab is not installed."""
    try:
        metadata.version('isaaclab')
    except metadata.PackageNotFoundError:
        raise UserError(
            'training needs Isaac Lab, which this environment has not: make train-env, then '
            '.venv-train/bin/g1-policy train'
        ) from None
