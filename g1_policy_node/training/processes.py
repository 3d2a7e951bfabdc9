"""One training over several processes, as torchrun starts them: one for each GPU."""

import json
import logging
import os
from dataclasses import replace
from pathlib import Path

import torch
from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from g1_policy_node.run_folder import write_json
from g1_policy_node.training.options import INTERRUPTED, TrainOptions
from g1_policy_node.training.record import MANIFEST, make_folder
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
    """Run this training in `options.gpus` processes under torchrun; return its exit code.

    Where one of them is gone, the others end too, and a line says which and what is left.
    """
    folder = make_folder(options)
    given = replace(options, run_dir=str(folder), gpus=1)
    logging.getLogger('torch.distributed.elastic').setLevel(logging.CRITICAL)
    arguments = [
        '--standalone', f'--nproc-per-node={options.gpus}',
        '-m', 'g1_policy_node.cli', 'train', *given.arguments(),
    ]  # fmt: skip
    try:
        torchrun.run(torchrun.parse_args(arguments))
    except SignalException:
        return INTERRUPTED
    except ChildFailedError as error:
        first, failure = error.get_first_failure()
        code = failure.exitcode
        if code == INTERRUPTED:
            return INTERRUPTED
        how = f'was ended by {failure.signal_name()}' if code < 0 else f'ended with code {code}'
        _report(folder, f'process {first} of {options.gpus} {how}')
        return max(code, 1)
    return 0


def lost_another(error: BaseException) -> bool:
    """Tell whether an error says that another process of this training is gone."""
    return isinstance(error, torch.distributed.DistError) or (
        isinstance(error, RuntimeError) and '/gloo/' in str(error)
    )


def _report(folder: Path, what: str) -> None:
    """Say what happened, and write it down where the first process no longer could."""
    saved = sorted((folder / 'checkpoints').glob('model_*.pt'), key=lambda p: p.stat().st_mtime)
    print(f'stopped: {what}; last checkpoint: {saved[-1] if saved else "none yet"}', flush=True)
    path = folder / MANIFEST
    if path.is_file():
        manifest = json.loads(path.read_text())
        manifest['failed'] = what
        if manifest['status'] == 'running':
            manifest['status'] = 'failed'
            manifest['checkpoint'] = saved[-1].name if saved else None
        write_json(path, manifest)
