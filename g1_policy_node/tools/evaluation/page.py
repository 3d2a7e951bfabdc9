"""The report of an evaluation: one self-contained page, policies side by side."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from g1_policy_node.tools.evaluation.figures import Row, figures_of
from g1_policy_node.tools.evaluation.plan import COMMANDS, STRAIGHT, UNCHANGED, Plan
from g1_policy_node.tools.evaluation.table import text, verdict
from g1_policy_node.tools.page import render, write_html

Summary = Mapping[str, Any]


def write_page(
    run_dir: Path,
    summary: Summary,
    manifest: Mapping[str, Any],
    plan: Plan,
    rows: Sequence[Sequence[Row]],
) -> Path:
    """Write report.html, whole or not at all, and return its path; `rows` are by policy."""
    figures = figures_of(plan)
    policies = summary['policies']
    limits = {c['name']: c['limit'] for c in policies[0]['criteria']}
    html = render(
        'evaluation.html',
        name=run_dir.name,
        headline=headline(summary),
        summary=summary,
        policies=policies,
        verdicts=[verdict(policy, summary, figures) for policy in policies],
        plan=plan,
        manifest=manifest,
        manifest_text=json.dumps(manifest, indent=2),
        table=[
            {
                'figure': figure,
                'cells': _cells(name, policies, limits.get(name), figure),
                'limit': text(limits[name], figure) if name in limits else '',
            }
            for name, figure in figures.items()
        ],
        limits=bool(limits),
        data=plot_data(summary, plan, rows),
    )
    return write_html(run_dir, html)


def headline(summary: Summary) -> str:
    """Return what came out, in one sentence."""
    policies, bar = summary['policies'], summary['bar']
    names = ' and '.join(
        filter(None, [', '.join(p['name'] for p in policies[:-1]), policies[-1]['name']])
    )
    if bar is None:
        return f'{names}, measured.'
    passed = [policy['name'] for policy in policies if policy['accepted']]
    if len(policies) == 1:
        return f'{names} {"passes" if passed else "is below"} the bar “{bar}”.'
    if not passed:
        return f'None of {names} passes the bar “{bar}”.'
    count = f'{len(passed)} of {len(policies)} policies'
    return f'{", ".join(passed)} passes the bar “{bar}”: {count}.'


def _cells(
    name: str, policies: Sequence[Summary], limit: float | None, figure: Any
) -> list[dict[str, Any]]:
    """Return the cells of a row: text, whether it is the best, and whether the limit is met."""
    values = [policy['figures'][name] for policy in policies]
    known = [text(value, figure) for value in values if value is not None]
    best = min(known, key=float) if len(policies) > 1 and len(set(known)) > 1 else None
    return [
        {
            'text': text(value, figure),
            'best': text(value, figure) == best,
            'met': None if limit is None else value is not None and value <= limit,
        }
        for value in values
    ]


def plot_data(summary: Summary, plan: Plan, rows: Sequence[Sequence[Row]]) -> dict[str, Any]:
    """Return what evaluation.js draws, ready for JSON."""
    policies = summary['policies']
    clean = [[r for r in runs if r['condition'] == UNCHANGED] for runs in rows]
    commands = [[r for r in runs if r['group'] in COMMANDS] for runs in clean]
    joints = list(policies[0]['joints']['torque_ratio'])
    return {
        'policies': [policy['name'] for policy in policies],
        'commands': [row['command'] for row in commands[0]],
        'errors': [[row.get('error') for row in runs] for runs in commands],
        'kicks': {
            'speeds': list(plan.kicks.speeds),
            'seeds': plan.kicks.seeds,
            'falls': [[p['figures'][f'falls_{v}'] for v in plan.kicks.speeds] for p in policies],
        },
        'joints': joints,
        'torque': [[p['joints']['torque_ratio'].get(j, 0.0) for j in joints] for p in policies],
        'paths': [
            [
                {'command': row['command'], 'path': row.get('path', [])}
                for row in runs
                if row['group'] == STRAIGHT
            ]
            for runs in commands
        ],
    }
