"""One training over several processes, as torchrun starts them: one for each GPU."""

import os
import subprocess
import sys
from dataclasses import replace

import torch

from g1_policy_node.training.options import TrainOptions
from g1_policy_node.training.record import make_folder
from g1_policy_node.types import UserError


def in_torchrun() -> bool:
    """Tell whether this is one of torchrun's processes."""
    return 'LOCAL_RANK' in os.environ


def rank() -> int:
    """Return this process's number among all of the training, over all hosts."""
    return int(os.environ.get('RANK', '0'))


def local_device(device: str) -> str:
    """Return this process's device, checked: under torchrun the GPU of its local rank."""
    try:
        opened = torch.device(device)
    except RuntimeError:
        raise UserError(f'device: {device!r} is no torch device, such as cuda:0 or cpu') from None
    if opened.type != 'cuda':
        return device
    if not torch.cuda.is_available():
        raise UserError(
            f'device: {device}, but torch {torch.__version__} sees no CUDA device; '
            '--device cpu trains too, slowly'
        )
    index = int(os.environ['LOCAL_RANK']) if in_torchrun() else opened.index or 0
    if index >= torch.cuda.device_count():
        raise UserError(f'device: cuda:{index}, but there are {torch.cuda.device_count()}')
    return f'cuda:{index}'


def spawn(options: TrainOptions) -> int:
    """Run this training in `options.gpus` processes under torchrun; return its exit code."""
    folder = make_folder(options)
    given = replace(options, run_dir=str(folder), gpus=1)
    command = [
        sys.executable, '-m', 'torch.distributed.run', '--standalone',
        f'--nproc-per-node={options.gpus}', '-m', 'g1_policy_node.cli', 'train',
        *given.arguments(),
    ]  # fmt: skip
    return subprocess.run(command, check=False).returncode
