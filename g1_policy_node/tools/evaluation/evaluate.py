"""`g1-policy evaluate`: runs every case of a plan for each policy, and says what came out."""

import dataclasses
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
from rich.console import Console
from rich.progress import Progress

from g1_policy_node.bringup import ONE_THREAD
from g1_policy_node.bundle import Bundle, load_bundle, resolve_bundle, write_evaluation
from g1_policy_node.paths import find_data
from g1_policy_node.run_folder import beginning, create_run_folder, finite, write_json
from g1_policy_node.tools.evaluation.figures import figures_of, run_figures, summarize
from g1_policy_node.tools.evaluation.page import write_page
from g1_policy_node.tools.evaluation.plan import Case, Plan, cases, load_plan, quick
from g1_policy_node.tools.evaluation.rollout import Bench
from g1_policy_node.tools.evaluation.table import show
from g1_policy_node.tools.evaluation.verdict import bar_of, judge
from g1_policy_node.tools.manifest import manifest, usable_cores
from g1_policy_node.tools.parts import NO_PARTS
from g1_policy_node.types import UserError

PLAN = 'config/evaluation.yaml'
PLAIN_PERIOD = 10.0
"""Seconds between two lines of progress where there is no terminal."""

Task = tuple[str, Case]
Row = dict[str, Any]


class Request(NamedTuple):
    """The command line; `bar` empty judges nothing, `jobs` 0 is a process per usable core."""

    policies: tuple[str, ...]
    plan: Path | None = None
    bar: str = ''
    quick: bool = False
    jobs: int = 0
    write: bool = False
    run_dir: str = ''


def evaluate(request: Request, console: Console | None = None) -> int:
    """Evaluate, write the run's folder, show the figures; 1 if a policy is below the bar."""
    console = console or Console()
    if request.jobs < 0:
        raise UserError(f'--jobs: {request.jobs} processes')
    if request.quick and (request.write or request.bar):
        raise UserError('--quick judges nothing, so it goes with neither --bar nor --write')
    plan = load_plan(request.plan or find_data(PLAN))
    bar = bar_of(plan, request.bar, figures_of(plan)) if request.bar else {}
    if request.quick:
        plan = quick(plan)
    bundles = [load_bundle(resolve_bundle(name)) for name in dict.fromkeys(request.policies)]
    run = _started(request)
    rows = _run(bundles, plan, request.jobs or usable_cores() or 1, console)
    policies = [
        {'name': name, **_policy(bundle, rows[str(bundle.path)], plan, bar)}
        for name, bundle in zip(_names(bundles), bundles, strict=True)
    ]
    summary = {
        'kind': 'evaluation',
        'quick': request.quick,
        'simulator': {'name': 'mujoco', 'version': mujoco.__version__},
        'plan': dataclasses.asdict(plan),
        'plan_sha256': plan.sha256,
        'bar': request.bar if bar else None,
        'policies': policies,
    }
    run_dir = Path(run['run_dir'])
    write_json(run_dir / 'summary.json', summary)
    write_json(run_dir / 'runs.json', {str(b.path): rows[str(b.path)] for b in bundles})
    made = manifest(NO_PARTS._replace(plan=run))
    write_json(run_dir / 'manifest.json', made)
    write_page(run_dir, finite(summary), made, plan, [rows[str(b.path)] for b in bundles])
    if request.write:
        for bundle, policy in zip(bundles, policies, strict=True):
            write_evaluation(bundle, _for_manifest(summary, policy, run))
    return 0 if show(summary, plan, run_dir, console) else 1


def _started(request: Request) -> dict[str, Any]:
    return {
        **beginning(sys.argv),
        'options': {**request._asdict(), 'plan': str(request.plan or PLAN)},
        'run_dir': str(create_run_folder(request.run_dir, 'evaluate')),
    }


def _names(bundles: Sequence[Bundle]) -> list[str]:
    """Return the folders' names, with as many of their parents as tell them apart."""
    parts = [bundle.path.resolve().parts for bundle in bundles]
    for count in range(1, max(map(len, parts))):
        names = ['/'.join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            break
    return names


def _policy(
    bundle: Bundle, rows: Sequence[Row], plan: Plan, bar: Mapping[str, float]
) -> dict[str, Any]:
    """Return everything about one policy; `accepted` is None where no bar was asked for."""
    result = summarize(rows, plan, bundle.contract.joint_names)
    criteria = judge(result['figures'], bar)
    return {
        'policy': str(bundle.path),
        'weights_sha256': bundle.weights_sha256,
        'contract_sha256': bundle.contract_sha256,
        **result,
        'criteria': [{**c._asdict(), 'met': c.met} for c in criteria],
        'accepted': all(c.met for c in criteria) if bar else None,
    }


def _for_manifest(
    summary: Mapping[str, Any], policy: Mapping[str, Any], run: Mapping[str, Any]
) -> Any:
    """Return what a bundle keeps of its evaluation."""
    return finite(
        {
            'evaluated_utc': run['started_utc'],
            **{key: summary[key] for key in ('simulator', 'plan_sha256', 'bar')},
            **{key: policy[key] for key in ('accepted', 'figures', 'conditions')},
        }
    )


# --- runs, in processes of their own ----------------------------------------------------------


def _run(
    bundles: Sequence[Bundle], plan: Plan, jobs: int, console: Console
) -> dict[str, list[Row]]:
    """Return the rows of every policy, by its path, in the order of the cases."""
    tasks = [(str(bundle.path), case) for bundle in bundles for case in cases(plan)]
    rows: dict[str, list[Row]] = {str(bundle.path): [] for bundle in bundles}
    os.environ.update(ONE_THREAD)  # for the processes to come; the cores are taken
    context = multiprocessing.get_context('spawn')
    with context.Pool(min(jobs, len(tasks)), _prepare, (plan,)) as pool:
        results = pool.imap(_work, tasks)
        for (path, _), row in zip(tasks, _shown(results, len(tasks), console), strict=True):
            rows[path].append(row)
    return rows


def _shown(results: Iterator[Row], total: int, console: Console) -> Iterator[Row]:
    """Pass the rows on and show how many there are."""
    if console.is_terminal:
        with Progress(console=console, transient=True) as progress:
            yield from progress.track(results, total=total, description='walks')
        return
    told = time.monotonic()
    for count, row in enumerate(results, 1):
        if time.monotonic() - told > PLAIN_PERIOD:
            told = time.monotonic()
            console.print(f'{count} of {total} walks', highlight=False)
        yield row


_plan: Plan
_benches: dict[str, tuple[Bundle, Bench]] = {}


def _prepare(plan: Plan) -> None:
    """Begin a worker process."""
    global _plan
    _plan = plan


def _work(task: Task) -> Row:
    """Run one case in a worker process, which keeps its policies and robots for the next."""
    path, case = task
    if path not in _benches:
        bundle = load_bundle(Path(path))
        _benches[path] = bundle, Bench(bundle, _plan)
    bundle, bench = _benches[path]
    return run_figures(case, bench.run(case), bundle.contract, _plan.settling)
