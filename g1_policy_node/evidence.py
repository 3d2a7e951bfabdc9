"""What the node leaves on disk: its part of a run's folder, and what a trip's file says of it."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

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


def write_run(folder: Path, recorder: Recorder, facts: dict[str, Any]) -> None:
    """Write timing.npz and node.json; OSError where the folder cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    recorder.save(folder / 'timing.npz')
    write_json(folder / 'node.json', facts)
