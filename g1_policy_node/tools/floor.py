"""The floor: how late a bare absolute sleep wakes on this machine, beside everything else.

No program can keep its slots better than this one, so its misses are the machine's own.
"""

import signal
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.run_folder import write_json
from g1_policy_node.tools.spread import spread

PERIOD_NS = 20_000_000
LIVE = 'floor.live'


def measure(
    stopped: Callable[[], bool],
    now: Callable[[], int] = time.monotonic_ns,
    sleep: Callable[[float], None] = time.sleep,
    tell: Callable[[int, int], None] = lambda slots, misses: None,
) -> tuple[NDArray[np.int64], int, int]:
    """Sleep to slot after slot of 20 ms; return the lateness of each wake (ns), slots, misses.

    A slot is missed if its end passes asleep; it is then skipped, not made up for. `tell` gets
    slots and misses so far after every wake.
    """
    lateness = array('q')
    start, slot, misses = now(), 0, 0
    while not stopped():
        slot += 1
        deadline = start + slot * PERIOD_NS
        sleep(max(deadline - now(), 0) / 1e9)
        late = now() - deadline
        lateness.append(late)
        missed = max(late // PERIOD_NS, 0)
        misses += missed
        slot += missed
        tell(slot, misses)
    return np.asarray(lateness, np.int64), slot, misses


def live_counts(run_dir: Path) -> Callable[[int, int], None]:
    """Return what tells slots and misses to `read_live`, through mapped memory.

    Storing two numbers there makes no system call, so telling them costs the floor no lateness.
    """
    counts = np.memmap(run_dir / LIVE, np.int64, 'w+', shape=(2,))

    def tell(slots: int, misses: int) -> None:
        counts[:] = slots, misses

    return tell


def read_live(run_dir: Path) -> tuple[int, int] | None:
    """Return the floor's slots and misses so far, None where there is no floor."""
    try:
        slots, misses = np.fromfile(run_dir / LIVE, np.int64).tolist()
    except (OSError, ValueError):
        return None
    return slots, misses


def write_parts(run_dir: Path, lateness_ns: NDArray[np.int64], slots: int, misses: int) -> None:
    """Write floor.npz (lateness_ns) and floor.json (slots, misses, lateness_us)."""
    partial = run_dir / 'floor.partial.npz'
    np.savez(partial, lateness_ns=lateness_ns)
    partial.replace(run_dir / 'floor.npz')
    figures = {'slots': slots, 'misses': misses, 'lateness_us': spread(lateness_ns / 1e3)}
    write_json(run_dir / 'floor.json', figures)


def main() -> None:
    """Measure until SIGINT or SIGTERM, then write the parts: `floor RUN_DIR`."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print('floor: needs one argument, the folder of a run', file=sys.stderr)
        sys.exit(2)
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: signals.append(received))
    run_dir = Path(sys.argv[1])
    write_parts(run_dir, *measure(lambda: bool(signals), tell=live_counts(run_dir)))


if __name__ == '__main__':
    main()
