"""Measures how long the node takes to be safe from each fault, in real time over DDS.

Time to safe runs from the first faulty message (or the request) to the DDS source stamp of the
first `~/mode` that is HOLD or DAMP. With `--only FAULT` its row alone is measured anew. With
`--soak` random faults follow one another (soak.py). The exit code is 1 where anything is not as
it must be, with a line for each.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]
import rclpy  # noqa: E402
from faults.injector import FAULTS  # noqa: E402
from faults.line import Measurement  # noqa: E402
from faults.soak import soak  # noqa: E402


def measure(line: Measurement, names: Sequence[str], times: int) -> dict[str, Any]:
    """Return a row of figures for each fault."""
    rows = {}
    for name in names:
        fault = FAULTS[name]
        episodes = [line.episode(name, seed) for seed in range(times)]
        safe = [s for _, s, _ in episodes if s is not None]
        damped = [d for _, _, d in episodes if d is not None]
        rows[name] = {
            'layer': fault.layer.removeprefix('held.'),
            'limit': fault.limit,
            'outcome': fault.outcome,
            'times': times,
            'as_expected': sum(ok for ok, _, _ in episodes),
            'safe_ms': _figures(safe),
            'damped_ms': _figures(damped),
        }
        met = f'{rows[name]["as_expected"]}/{times}'
        print(f'{name:<36} {met}  {rows[name]["safe_ms"]}', flush=True)
    return rows


def _figures(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {'p50': round(statistics.median(values), 1), 'max': round(max(values), 1)}


def problems(result: Mapping[str, Any]) -> list[str]:
    """Return what makes the exit code 1, a line each."""
    lines = [
        f'{name}: {row["outcome"]} in {row["as_expected"]} of {row["times"]}'
        for name, row in result.get('faults', {}).items()
        if row['as_expected'] < row['times']
    ]
    lines += [f'not safe: {line}' for line in result['unsafe']]
    if not result['node_alive_at_the_end']:
        lines.append('the node was dead at the end')
    if result['node_exit_code']:
        lines.append(f'the node ended with exit code {result["node_exit_code"]}')
    return [*lines, *result.get('soak_problems', [])]


def run(given: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Measure or soak; return everything that is known of it."""
    load, began = os.getloadavg(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Measurement(Path(folder)) as line:
        if given.soak:
            what = soak(line, Path(folder), given.soak)
        else:
            what = {'faults': measure(line, names, given.times)}
        alive = line.process.poll() is None
        code = line.close()
    watch = line.line.watch
    return {
        'command': f'python test/faults/measure.py --times {given.times} --soak {given.soak:g}',
        'measured_utc': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
        'seconds': round(time.monotonic() - began),
        'machine': f'{os.cpu_count()} cores, {platform.machine()}',
        'load_before_and_after': [round(load[0], 1), round(os.getloadavg()[0], 1)],
        'commands': watch.commands,
        'unsafe_commands': len(watch.unsafe),
        'unsafe': watch.unsafe[:10],
        'node_alive_at_the_end': alive,
        'node_exit_code': code,
        **what,
    }


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return `old` with the rows of `new` in the place of its own, each with its date."""
    for name, row in new['faults'].items():
        old['faults'][name] = {**row, 'measured_utc': new['measured_utc']}
    old['unsafe_commands'] += new['unsafe_commands']
    old['node_alive_at_the_end'] &= new['node_alive_at_the_end']
    old['node_exit_code'] = old['node_exit_code'] or new['node_exit_code']
    return old


def main() -> int:
    """Return 0 if everything was as it must be, 1 if not; 2 for a fault that does not exist."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--times', type=int, default=20)
    parser.add_argument('--soak', type=float, default=0.0, metavar='SECONDS')
    parser.add_argument('--only', action='append', choices=FAULTS, metavar='FAULT')
    parser.add_argument('--out', type=Path)
    given = parser.parse_args()
    rclpy.init()
    result = run(given, given.only or list(FAULTS))
    rclpy.shutdown()
    found = problems(result)
    if given.out and given.only:
        result = merged(json.loads(given.out.read_text()), result)
    text = json.dumps(result, indent=2) + '\n'
    print(f'written to {given.out}' if given.out else text)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
