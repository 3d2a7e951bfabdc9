"""Says why a training run ran out of device memory, and what would fit."""

import re
from collections.abc import Mapping
from typing import Any

import torch

from g1_policy_node.paths import data_root
from g1_policy_node.schema import read_yaml
from g1_policy_node.training.memory import Layout, envs_that_fit, expected_bytes

MEASURED = 'config/gpu_memory.yaml'
"""The model bytes = fixed + k * num_envs, from the last sweep on a GPU."""

_REQUESTED = (
    re.compile(r'Tried to allocate ([\d.]+) ([KMG]?i?B)'),  # torch
    re.compile(r'[Ff]ailed to allocate (\d+) (bytes)'),  # Warp
)
_UNITS = {'bytes': 1, 'B': 1, 'KiB': 2**10, 'MiB': 2**20, 'GiB': 2**30}


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether torch or Warp could not get device memory."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        'out of memory' in text or 'failed to allocate' in text
    )


def diagnose(error: BaseException, stage: str, layout: Layout, free_before: int | None) -> Any:
    """Return the diagnosis as plain data; bytes. Call it before anything is freed.

    `free_before` is what the device had free before the run.
    """
    sizes = expected_bytes(layout)
    free = torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else None
    model = measured_model()
    fits = envs_that_fit(model, free_before) if model and free_before is not None else None
    return {
        'stage': stage,
        'num_envs': layout.num_envs,
        'requested': requested_bytes(str(error)),
        'free': free,
        'free_before': free_before,
        'largest': dict(sorted(sizes.items(), key=lambda item: -item[1])[:3]),
        'model': model,
        'num_envs_that_fits': fits,
        'message': ' '.join(str(error).split())[:300],
    }


def describe(found: Mapping[str, Any]) -> list[str]:
    """Return a diagnosis as lines for people."""
    largest = ', '.join(f'{name} {_mib(size)}' for name, size in found['largest'].items())
    asked = 'an unknown amount' if found['requested'] is None else _mib(found['requested'])
    free = 'unknown' if found['free'] is None else _mib(found['free'])
    lines = [
        f'out of device memory in stage {found["stage"]} with {found["num_envs"]} robots: '
        f'{asked} asked for, {free} free',
        f'largest tensors of training by shape: {largest}; the rest is the simulation',
    ]
    if found['num_envs_that_fits'] is None:
        return [*lines, 'what would fit is not known: measure it with g1-policy train --sweep']
    model, fits = found['model'], found['num_envs_that_fits']
    what = f'--num-envs {fits}' if fits else 'not even one robot'
    return [
        *lines,
        f'{what} would fit by the measured model '
        f'{_mib(model["fixed"])} + {model["k"] / 2**20:.3f} MiB * num_envs',
    ]


def requested_bytes(message: str) -> int | None:
    """Return how many bytes an allocator says it was asked for; None where it does not say."""
    for pattern in _REQUESTED:
        if found := pattern.search(message):
            return round(float(found[1]) * _UNITS[found[2]])
    return None


def measured_model() -> dict[str, float] | None:
    """Return the measured model, None where there has been no sweep."""
    path = data_root() / MEASURED
    if not path.is_file():
        return None
    data = read_yaml(path)
    assert isinstance(data, dict)
    return {'fixed': float(data['fixed']), 'k': float(data['k'])}


def _mib(size: float) -> str:
    return f'{size / 2**20:,.0f} MiB'
