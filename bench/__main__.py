"""`make bench`: measures every arm in turn and writes runs/<time>-bench/.

`--write-docs RUN` puts a run's table into docs/performance.md and the READMEs instead.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import arms
from bench.measure import figures, samples
from bench.plan import Experiment, experiments
from bench.session import dump, machine, run_session
from bench.summary import describe, pooled
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.run_folder import create_run_folder, write_json
from g1_policy_node.tools.bundle_export import export_bundle
from g1_policy_node.types import UserError

Got = dict[tuple[str, str, int], dict[str, dict[int, float]]]
"""Values by (experiment, figure, point), then arm, then pass."""


class Bench:
    """Runs experiments and keeps what they give."""

    def __init__(self, folder: Path, pairs: int, seconds: float) -> None:
        self.folder, self.pairs, self.seconds = folder, pairs, seconds
        self.figures: dict[str, Any] = {}
        self.growth: dict[str, Any] = {}
        self.samples: dict[str, dict[str, list[float]]] = {}
        self.failures: list[str] = []

    def run(self, chosen: list[Experiment]) -> None:
        """Run each; a session that fails is told, noted, and left out."""
        plan = [(e, *step) for e in chosen for step in turns(e, self.pairs)]
        left = [e.session_s(self.seconds) for e, *_ in plan]
        values: Got = {}
        for i, (experiment, pair, point, arm) in enumerate(plan):
            minutes = sum(left[i:]) / 60
            tell(
                f'{i + 1}/{len(plan)}  {experiment.name}  {arms.TITLES[arm]}, '
                f'pass {pair + 1}, about {minutes:.0f} min left'
            )
            got = self._one(experiment, pair, point, arm)
            for name, value in got.items():
                held = values.setdefault((experiment.name, name, point), {})
                held.setdefault(arm, {})[pair] = value
        tell('')
        for experiment in chosen:
            self._conclude(experiment, values)

    def _one(self, experiment: Experiment, pair: int, point: int, arm: str) -> dict[str, float]:
        seconds = self.seconds * experiment.share
        folder = self.folder / experiment.name / f'{point}-{pair}-{arm}'
        condition = experiment.points[point]
        if not isinstance(condition, arms.Condition):
            return {experiment.name: self._offline(experiment.name, arm, seconds, condition)}
        try:
            session = run_session(arm, condition, folder, seconds)
            (folder / 'session.json').write_text(dump(session))
            got = dict(figures(session))
            if experiment.name == 'tick':
                for name, new in samples(session).items():
                    self.samples.setdefault(name, {}).setdefault(arm, []).extend(new)
        except (UserError, OSError) as error:
            self.failures.append(f'{experiment.name}, {arm}, pass {pair + 1}: {error}')
            print(f'\n  left out: {error}', file=sys.stderr)
            return {}
        return got

    def _offline(self, what: str, arm: str, seconds: float, frames: int) -> float:
        line = [sys.executable, '-m', 'bench.offline', what, arm, str(seconds), str(frames)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        return float(done.stdout)

    def _conclude(self, experiment: Experiment, values: Got) -> None:
        passes = range(experiment.passes or self.pairs)

        def found(name: str, point: int) -> dict[str, list[float | None]]:
            got = values.get((experiment.name, name, point), {})
            return {arm: [got.get(arm, {}).get(p) for p in passes] for arm in experiment.arms}

        for name in experiment.figures():
            there = found(name.removeprefix(f'{experiment.name}.'), 0)
            there = {arm: v for arm, v in there.items() if any(x is not None for x in v)}
            if there:
                self.figures[name] = describe(name, there)
        if not experiment.growing:
            return
        curves = {}
        for name, title in experiment.growing:
            points = [found(name, point) for point in range(len(experiment.points))]
            by_arm = {arm: [point[arm] for point in points] for arm in experiment.arms}
            curves[name] = {'title': title, 'arms': by_arm}
        self.growth[experiment.name] = {
            'x': experiment.x,
            'x_title': experiment.x_title,
            'figures': curves,
        }


def turns(experiment: Experiment, pairs: int) -> Iterator[tuple[int, int, str]]:
    """Return (pass, point, arm) in order: A B, B A, A B ... so that drift hits all alike."""
    for pair in range(experiment.passes or pairs):
        for point in range(len(experiment.points)):
            order = experiment.arms if pair % 2 == 0 else experiment.arms[::-1]
            for arm in order:
                yield pair, point, arm


def tell(line: str) -> None:
    """Show progress: in place on a terminal, else line by line."""
    if sys.stdout.isatty():
        print(f'\r{line:<78}', end='' if line else '\n', flush=True)
    elif line:
        print(line, flush=True)


def bench(options: argparse.Namespace) -> int:
    """Measure and write the run."""
    from bench.report import write_report
    from bench.table import text_table

    only = options.only.split(',') if options.only else []
    chosen = [e for e in experiments(options.rss_minutes, options.seconds) if e.is_wanted(only)]
    if not chosen:
        raise UserError(f'--only {options.only}: no experiment or figure begins so')
    folder = create_run_folder(options.run_dir, 'bench')
    started, host = time.time(), machine()
    export_bundle(load_bundle(resolve_bundle('g1_walk')), 'onnx', folder / 'onnx')
    os.environ['BENCH_ONNX'] = str(folder / 'onnx' / 'policy.onnx')  # For honest stock.
    runner = Bench(folder, options.pairs, options.seconds)
    runner.run(chosen)
    summary = {
        'machine': {**host, 'minutes': (time.time() - started) / 60},
        'pairs': options.pairs,
        'seconds': options.seconds,
        'figures': runner.figures,
        'pooled': pooled(runner.samples),
        'growth': runner.growth,
        'failures': runner.failures,
    }
    write_json(folder / 'summary.json', summary)
    write_report(folder, summary, runner.samples)
    print(text_table(summary))
    print(f'\n{folder}/report.html')
    return 1 if runner.failures else 0


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog='bench', description=__doc__)
    parser.add_argument('--pairs', type=int, default=5, help='pairs of sessions (5)')
    parser.add_argument('--seconds', type=float, default=10.0, help='of a session (10)')
    parser.add_argument('--only', default='', help='experiments or figures, such as lateness,swap')
    parser.add_argument('--rss-minutes', type=float, default=0.0, help='also measure RSS slope')
    parser.add_argument('--run-dir', default='', help='folder; empty: a new one under runs/')
    parser.add_argument('--write-docs', metavar='RUN', help="write a run's table into the docs")
    options = parser.parse_args()
    try:
        if options.write_docs:
            from bench.table import write_docs

            write_docs(Path(options.write_docs))
            return 0
        if options.pairs < 1 or options.seconds <= 0:
            raise UserError('--pairs and --seconds must be positive')
        return bench(options)
    except UserError as error:
        print(f'bench: {error}', file=sys.stderr)
        return 2


if __name__ == '__main__':
    sys.exit(main())
