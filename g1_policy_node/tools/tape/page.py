"""The page of a comparison: one self-contained HTML file with plots."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 300, 70, 40, 16
COLORS = ('#1f6feb', '#d1242f', '#8250df', '#bf8700', '#1a7f37', '#57606a')
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 780px; margin: 2em auto; padding: 0 1em;
  color: #1f2328 }
h1 { font-size: 1.3em } h2 { font-size: 1.05em; margin-top: 2em }
.said { font-size: 1.15em; border-left: 4px solid #1f6feb; padding: .4em 1em; background: #f6f8fa }
table { border-collapse: collapse; margin: .6em 0 } td, th { padding: .2em .8em .2em 0 }
th { text-align: left; font-weight: 600; border-bottom: 1px solid #d0d7de }
td { font-variant-numeric: tabular-nums } td.n { text-align: right }
svg text { font: 12px system-ui, sans-serif; fill: #57606a } .note { color: #57606a }
"""
PERCENTILES = ('p50', 'p95', 'p99', 'p99.9', 'max')


def write_page(
    path: Path,
    summary: Mapping[str, Any],
    manifest: Mapping[str, Any],
    spent: Mapping[str, NDArray[np.float64]],
) -> None:
    """Write the page; `spent` are the seconds of each pass at the walk's period, by variant."""
    blocks = [
        '<h1>Which device should the policy run on?</h1>',
        f'<p class="said">{escape(summary["sentence"])}</p>',
        f'<p class="note">{escape(_where(manifest))}</p>',
        '<h2>One robot: one call every 20 ms, copies included</h2>',
        _latency(summary['at_period_us']),
        _curves({name: seconds * 1e6 for name, seconds in spent.items()}),
        '<p class="note">Share of calls that took longer. The tail on the right decides whether '
        'a walk loses a slot.</p>',
        _others(summary['machine']),
        '<h2>The same in a tight loop</h2>',
        _latency(summary['tight_us']),
        '<p class="note">Not what a 50 Hz router sees: caches and clocks stay warm.</p>',
        *_parts(summary['parts_us']),
        *_batches(summary['batches']),
        *_actions(summary['actions']),
        *_not_measured(summary['not_measured']),
    ]
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<title>Device comparison</title><style>{STYLE}</style>\n' + '\n'.join(blocks)
    )
    path.write_text(text, encoding='utf-8')


def _where(manifest: Mapping[str, Any]) -> str:
    gpu = ', '.join(manifest['gpu'] or ()) or 'no NVIDIA GPU'
    cpu = manifest['cpu']
    torch = manifest['versions'].get('torch')
    return (
        f'{manifest["host"]}, {cpu["model"]}, {cpu["usable"]} cores, {gpu}; '
        f'torch {torch or "not installed"}; {manifest["started_utc"]}'
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = ''.join(f'<th>{escape(name)}</th>' for name in heads)
    body = ''.join(
        '<tr>'
        + ''.join(f'<td class="{"n" if i else ""}">{escape(c)}</td>' for i, c in enumerate(row))
        + '</tr>'
        for row in rows
    )
    return f'<table><tr>{head}</tr>{body}</table>'


def _us(value: float | None) -> str:
    return '-' if value is None else f'{value:,.0f}'


def _latency(figures: Mapping[str, Mapping[str, Any]]) -> str:
    return _table(
        ('microseconds', *PERCENTILES, 'calls'),
        [(n, *(_us(f[p]) for p in PERCENTILES), str(f['calls'])) for n, f in figures.items()],
    )


def _parts(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [
        (name, f'{f["total"]:.1f}', _listed(f['wall_us']), _listed(f['device_us'] or {}))
        for name, f in parts.items()
    ]
    heads = ('', 'whole', "parts, by the host's clock", 'on the GPU, by CUDA events')
    return ['<h2>Parts of a pass, median microseconds</h2>', _table(heads, rows)]


def _listed(parts: Mapping[str, float]) -> str:
    return ', '.join(f'{name.replace("_", " ")} {us:.1f}' for name, us in parts.items()) or '-'


def _others(machine: Mapping[str, Any]) -> str:
    named = ', '.join(f'{p["name"]} {p["cores"]:.2f}' for p in machine['others_during'])
    load = machine['load_during']['p50']
    return (
        f'<p class="note">Load average meanwhile {load:.1f}; other processes, in cores: '
        f'{escape(named) or "none above 0.01"}.</p>'
    )


def _batches(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    if not cells:
        return []
    lines: dict[str, list[tuple[float, float]]] = {}
    for cell in cells:
        threads = f', {cell["threads"]} threads' if cell['device'] == 'cpu' else ''
        name = f'{cell["device"]} {cell["path"]}{threads}'
        lines.setdefault(name, []).append((cell['batch'], cell['total_us']['p50']))
    return [
        '<h2>Many robots in one batch</h2>',
        _plot(lines, 'rows per batch', 'median us'),
    ]


def _actions(actions: Mapping[str, Any]) -> list[str]:
    rows = [
        (f'{p["one"]} and {p["other"]}', f'{p["max"]:.1e}', f'{p["mean"]:.1e}')
        for p in actions['pairs']
    ]
    held = 'yes' if actions['within'] else 'NO'
    return [
        '<h2>Do they say the same?</h2>',
        _table(('action difference', 'largest', 'mean'), rows),
        f'<p>Within {actions["tolerance"]:g}: {held}.</p>',
    ]


def _not_measured(items: Sequence[str]) -> list[str]:
    if not items:
        return []
    listed = ''.join(f'<li>{escape(item)}</li>' for item in items)
    return ['<h2>Not measured</h2>', f'<ul>{listed}</ul>']


def _curves(us: Mapping[str, NDArray[np.float64]]) -> str:
    """Plot the share of calls (down to one call) above each latency."""
    lines = {}
    for name, values in us.items():
        ordered = np.sort(values)
        share = 1.0 - np.arange(len(ordered)) / len(ordered)
        at = np.unique(np.geomspace(1, len(ordered), 120).astype(int) - 1)
        keep = len(ordered) - 1 - at[::-1]
        lines[name] = list(zip(ordered[keep].tolist(), share[keep].tolist(), strict=True))
    return _plot(lines, 'us per call', 'share of calls above')


class _Axis(NamedTuple):
    """A logarithmic axis from `low` to `high` (powers of ten), drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (np.log10(value) - self.low) / (self.high - self.low)
        return float(self.start + share * (self.end - self.start))


def _plot(lines: Mapping[str, Sequence[tuple[float, float]]], x_name: str, y_name: str) -> str:
    """Return an SVG of lines over two logarithmic axes, with a legend below."""
    xs = np.log10([x for line in lines.values() for x, _ in line])
    ys = np.log10([y for line in lines.values() for _, y in line])
    x = _Axis(xs.min(), max(xs.max(), xs.min() + 0.3), LEFT, WIDTH - 20)
    y = _Axis(ys.min(), max(ys.max(), ys.min() + 1), HEIGHT - BOTTOM, TOP)
    drawn = [*_grid(x, y, x_name, y_name)]
    for i, (name, line) in enumerate(lines.items()):
        color, below = COLORS[i % len(COLORS)], HEIGHT + 18 * i + 8
        points = ' '.join(f'{x.at(a):.1f},{y.at(b):.1f}' for a, b in line)
        stroke = f'fill="none" stroke="{color}" stroke-width="2"'
        drawn += [
            f'<polyline points="{points}" {stroke}/>',
            f'<line x1="{LEFT}" x2="{LEFT + 24}" y1="{below}" y2="{below}" {stroke}/>',
            f'<text x="{LEFT + 32}" y="{below + 4}">{escape(name)}</text>',
        ]
    size = f'viewBox="0 0 {WIDTH} {HEIGHT + 18 * len(lines) + 8}"'
    return f'<svg {size} width="100%" role="img">{"".join(drawn)}</svg>'


def _grid(x: _Axis, y: _Axis, x_name: str, y_name: str) -> Iterator[str]:
    for tick in _ticks(x.low, x.high):
        at = f'{x.at(tick):.1f}'
        yield f'<line x1="{at}" x2="{at}" y1="{y.start}" y2="{y.end}" stroke="#eaeef2"/>'
        yield f'<text x="{at}" y="{y.start + 16}" text-anchor="middle">{tick:g}</text>'
    for tick in _ticks(y.low, y.high):
        at = f'{y.at(tick):.1f}'
        yield f'<line x1="{x.start}" x2="{x.end}" y1="{at}" y2="{at}" stroke="#eaeef2"/>'
        yield f'<text x="{LEFT - 8}" y="{float(at) + 4:.1f}" text-anchor="end">{tick:g}</text>'
    yield f'<text x="{x.end}" y="{HEIGHT - 6}" text-anchor="end">{escape(x_name)}</text>'
    yield f'<text x="4" y="{TOP - 4}">{escape(y_name)}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten within a logarithmic range; tens if many."""
    factors = (1, 2, 5) if high - low < 2 else (1,)
    powers = range(int(np.floor(low)) - 1, int(np.ceil(high)) + 1)
    all_ticks = [f * 10.0**p for p in powers for f in factors]
    return [tick for tick in all_ticks if low - 1e-9 <= np.log10(tick) <= high + 1e-9]
