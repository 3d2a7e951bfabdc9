"""Which devices this machine has, found without importing torch."""

import ctypes
import re
from collections.abc import Sequence

from g1_policy_node.types import UserError

_NAME = re.compile(r'cpu|cuda:\d+')


def cuda_device_count() -> int:
    """Return how many CUDA devices the NVIDIA driver shows; 0 where there is no driver."""
    try:
        driver = ctypes.CDLL('libcuda.so.1')
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def check_device_name(device: str) -> str:
    """Return `device` if it is 'cpu' or 'cuda:N'; UserError otherwise."""
    if not _NAME.fullmatch(device):
        raise UserError(f'device {device!r} is neither cpu nor cuda:N')
    return device


def prepared_devices(requested: Sequence[str]) -> tuple[str, ...]:
    """Return the devices to load: ['auto'] means cpu and every CUDA device the driver shows.

    The cpu is always among them. Raises UserError for a name that is no device.
    """
    if list(requested) == ['auto']:
        return ('cpu', *(f'cuda:{i}' for i in range(cuda_device_count())))
    return tuple(dict.fromkeys(('cpu', *map(check_device_name, requested))))
