"""Writes docs/SAFETY.md from faults.json, soak.json, safety.yaml and safety_page.md.

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
SOAK = EVIDENCE.with_name('soak.json')


def page(result: dict[str, Any], soak: dict[str, Any]) -> str:
    """Return the page for the results of `make faults` and `make soak`."""
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
    later = [
        f'{name} ({row["measured_utc"]})'
        for name, row in result['faults'].items()
        if 'measured_utc' in row
    ]
    if later:
        measured += f' Measured again later, after a change: {", ".join(later)}.'
    limits = ['| limit | value | meaning | source |', '|---|---|---|---|']
    table = load_limits(ROOT / 'config' / 'safety.yaml')
    limits += [f'| `{n}` | {e.value:g} | {e.meaning} | {e.source} |' for n, e in table.items()]
    return Template(TEMPLATE.read_text()).substitute(
        measured=measured, times='\n'.join(lines), limits='\n'.join(limits), soak=_soaked(soak)
    )


def _soaked(soak: dict[str, Any]) -> str:
    faults, trips = soak['faults_injected'], soak['trips']
    wrong = '; '.join(soak['soak_problems']) or 'none'
    before, after = soak['load_before_and_after']
    return (
        f'Measured {soak["measured_utc"]} on {soak["machine"]}, load {before} before and {after} '
        f'after, with `{soak["command"]}` (`make soak`): {sum(faults.values())} faults, each of '
        f'the {len(faults)} kinds {min(faults.values())} to {max(faults.values())} times. '
        f'{soak["commands"]} commands, each checked for its names, finite, its limits, its rate, '
        f'and no jump at the start: {soak["unsafe_commands"]} unsafe. '
        f'{sum(trips.values())} trips, each compared with what the fault at the time may trip. '
        f'Not explained or not expected, as told then: {wrong}. '
        f'Memory of the node after the first two minutes: '
        f'{soak["memory_mb_per_minute"]:+.3f} MB a minute, limit '
        f'{soak["memory_limit_mb_per_minute"]:.3f} (5 MB in half an hour: less than half of '
        f'what keeping one row a tick would take). The node was '
        f'{"alive" if soak["node_alive_at_the_end"] else "dead"} at the end.'
    )


def _cell(figures: dict[str, float] | None) -> str:
    return f'{figures["p50"]:.0f} ({figures["max"]:.0f})' if figures else '-'


if __name__ == '__main__':
    PAGE.write_text(page(json.loads(EVIDENCE.read_text()), json.loads(SOAK.read_text())))
    print(PAGE)
