"""Keeps a 500 Hz loop in Python on time, as far as the kernel allows."""

import gc
import os

_PRIORITY = 80


def make_urgent() -> bool:
    """Turn this thread real-time and garbage collection off; False where that is not allowed.

    Collection goes for good: what the loop makes, it lets go of without cycles.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except PermissionError:
        return False
    return True
