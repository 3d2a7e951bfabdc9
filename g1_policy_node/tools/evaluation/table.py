"""The figures of an evaluation on a terminal, policies side by side."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from g1_policy_node.schema import build
from g1_policy_node.tools.evaluation.figures import Figure, figures_of
from g1_policy_node.tools.evaluation.plan import Plan
from g1_policy_node.tools.page import NAME

Summary = Mapping[str, Any]


def show_kept(summary: Summary, run_dir: Path, console: Console) -> bool:
    """Show an evaluation that was made before, and its page as it is; False as in `show`."""
    plan: Plan = build(Plan, summary['plan'], f'{run_dir}/summary.json: plan')
    return show(summary, plan, run_dir, console)


def show(summary: Summary, plan: Plan, run_dir: Path, console: Console) -> bool:
    """Print the figures, and of every policy whether it passes the bar, or what fails.

    Return False if one is below it.
    """
    policies, figures = summary['policies'], figures_of(plan)
    limits = {c['name']: c['limit'] for c in policies[0]['criteria']}
    table = Table('', *(policy['name'] for policy in policies), box=SIMPLE)
    if limits:
        table.add_column(f'bar: {summary["bar"]}')
    for column in table.columns[1:]:
        column.justify = 'right'
    for name, figure in figures.items():
        cells = [text(policy['figures'][name], figure) for policy in policies]
        if limits:
            cells.append(text(limits[name], figure) if name in limits else '')
        unit = f' [dim]{figure.unit}[/]' if figure.unit else ''
        table.add_row(f'{figure.meaning}{unit}', *cells)
    console.print(table)
    for policy in policies:
        for line in verdict(policy, summary, figures):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print(str(run_dir / NAME), markup=False, highlight=False, soft_wrap=True)
    return all(policy['accepted'] is not False for policy in policies)


def verdict(policy: Summary, summary: Summary, figures: Mapping[str, Figure]) -> list[str]:
    """Return in words whether a policy passes the bar, and each figure that does not."""
    name, bar = policy['name'], summary['bar']
    if policy['accepted'] is None:
        why = 'a quick run judges nothing' if summary['quick'] else 'no bar was named'
        return [f'{name}: measured; {why}']
    failed = [c for c in policy['criteria'] if not c['met']]
    if not failed:
        return [f'{name}: passes the bar "{bar}"']
    lines = [f'{name}: below the bar "{bar}", {len(failed)} of {len(policy["criteria"])} limits:']
    for c in failed:
        figure = figures[c['name']]
        measured, limit = text(c['value'], figure), text(c['limit'], figure)
        unit = f' {figure.unit}' if figure.unit else ''
        lines.append(f'  {figure.meaning}: {measured}, limit {limit}{unit}')
    return lines


def text(value: float | None, figure: Figure) -> str:
    """Return a figure as text; a dash where a fall left it unmeasured."""
    return '-' if value is None else f'{value:.{figure.digits}f}'
