"""Writes docs/SAFETY.md from faults.json, safety.yaml and safety_page.md.

Usage: python bench/safety_doc.py (a test checks that the page is not stale).
"""

import json
from pathlib import Path
from string import Template
from typing import Any

from g1_policy_node.safety import load_limits

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / 'bench' / 'safety_page.md'
PAGE, EVIDENCE = ROOT / 'docs' / 'SAFETY.md', ROOT / 'docs' / 'evidence' / 'faults.json'


def page(result: dict[str, Any]) -> str:
    """Return the page."""
    before, after = result['load_before_and_after']
    measured = (
        f'Measured {result["measured_utc"]} on {result["machine"]}, load {before} before and '
        f'{after} after, with `{result["command"]}` ({result["seconds"]} s): the node as a '
        'process of its own, driver and injector in another, at 200 Hz over DDS. From the first '
        'faulty message to the first `~/mode` that is HOLD or DAMP. Commands outside the limits: '
        f'{result["unsafe_commands"]}. The node was '
        f'{"alive" if result["node_alive_at_the_end"] else "dead"} at the end.'
    )
    lines = [
        '| fault | limit or response | ends in | as expected | safe, ms p50 (max) '
        '| DAMP, ms p50 (max) |',
        '|---|---|---|---|---|---|',
    ]
    for name, row in result['faults'].items():
        met = f'{row["as_expected"]} of {row["times"]}'
        safe, damped = _cell(row['safe_ms']), _cell(row['damped_ms'])
        lines.append(f'| {name} | {row["limit"]} | {row["outcome"]} | {met} | {safe} | {damped} |')
    limits = ['| limit | value | meaning | source |', '|---|---|---|---|']
    table = load_limits(ROOT / 'config' / 'safety.yaml')
    limits += [f'| `{n}` | {e.value:g} | {e.meaning} | {e.source} |' for n, e in table.items()]
    return Template(TEMPLATE.read_text()).substitute(
        measured=measured, times='\n'.join(lines), limits='\n'.join(limits)
    )


def _cell(figures: dict[str, float] | None) -> str:
    return f'{figures["p50"]:.0f} ({figures["max"]:.0f})' if figures else '-'


if __name__ == '__main__':
    PAGE.write_text(page(json.loads(EVIDENCE.read_text())))
    print(PAGE)
