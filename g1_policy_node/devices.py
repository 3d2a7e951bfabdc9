"""Which devices this machine has, and the actors prepared on them."""

import ctypes
import re
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.actor import Actor
from g1_policy_node.types import UserError

RECHECK_EVERY = 8
"""A switch compares every 8th golden action: other requests wait behind it, less than a period."""

_NAME = re.compile(r'cpu|cuda:\d{1,3}')


def cuda_device_count() -> int:
    """Return how many CUDA devices the NVIDIA driver shows; 0 where there is no driver.

    Asked of the driver itself, as importing torch takes seconds.
    """
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
        raise UserError(f'device {device!r:.80} is neither cpu nor cuda:N')
    return device


def prepared_devices(requested: Sequence[str]) -> tuple[str, ...]:
    """Return the devices to load: ['auto'] means cpu and every CUDA device the driver shows.

    The cpu is always among them. Raises UserError for a name that is no device.
    """
    if list(requested) == ['auto']:
        return ('cpu', *(f'cuda:{i}' for i in range(cuda_device_count())))
    return tuple(dict.fromkeys(('cpu', *map(check_device_name, requested))))


class ActorPool:
    """The actors of every prepared device: loaded, warmed and checked before arming.

    `load` builds a warm actor on a device; `check` returns its largest difference from every
    n-th golden action, or raises UserError; `predict` returns the p99 in s to expect of a pass on
    it. A device above `budget` s is refused; the cpu, which has to be there when another fails, is
    not asked. `differences` and `predicted` keep what they said.
    """

    def __init__(
        self,
        devices: Sequence[str],
        load: Callable[[str], Actor],
        check: Callable[[Actor, int], float],
        predict: Callable[[Actor], float],
        budget: float,
    ) -> None:
        self._check = check
        self._budget = budget
        self._actors = {device: load(device) for device in devices}
        self.differences = {device: check(actor, 1) for device, actor in self._actors.items()}
        self.predicted = {
            device: predict(actor) for device, actor in self._actors.items() if device != 'cpu'
        }

    def get(self, device: str) -> Actor:
        """Return the actor on `device`; UserError, with the reason, if none was prepared."""
        check_device_name(device)
        if device in self._actors:
            self._refuse_slow(device)
            return self._actors[device]
        prepared = ', '.join(self._actors)
        count = cuda_device_count()
        if not count:
            raise UserError(f'{device}: no NVIDIA driver or device here (prepared: {prepared})')
        if int(device.removeprefix('cuda:')) >= count:
            raise UserError(f'{device}: the driver shows {count} (prepared: {prepared})')
        raise UserError(f'{device}: not prepared at start, see devices (prepared: {prepared})')

    def recheck(self, device: str, in_use: str) -> None:
        """Compare the actions of `device` once more before it takes over from `in_use`."""
        actor = self.get(device)
        if device == in_use:
            return
        try:
            self._check(actor, RECHECK_EVERY)
        except RuntimeError as error:  # a device that once failed may never answer again
            said = (str(error).splitlines() or [repr(error)])[0]
            raise UserError(f'{device} cannot be used: {said}') from None

    def _refuse_slow(self, device: str) -> None:
        p99 = self.predicted.get(device, 0.0)
        if p99 > self._budget:
            raise UserError(
                f'{device}: predicted p99 of {p99 * 1e3:.2f} ms is over the budget of '
                f'{self._budget * 1e3:g} ms'
            )


def predicted_p99(
    actor: Actor,
    rows: NDArray[np.float32],
    period: float,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Return the p99 in s of passes over `rows` (T, n), one every `period` s.

    A tight loop would say several times less than what a tick will see: caches and clocks cool
    down in between.
    """
    spent = []
    for row in rows:
        sleep(period)
        began = clock()
        actor(row)
        spent.append(clock() - began)
    return float(np.percentile(spent, 99))
