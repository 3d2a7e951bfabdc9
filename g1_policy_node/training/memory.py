"""How much device memory a training run takes, at four boundaries, and what for."""

import math
import resource
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

BOUNDARIES = ('start', 'environment', 'first_rollout', 'first_update')
"""Before anything; with the environment made; after the first rollout; after the first update."""

FLOAT = 4


class Layout(NamedTuple):
    """The sizes that decide what each tensor weighs."""

    num_envs: int
    steps: int
    observation: int
    critic_observation: int
    action: int
    parameters: int


class MemoryLog:
    """Measures at boundaries, in bytes; on the cpu only the process's own memory is known."""

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        self.boundaries: dict[str, dict[str, Any]] = {}

    def measure(self, name: str) -> None:
        """Take the boundary `name` once. It synchronizes, and starts the peaks anew."""
        if name in self.boundaries:
            return
        host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        row: dict[str, Any] = {'host_peak': host}
        if self._device.type == 'cuda':
            row.update(_cuda(self._device))
        self.boundaries[name] = row

    @property
    def peak_device_gb(self) -> float | None:
        """The most the driver saw in use at a boundary, by anyone, in 10^9 bytes; None on a cpu.

        Torch and Warp keep what they have had, so a boundary does not miss what came before it.
        """
        used = [row['driver_used'] for row in self.boundaries.values() if 'driver_used' in row]
        return max(used) / 1e9 if used else None

    def report(self, layout: Layout) -> dict[str, Any]:
        """Return the boundaries, what tensors should weigh, and what is neither."""
        expected = expected_bytes(layout)
        last = self.boundaries.get(BOUNDARIES[-1], {})
        first = self.boundaries.get(BOUNDARIES[0], {})
        neither = None
        if 'driver_used' in last and 'driver_used' in first:
            used = last['driver_used'] - first['driver_used']
            neither = {
                'grown_since_start': used,
                'torch_reserved': last['torch_reserved'],
                'warp_pool': last['warp_pool'],
                'left': used - last['torch_reserved'] - (last['warp_pool'] or 0),
                'torch_allocated_beyond_expected': last['torch_allocated']
                - sum(expected.values()),
            }
        return {
            'unit': 'bytes',
            'device': str(self._device),
            'layout': layout._asdict(),
            'boundaries': self.boundaries,
            'expected': expected,
            'neither': neither,
        }


def expected_bytes(layout: Layout) -> dict[str, int]:
    """Return what each group of tensors should weigh by its shape, float32 but for the dones."""
    n, t, a = layout.num_envs, layout.steps, layout.action
    # The actor's row of the tick before is kept too.
    observations = 2 * layout.observation + layout.critic_observation
    scalars = 5  # reward, value, log probability, return, advantage
    distribution = 2 * a  # mean and standard deviation
    row = FLOAT * (observations + a + distribution + scalars) + 1  # and a byte of done
    return {
        'observation': FLOAT * n * observations,
        'action': FLOAT * n * a,
        'rollout': n * t * row,
        'parameters': FLOAT * layout.parameters,
        'gradients': FLOAT * layout.parameters,
        'optimizer': 2 * FLOAT * layout.parameters,
    }


def fit_model(used: Mapping[int, float]) -> dict[str, float]:
    """Return `fixed + k * num_envs` of least squares through bytes used by num_envs."""
    count = len(used)
    mean_n, mean_b = sum(used) / count, sum(used.values()) / count
    spread = sum((n - mean_n) ** 2 for n in used)
    k = sum((n - mean_n) * (b - mean_b) for n, b in used.items()) / spread
    fixed = mean_b - k * mean_n
    worst = max(abs(fixed + k * n - b) for n, b in used.items())
    return {'fixed': fixed, 'k': k, 'largest_error': worst}


def envs_that_fit(model: Mapping[str, float], free: float) -> int:
    """Return how many robots fit into `free` bytes by the model; 0 if none do."""
    return max(0, math.floor((free - model['fixed']) / model['k']))


def _cuda(device: torch.device) -> dict[str, Any]:
    # Through NVML, as nvidia-smi: it is asked before torch makes its own context at the start.
    used = torch.cuda.device_memory_used(device)
    torch.cuda.synchronize(device)
    free, total = torch.cuda.mem_get_info(device)
    row = {
        'driver_used': used,
        'driver_free': total - used,
        'driver_total': total,
        'free_with_context': free,
        'torch_allocated': torch.cuda.memory_allocated(device),
        'torch_reserved': torch.cuda.memory_reserved(device),
        'torch_allocated_peak': torch.cuda.max_memory_allocated(device),
        'torch_reserved_peak': torch.cuda.max_memory_reserved(device),
        'warp_pool': _warp_pool(str(device)),
    }
    torch.cuda.reset_peak_memory_stats(device)
    return row


def _warp_pool(device: str) -> int | None:
    """Return what Warp's own memory pool holds; None before Warp is in use."""
    import sys

    warp: Any = sys.modules.get('warp')
    if warp is None or not warp.is_mempool_supported(device):
        return None
    return int(warp.get_mempool_used_mem_current(device))
