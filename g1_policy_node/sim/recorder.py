"""Keeps the truth about a run at the policy's rate, and writes it as sim.npz and sim.json."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from g1_policy_node.run_folder import write_json
from g1_policy_node.sim.protocol import Snapshot
from g1_policy_node.types import Array, UserError


class Moment(NamedTuple):
    """One row: `time` s of simulation, `mono_ns` steady clock, `tick_ns` tick clock.

    `target` (N,) rad is what the motors follow, nan while they damp. `running` says whether the
    policy node is in RUN or HOLD.
    """

    time: float
    mono_ns: int
    tick_ns: int
    target: Array
    damping: bool
    hoisted: bool
    running: bool


_TRUTH = ('position', 'quat_xyzw', 'lin_vel', 'ang_vel', 'joint_pos', 'joint_vel')


class Recorder:
    """Collects rows in memory, about 45 kB a second at 50 Hz; `save` writes them to `run_dir`."""

    def __init__(self, run_dir: Path) -> None:
        try:
            run_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f'run_dir: {run_dir} cannot be made ({error.strerror})') from None
        self._run_dir = run_dir
        self._moments: list[Moment] = []
        self._snapshots: list[Snapshot] = []
        self.transport_ns: list[int] = []

    def add(self, moment: Moment, snapshot: Snapshot) -> None:
        """Keep one row."""
        self._moments.append(moment)
        self._snapshots.append(snapshot)

    def save(self, facts: Mapping[str, Any]) -> None:
        """Write sim.npz and sim.json, each as a whole or not at all."""
        columns: dict[str, Any] = {
            name: np.array([getattr(row, name) for row in self._moments])
            for name in Moment._fields
        }
        for name in _TRUTH:
            columns[name] = np.array([getattr(row, name) for row in self._snapshots])
        columns['transport_ns'] = np.array(self.transport_ns, dtype=np.int64)
        partial = self._run_dir / 'sim.npz.partial'
        with partial.open('wb') as file:
            np.savez_compressed(file, **columns)
        partial.replace(self._run_dir / 'sim.npz')
        write_json(self._run_dir / 'sim.json', facts)
