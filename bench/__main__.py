"""`make bench`: measures every arm in turn and writes runs/<time>-bench/.

`--write-docs RUN` puts a run's table into docs/performance.md and the READMEs instead.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from bench import arms
from bench.measure import figures, samples
from bench.plan import Experiment, experiments
from bench.session import dump, machine, run_session
from bench.summary import describe, pooled
from g1_policy_node.bringup import ONE_THREAD
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.run_folder import create_run_folder, write_json
from g1_policy_node.tools.bundle_export import export_bundle
from g1_policy_node.types import UserError

Got = dict[tuple[str, str, int], dict[str, dict[int, float]]]
"""Values by (experiment, figure, point), then arm, then pass."""
Turn = tuple[int, int, str]
"""Pass, point and arm of a session."""
SMOKE = {'pairs': 1, 'seconds': 2.0, 'rss_minutes': 0.0}


class Bench:
    """Runs experiments and keeps what they give; every experiment's end is saved."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder, self.pairs, self.seconds = folder, options.pairs, options.seconds
        self.started, self.host = time.time(), machine()
        self.figures: dict[str, Any] = {}
        self.growth: dict[str, Any] = {}
        self.samples: dict[str, dict[str, list[float]]] = {}
        self.failures: list[str] = []
        self.refused: dict[str, str] = {}

    def run(self, chosen: list[Experiment]) -> None:
        """Run each; a session that fails is told, noted, and left out."""
        left = sum(planned_s(e, self.pairs, self.seconds) for e in chosen)
        for experiment in chosen:
            values: Got = {}
            try:
                for group in groups(experiment, self.pairs):
                    names = ' '.join(dict.fromkeys(arms.TITLES[arm] for *_, arm in group))
                    tell(f'{experiment.name}: {names}; about {left / 60:.0f} min left')
                    self._run_group(experiment, group, values)
                    left -= experiment.session_s(self.seconds)
            finally:  # also what an interrupt leaves
                self._conclude(experiment, values)
                write_json(self.folder / 'summary.json', self.summary())
        tell('')

    def summary(self) -> dict[str, Any]:
        """Return what summary.json holds, so far."""
        return {
            'machine': {**self.host, 'minutes': (time.time() - self.started) / 60},
            'pairs': self.pairs,
            'seconds': self.seconds,
            'figures': self.figures,
            'pooled': pooled(self.samples),
            'growth': self.growth,
            'failures': self.failures,
            'refused': self.refused,
        }

    def _run_group(self, experiment: Experiment, group: list[Turn], values: Got) -> None:
        """Run the sessions of a group at the same time: one, but for a slope."""
        with ThreadPoolExecutor(len(group)) as pool:
            running = []
            for turn in group:
                running.append(pool.submit(self._one, experiment, *turn))
                time.sleep(2.0 * (len(group) > 1))  # each finds a domain of its own
            while wait(running, timeout=60.0).not_done:
                tell(f'{experiment.name}: still running')
        for (pair, point, arm), done in zip(group, running, strict=True):
            for name, value in done.result().items():
                held = values.setdefault((experiment.name, name, point), {})
                held.setdefault(arm, {})[pair] = value

    def _one(self, experiment: Experiment, pair: int, point: int, arm: str) -> dict[str, float]:
        if arm in self.refused:
            return {}
        seconds = self.seconds * experiment.share
        folder = self.folder / experiment.name / f'{point}-{pair}-{arm}'.replace(' ', '_')
        condition = experiment.points[point]
        try:
            if not isinstance(condition, arms.Condition):
                return {experiment.name: _offline(experiment.name, arm, seconds, condition)}
            session = run_session(arm, condition, folder, seconds)
            (folder / 'session.json').write_text(dump(session))
            got = dict(figures(session))
            if experiment.name == 'tick':
                for name, new in samples(session).items():
                    self.samples.setdefault(name, {}).setdefault(arm, []).extend(new)
        except Exception as error:  # whatever fails must not take the other sessions along
            self._note(experiment, pair, arm, folder, error)
            return {}
        return got

    def _note(
        self, experiment: Experiment, pair: int, arm: str, folder: Path, error: Exception
    ) -> None:
        """Note why a session is left out; an option that the host refuses is not tried again."""
        if arm in arms.OPTIONS and (line := refusal(folder / 'arm0.log')):
            self.refused[arm] = line
            print(f'\n  refused by this host: {line}', file=sys.stderr)
            return
        why = str(error) or repr(error)
        self.failures.append(f'{experiment.name}, {arms.TITLES[arm]}, pass {pair + 1}: {why}')
        print(f'\n  left out: {why}', file=sys.stderr)

    def _conclude(self, experiment: Experiment, values: Got) -> None:
        passes = range(min(self.pairs, experiment.passes or self.pairs))

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


def _offline(what: str, arm: str, seconds: float, frames: int) -> float:
    line = [sys.executable, '-m', 'bench.offline', what, arm, str(seconds), str(frames)]
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=120)
    if done.returncode:
        raise UserError(f'{what} ended with {done.returncode}: {done.stderr.strip()[-200:]}')
    return float(done.stdout)


def refusal(log: Path) -> str:
    """Return why the router did not configure, '' where it says nothing about that."""
    text = log.read_text() if log.exists() else ''
    lines = [line.partition('not configured: ')[2] for line in text.splitlines()]
    return next(filter(None, lines), '')


def turns(experiment: Experiment, pairs: int) -> Iterator[Turn]:
    """Return (pass, point, arm) in order: A B, B A, A B ... so that drift hits all alike."""
    for pair in range(min(pairs, experiment.passes or pairs)):
        for point in range(len(experiment.points)):
            order = experiment.arms if pair % 2 == 0 else experiment.arms[::-1]
            for arm in order:
                yield pair, point, arm


def groups(experiment: Experiment, pairs: int) -> list[list[Turn]]:
    """Return the turns that run at the same time: one each, or all of them."""
    every = list(turns(experiment, pairs))
    return [every] if experiment.together else [[turn] for turn in every]


def planned_s(experiment: Experiment, pairs: int, seconds: float) -> float:
    """Return roughly how long an experiment takes."""
    return experiment.session_s(seconds) * len(groups(experiment, pairs))


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
    export_bundle(load_bundle(resolve_bundle('g1_walk')), 'onnx', folder / 'onnx')
    os.environ['BENCH_ONNX'] = str(folder / 'onnx' / 'policy.onnx')  # For honest stock.
    runner = Bench(folder, options)
    try:
        runner.run(chosen)
    except KeyboardInterrupt:
        runner.failures.append('interrupted: the rest was not measured')
    summary = runner.summary()
    write_json(folder / 'summary.json', summary)
    write_report(folder, summary, runner.samples)
    print(text_table(summary))
    print(f'\n{folder}/report.html')
    return 1 if runner.failures else 0


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog='bench', description=__doc__)
    parser.add_argument('--pairs', type=int, default=5, help='pairs of sessions (5)')
    parser.add_argument('--seconds', type=float, default=8.0, help='of a session (8)')
    parser.add_argument('--only', default='', help='experiments or figures, such as lateness,swap')
    parser.add_argument('--rss-minutes', type=float, default=10.0, help='of the RSS slope (10)')
    parser.add_argument('--smoke', action='store_true', help='one short pair, to see that it runs')
    parser.add_argument('--run-dir', default='', help='folder; empty: a new one under runs/')
    parser.add_argument('--write-docs', metavar='RUN', help="write a run's table into the docs")
    options = parser.parse_args()
    if options.smoke:
        vars(options).update(SMOKE)
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
