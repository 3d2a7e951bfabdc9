"""Measures memory and throughput over the number of robots: a short run for each, then a fit."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from g1_policy_node.run_folder import create_run_folder, write_json
from g1_policy_node.training import record
from g1_policy_node.training.memory import BOUNDARIES, fit_model
from g1_policy_node.training.options import TrainOptions
from g1_policy_node.types import UserError

ITERATIONS = 12
"""Of each run; the first two, in which kernels are compiled, do not count."""


def sweep(options: TrainOptions) -> int:
    """Run every size, fit and plot; 1 if a run failed for another reason than its memory."""
    record.require_isaaclab()
    folder = create_run_folder(options.run_dir, 'sweep')
    if (folder / 'sweep.json').exists():
        raise UserError(f'run_dir: {folder} already holds a sweep')
    rows = []
    for num_envs in options.sweep_sizes():
        rows.append(_measure(options, num_envs, folder / str(num_envs)))
        print(_line(rows[-1]), flush=True)
        write_json(folder / 'sweep.json', {'rows': rows, 'model': _model(rows)})
    plot(folder / 'sweep.json', folder / 'sweep.png')
    print(folder)
    return 0 if all(row['status'] in ('done', 'oom') for row in rows) else 1


def plot(source: Path, target: Path) -> None:
    """Draw memory and throughput over the number of robots, with the fitted model."""
    import matplotlib

    matplotlib.use('agg')
    from matplotlib import pyplot

    data = json.loads(source.read_text())
    rows = [row for row in data['rows'] if row['status'] == 'done']
    sizes = [row['num_envs'] for row in rows]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout='constrained')
    for key, label in (
        ('driver_used', 'device, beyond what was in use before'),
        ('torch_reserved_peak', 'torch reserved, peak'),
        ('torch_allocated_peak', 'torch allocated, peak'),
    ):
        if all(key in row['memory'] for row in rows):
            values = [(row['memory'][key] - row['start'][key]) / 2**30 for row in rows]
            left.plot(sizes, values, 'o-', label=label)
    if model := data['model']:
        fitted = [(model['fixed'] + model['k'] * n) / 2**30 for n in sizes]
        text = f'{model["fixed"] / 2**20:.0f} MiB + {model["k"] / 2**20:.3f} MiB per robot'
        left.plot(sizes, fitted, 'k--', label=text)
    left.set(xlabel='robots', ylabel='GiB', title='Device memory after the first update')
    left.legend(fontsize='small')
    right.plot(sizes, [row['steps_per_s'] / 1e3 for row in rows], 'o-')
    right.set(xlabel='robots', ylabel='1000 steps / s', title='Environment steps with learning')
    right.set_xscale('log', base=2)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.set_ylim(bottom=0)
    figure.savefig(target, dpi=110)
    pyplot.close(figure)


def _measure(options: TrainOptions, num_envs: int, folder: Path) -> dict[str, Any]:
    one = replace(
        options,
        num_envs=num_envs,
        iterations=options.iterations or ITERATIONS,
        bundle=False,
        sweep='',
        run_dir=str(folder),
    )
    command = [sys.executable, '-m', 'g1_policy_node.cli', 'train', *one.arguments()]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / 'log').open('w') as log:
        code = subprocess.run(command, stdout=log, stderr=log, check=False).returncode
    if code == 2:
        raise UserError((folder / 'log').read_text().strip().splitlines()[-1])
    manifest, summary, memory = (
        json.loads(path.read_text()) if path.exists() else {}
        for path in (folder / f'{name}.json' for name in ('manifest', 'summary', 'memory'))
    )
    return {
        'num_envs': num_envs,
        'status': manifest.get('status', 'failed'),
        'steps_per_s': summary.get('steps_per_s'),
        'memory': memory.get('boundaries', {}).get(BOUNDARIES[-1], {}),
        'start': memory.get('boundaries', {}).get(BOUNDARIES[0], {}),
        'gpu': manifest.get('gpu'),
    }


def _model(rows: list[dict[str, Any]]) -> dict[str, float] | None:
    """Fit what the run took from the device: used after the first update, less at the start."""
    used = {
        row['num_envs']: row['memory']['driver_used'] - row['start']['driver_used']
        for row in rows
        if row['status'] == 'done' and 'driver_used' in row['memory']
    }
    return fit_model(used) if len(used) > 1 else None


def _line(row: dict[str, Any]) -> str:
    used, speed = row['memory'].get('driver_used'), row['steps_per_s']
    memory = '' if used is None else f'   {used / 2**30:6.2f} GiB used on the device'
    steps = '' if speed is None else f'   {speed:10,.0f} steps/s'
    return f'{row["num_envs"]:>7} robots   {row["status"]}{steps}{memory}'
