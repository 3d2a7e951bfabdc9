"""What an operator may ask for the control thread; nothing of it is done unasked."""

import ctypes
import os
import threading
from typing import NamedTuple

from g1_policy_node.types import UserError

_MCL_CURRENT, _MCL_FUTURE = 1, 2


class Realtime(NamedTuple):
    """SCHED_FIFO priority (0: none), CPUs to stay on (empty: any), locked memory, and prewarm.

    With `prewarm_ms` the network runs once for nothing that long before each tick (0: never).
    With `follow_arrivals` a tick starts just after a sample of the joints (phase.py).
    """

    fifo_priority: int = 0
    cpus: tuple[int, ...] = ()
    lock_memory: bool = False
    prewarm_ms: float = 0.0
    follow_arrivals: bool = False

    def check(self) -> None:
        """Do it all on a thread that ends at once; UserError says what Linux refuses."""
        refused: list[UserError] = []

        def attempt() -> None:
            try:
                self.use_for_this_thread()
            except UserError as error:
                refused.append(error)

        trial = threading.Thread(target=attempt)
        trial.start()
        trial.join()
        if refused:
            raise refused[0]
        if self.lock_memory:
            lock_memory()

    def use_for_this_thread(self) -> None:
        """Give the calling thread its CPUs and its priority; UserError if Linux refuses."""
        try:
            if self.cpus:
                os.sched_setaffinity(0, self.cpus)
        except OSError as error:
            there = ','.join(map(str, sorted(os.sched_getaffinity(0))))
            raise UserError(f'cpus: {error.strerror}; this process has {there}') from None
        try:
            if self.fifo_priority:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(self.fifo_priority))
        except OSError as error:
            raise UserError(
                f'fifo_priority {self.fifo_priority}: {error.strerror} (ulimit -r, CAP_SYS_NICE)'
            ) from None


def lock_memory() -> None:
    """Keep every page of this process in memory, until it ends; UserError if Linux refuses."""
    if ctypes.CDLL(None, use_errno=True).mlockall(_MCL_CURRENT | _MCL_FUTURE) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise UserError(f'lock_memory: {reason} (ulimit -l, CAP_IPC_LOCK)')


def read_cpus(text: str) -> tuple[int, ...]:
    """Read a list such as '1' or '2,3'; UserError for anything else."""
    items = text.split(',') if text else []
    if not all(item.strip().isdecimal() for item in items):
        raise UserError(f'cpus: {text!r} is no list of numbers, such as 2,3')
    return tuple(int(item) for item in items)
