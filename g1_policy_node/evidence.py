"""What the node leaves on disk: its part of a run's folder, and what a trip's file says of it."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from g1_policy_node.journal import SUFFIX, Journal
from g1_policy_node.loop import ControlLoop
from g1_policy_node.prepared import Prepared, versions
from g1_policy_node.run_folder import write_json
from g1_policy_node.timing import Recorder


def trip_facts(prepared: Prepared) -> dict[str, Any]:
    """Return what identifies the policy of a trip, its limits and counters."""
    return {
        **prepared.facts(),
        'counters': prepared.counters(),
        'joint_names': list(prepared.bundle.contract.joint_names),
        'observation': prepared.router.safety.trained.labels,
        'limits': asdict(prepared.router.safety.limits),
    }


def run_facts(prepared: Prepared, recorder: Recorder, loop: ControlLoop) -> dict[str, Any]:
    """Return what node.json says about a run."""
    return {
        **prepared.facts(),
        **prepared.device_facts(),
        'ticks': recorder.rows,
        'slots': loop.misses.slots,
        'deadline_misses': loop.misses.misses,
        'longest_gap_ms': loop.misses.longest_gap * prepared.bundle.contract.step_dt * 1e3,
        'counters': prepared.counters(),
        'trips': loop.box.trips,
        'realtime': loop.realtime._asdict(),
        'versions': versions(),
    }


class RunPart:
    """The node's part of `folder`: the ticks as they come, timing.npz and node.json at the end.

    `name` tells its journal from that of a node that was killed here before.
    """

    def __init__(
        self, folder: Path, name: str, recorder: Recorder, log: Callable[[str], None]
    ) -> None:
        self._folder, self._log = folder, log
        self._journal = Journal(recorder, folder / f'timing-{name}{SUFFIX}', log)

    def write(self, facts: dict[str, Any]) -> None:
        """Write both files; what cannot be written is told, and the robot's node goes on."""
        try:
            self._journal.save(self._folder / 'timing.npz')
            write_json(self._folder / 'node.json', facts)
        except (OSError, ValueError) as error:  # ValueError: somebody wrote into the journal
            self._log(f'run_dir {self._folder} cannot be written: {error}')

    def close(self) -> None:
        """End the journal."""
        self._journal.close()
