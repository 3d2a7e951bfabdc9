"""/diagnostics: what the router is doing, with names that can be plotted."""

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.time import Time

from g1_policy_node.modes import ModeLatch
from g1_policy_node.prepared import Prepared
from g1_policy_node.timing import MissCounter, Recorder
from g1_policy_node.types import Mode

WINDOW = 250
"""Rows that rate and latencies are taken over: five seconds."""

_LEVELS = {
    Mode.INACTIVE: DiagnosticStatus.OK,
    Mode.RAMP: DiagnosticStatus.OK,
    Mode.READY: DiagnosticStatus.OK,
    Mode.RUN: DiagnosticStatus.OK,
    Mode.WAITING: DiagnosticStatus.WARN,
    Mode.HOLD: DiagnosticStatus.WARN,
    Mode.DAMP: DiagnosticStatus.ERROR,
}


def timing_figures(recorder: Recorder) -> dict[str, float]:
    """Return the rate on the tick clock and the percentiles of the newest WINDOW ticks, ms."""
    c = recorder.columns(WINDOW)
    figures: dict[str, float] = {}
    ticks = c['tick_ns']
    if len(ticks) > 1 and ticks[-1] > ticks[0]:
        figures['rate_hz'] = float((len(ticks) - 1) / ((ticks[-1] - ticks[0]) * 1e-9))
    spans = {
        'lateness_ms': c['woken'] - c['scheduled'],
        'act_ms': (c['acted'] - c['observed'])[c['acted'] > 0],
        'tick_ms': (c['published'] - c['woken'])[c['published'] > 0],
        'joint_age_ms': c['joint_age'][c['joint_age'] >= 0],
    }
    for name, values in spans.items():
        if len(values):
            p50, p99 = np.percentile(values, (50, 99)) * 1e-6
            figures |= {f'{name}.p50': float(p50), f'{name}.p99': float(p99)}
    return figures


def diagnostic_array(
    now: Time,
    name: str,
    modes: ModeLatch,
    recorder: Recorder,
    misses: MissCounter,
    prepared: Prepared,
) -> DiagnosticArray:
    """Return one status: mode and reason, device and hashes, rate, latencies and counters."""
    values = {
        'mode': modes.mode.value,
        **prepared.facts(),
        **{key: f'{value:.3f}' for key, value in timing_figures(recorder).items()},
        'slots': str(misses.slots),
        'deadline_misses': str(misses.misses),
        'longest_gap_slots': str(misses.longest_gap),
        **{f'count.{key}': str(value) for key, value in sorted(prepared.counters().items())},
    }
    level, message = _LEVELS[modes.mode], f'{modes.mode.value}: {modes.reason}'
    if failure := prepared.log.latched:
        level = max(level, DiagnosticStatus.WARN)
        message += f'; {failure.device} failed: {failure.reason}'
    status = DiagnosticStatus(
        level=level,
        name=f'{name}: router',
        message=message,
        hardware_id='g1',
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    array = DiagnosticArray(status=[status])
    array.header.stamp = now.to_msg()
    return array
