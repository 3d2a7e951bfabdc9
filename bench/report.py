"""report.html: the table and the plots of a run in one file, without scripts."""

import html
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use('svg')
import matplotlib.pyplot as plt
import numpy as np

from bench.arms import FLOOR, HONEST, OURS, STOCK, TITLES
from bench.table import HEADER, OPTIONS_CAPTION, compact, option_rows, rows

COLOURS = {
    OURS: '#0b6e4f',
    STOCK: '#c1440e',
    HONEST: '#d9a404',
    FLOOR: '#7a7a7a',
}
PLOT_TITLES = {
    'sensor_to_action': 'sensor to action',
    'lateness': 'tick lateness',
    'in_node': 'tick in the node',
}
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1180px; margin: 2em auto; padding: 0 1em;
  color: #222; }
table { border-collapse: collapse; font-size: 13px; width: 100%; }
th, td { padding: .35em .6em; border-bottom: 1px solid #ddd; text-align: left; }
td:nth-child(n+2):nth-child(-n+6) { text-align: right; font-variant-numeric: tabular-nums; }
td { vertical-align: top; } td:first-child { min-width: 15em; }
figure { margin: 1.5em 0; } svg { max-width: 100%; height: auto; }
.failed { color: #a00; }
"""


def write_report(
    folder: Path, summary: Mapping[str, Any], samples: Mapping[str, Mapping[str, list[float]]]
) -> None:
    """Write the page; `samples` in us by figure and arm, all pairs together."""
    m = summary['machine']
    parts = [
        '<h1>The router beside a stock node</h1>',
        f'<p>{html.escape(m["cpu"])}, {m["cores"]} cores, Python {m["python"]}, '
        f'{summary["pairs"]} pairs of {summary["seconds"]:g} s, {m["minutes"]:.0f} minutes, '
        f'load before {m["load_before"][0]:.1f}. A ratio says how many times better ours is: '
        'the median of the pairs, and their range.</p>',
        *(f'<p class="failed">Left out: {html.escape(f)}</p>' for f in summary['failures']),
        _table(compact([HEADER, *rows(summary)])),
    ]
    if options := option_rows(summary):
        parts.append(f'<p>{OPTIONS_CAPTION}:</p>{_table(options)}')
    if any(figure['ratios'] for figure in summary['figures'].values()):
        parts.append(_figure(_ratios(summary['figures'])))
    if samples:
        parts.append(_figure(_distributions(samples)))
    parts += [_figure(_growth(growth)) for growth in summary['growth'].values()]
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<title>bench</title><style>{STYLE}</style>' + '\n'.join(parts)
    )
    (folder / 'report.html').write_text(page)


def _table(lines: list[list[str]]) -> str:
    tag = ['th', *['td'] * (len(lines) - 1)]
    body = ''.join(
        '<tr>' + ''.join(f'<{tag[n]}>{html.escape(cell)}</{tag[n]}>' for cell in line) + '</tr>'
        for n, line in enumerate(lines)
    )
    return f'<table>{body}</table>'


def _figure(figure: Any) -> str:
    """Return a matplotlib figure as inline SVG, and close it."""
    out = io.StringIO()
    figure.savefig(out, format='svg', bbox_inches='tight')
    plt.close(figure)
    text = out.getvalue()
    return f'<figure>{text[text.index("<svg") :]}</figure>'


def _ratios(figures: Mapping[str, Any]) -> Any:
    """Draw how many times better ours is than both stock nodes, with the range of the pairs."""
    shown = [figure for figure in figures.values() if {STOCK, HONEST} & figure['ratios'].keys()]
    figure, axes = plt.subplots(figsize=(10, 1.2 + 0.42 * len(shown)))
    for arm, shift in ((STOCK, -0.13), (HONEST, 0.13)):
        for y, described in enumerate(shown):
            if ratio := described['ratios'].get(arm):
                label = TITLES[arm] if y == 0 else None
                axes.plot(ratio['range'], [y + shift] * 2, color=COLOURS[arm], linewidth=2)
                axes.plot(ratio['median'], y + shift, 'o', color=COLOURS[arm], label=label)
    for y, described in enumerate(shown):
        if goal := described.get('goal'):
            axes.plot(goal['at_least'], y, '|', color='black', markersize=15)
    axes.axvline(1, color='#999', linewidth=1)
    axes.set_xscale('log')
    axes.set_yticks(range(len(shown)), [described['title'] for described in shown])
    axes.invert_yaxis()
    axes.set_xlabel(
        'how many times better: median and range of the pairs; a black bar is the goal'
    )
    handles = [
        plt.Line2D([], [], color=COLOURS[arm], marker='o', label=TITLES[arm])
        for arm in (STOCK, HONEST)
    ]
    axes.legend(handles=handles, frameon=False)
    _bare(axes)
    return figure


def _distributions(samples: Mapping[str, Mapping[str, list[float]]]) -> Any:
    """Draw, for each span, the share of ticks that took longer, on logarithmic axes."""
    figure, all_axes = plt.subplots(
        1, len(samples), figsize=(5 * len(samples), 3.6), squeeze=False
    )
    for axes, (name, by_arm) in zip(all_axes[0], samples.items(), strict=True):
        for arm, values in by_arm.items():
            ordered = np.sort(np.maximum(values, 1.0))
            share = 1.0 - np.arange(len(ordered)) / max(len(ordered), 1)
            axes.step(ordered, share, where='pre', color=COLOURS[arm], label=TITLES[arm])
        axes.set_xscale('log')
        axes.set_yscale('log')
        axes.set_xlabel(f'{PLOT_TITLES[name]}, us')
        axes.set_ylabel('share of ticks above')
        _bare(axes)
    all_axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


def _growth(growth: Mapping[str, Any]) -> Any:
    """Draw each figure over x: the median of the passes, and their range as a band."""
    curves = growth['figures']
    figure, all_axes = plt.subplots(1, len(curves), figsize=(5 * len(curves), 3.4), squeeze=False)
    for axes, curve in zip(all_axes[0], curves.values(), strict=True):
        for arm, points in curve['arms'].items():
            there = [
                (x, [v for v in values if v is not None])
                for x, values in zip(growth['x'], points, strict=True)
            ]
            there = [(x, values) for x, values in there if values]
            xs = [x for x, _ in there]
            medians = [float(np.median(values)) for _, values in there]
            axes.plot(xs, medians, 'o-', color=COLOURS[arm], label=TITLES[arm], markersize=4)
            low, high = [min(v) for _, v in there], [max(v) for _, v in there]
            axes.fill_between(xs, low, high, color=COLOURS[arm], alpha=0.15, linewidth=0)
        axes.set_xlabel(growth['x_title'])
        axes.set_ylabel(curve['title'])
        axes.set_ylim(bottom=0)
        _bare(axes)
    all_axes[0][0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


def _bare(axes: Any) -> None:
    axes.spines[['top', 'right']].set_visible(False)
    axes.grid(alpha=0.2)
