"""Runs `g1-policy train` as a user does, with two robots on the CPU."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

NUM_ENVS = 2


def command(folder: Path, *arguments: str) -> list[str]:
    on_cpu = ('--device=cpu', f'--num-envs={NUM_ENVS}', f'--run-dir={folder}')
    return [sys.executable, '-m', 'g1_policy_node.cli', 'train', *on_cpu, *arguments]


def train(folder: Path, *arguments: str, code: int = 0) -> str:
    """Train, expect the exit code, and return what was printed."""
    done = subprocess.run(command(folder, *arguments), capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    return said


def disturb(arguments: list[str], act: Callable[[int], None]) -> tuple[int, str]:
    """Run a training, `act` on its pid at its first iteration, and return exit code and output."""
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    watchdog = threading.Timer(300.0, process.kill)
    watchdog.start()
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith('iteration 1 '):
            act(process.pid)
    watchdog.cancel()
    return process.wait(), ''.join(lines)


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / f'{name}.json').read_text())


def checkpoint(folder: Path, name: str) -> Any:
    import torch

    return torch.load(folder / 'checkpoints' / name, weights_only=True)
