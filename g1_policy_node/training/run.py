"""A training run: what it is made of, and what it writes down."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from g1_policy_node.bundle import Bundle
from g1_policy_node.contract import Contract
from g1_policy_node.run_folder import write_json
from g1_policy_node.training import record
from g1_policy_node.training.memory import Layout, MemoryLog
from g1_policy_node.training.options import TrainOptions
from g1_policy_node.training.overflow import OverflowWatch
from g1_policy_node.training.progress import Curve
from g1_policy_node.training.stage_times import StageTimes


@dataclass
class Run:
    """A training run: what it is made of and what it has found out so far."""

    options: TrainOptions
    contract: Contract
    config: dict[str, Any]
    device: str
    folder: Path | None
    """None in all processes but the first, which alone writes."""
    began: float
    layout: Layout
    memory: MemoryLog
    times: StageTimes
    teacher: Bundle | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    status: str = 'running'
    stage: str = 'environment'
    checkpoint: Path | None = None
    curve: Curve = field(default_factory=lambda: Curve(None))
    infos: dict[str, Any] = field(default_factory=dict)


def save_checkpoint(run: Run, runner: Any) -> Path:
    """Write a numbered checkpoint; it is there whole or not at all."""
    assert run.folder is not None
    path = run.folder / 'checkpoints' / f'model_{runner.iteration}.pt'
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix('.partial')
    torch.save(runner.state(run.infos), partial)
    partial.replace(path)
    return path


def write_evidence(run: Run, watch: OverflowWatch) -> None:
    """Write down everything that is known, however the run ended."""
    run.curve.close()
    if watch.count and run.status in ('done', 'interrupted'):
        run.status = 'invalid_physics'
    if run.folder is None:
        return
    run.manifest['status'] = run.status
    run.manifest['overflow'] = {'lines': watch.count, 'first': watch.lines}
    run.manifest['unconverged_steps'] = watch.unconverged
    run.manifest['checkpoint'] = run.checkpoint.name if run.checkpoint else None
    run.manifest['seconds'] = time.monotonic() - run.began
    write_json(run.folder / record.MANIFEST, run.manifest)
    write_json(run.folder / 'memory.json', run.memory.report(run.layout))
    record.write_curve(run.folder, run.curve.columns)
    figures = record.summary(run.curve.columns, run.infos)
    found = {
        'kind': 'train',
        'status': run.status,
        'peak_device_gb': run.memory.peak_device_gb,
        **figures,
    }
    write_json(run.folder / 'summary.json', found)
    if times := run.times.report():
        write_json(run.folder / 'stage_times.json', times)
