"""/diagnostics: what the router is doing, with names that can be plotted."""

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.time import Time

from g1_policy_node.modes import ModeLatch
from g1_policy_node.prepared import Prepared
from g1_policy_node.timing import MissCounter, Recorder
from g1_policy_node.types import Mode

WINDOW = 250
"""Rows that rate and latencies are taken over: five seconds."""

PERCENTS = (50, 95, 99)
STAGES = (
    ('observe', 'woken', 'observed'),
    ('act', 'observed', 'acted'),
    ('check', 'acted', 'checked'),
    ('publish', 'checked', 'published'),
)
"""Stages of a tick between two columns of timing.npz."""

_LEVELS = {
    Mode.INACTIVE: DiagnosticStatus.OK,
    Mode.RAMP: DiagnosticStatus.OK,
    Mode.READY: DiagnosticStatus.OK,
    Mode.RUN: DiagnosticStatus.OK,
    Mode.WAITING: DiagnosticStatus.WARN,
    Mode.HOLD: DiagnosticStatus.WARN,
    Mode.DAMP: DiagnosticStatus.ERROR,
}


def timing_figures(recorder: Recorder, simulated: bool = False) -> dict[str, float]:
    """Return the rate on the tick clock, and percentiles of the newest WINDOW ticks in ms.

    Lateness, and the stages as summary.json names them; one that no tick reached is left out, as
    is lateness where time is `simulated` and waits for the node.
    """
    c = recorder.columns(-WINDOW)
    figures: dict[str, float] = {}
    ticks = c['tick_ns']
    if len(ticks) > 1 and ticks[-1] > ticks[0]:
        figures['rate_hz'] = float((len(ticks) - 1) / ((ticks[-1] - ticks[0]) * 1e-9))
    seen = c['joint_age'] >= 0
    spans = {'sensor_age': c['joint_age'][seen]}
    if not simulated:
        spans['lateness'] = c['woken'] - c['scheduled']
    for name, begin, end in STAGES:
        spans[name] = (c[end] - c[begin])[(c[begin] > 0) & (c[end] > 0)]
    whole = seen & (c['published'] > 0)
    spans['sensor_to_command'] = (c['joint_age'] + c['published'] - c['woken'])[whole]
    for name, values in spans.items():
        if len(values):
            for percent, value in zip(PERCENTS, np.percentile(values, PERCENTS), strict=True):
                figures[f'{name}_ms.p{percent}'] = float(value) * 1e-6
    if len(ticks):
        for name, value in zip(('vx', 'vy', 'wz'), c['command'][-1], strict=True):
            figures[f'command.{name}'] = float(value)
    return figures


def diagnostic_array(
    now: Time,
    name: str,
    modes: ModeLatch,
    recorder: Recorder,
    misses: MissCounter,
    prepared: Prepared,
    simulated: bool,
) -> DiagnosticArray:
    """Return one status: mode and reason, device and hashes, rate, latencies and counters."""
    figures = timing_figures(recorder, simulated)
    values = {
        'mode': modes.mode.value,
        **prepared.facts(),
        **{key: f'{value:.3f}' for key, value in figures.items()},
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


def tell_device_failure(node: Node, prepared: Prepared, now: int) -> None:
    """Say once that a device failed in a tick; the parameter follows, and stays on cpu."""
    policy = prepared.router.policy
    if failure := policy.failure:
        node.set_parameters([Parameter('device', value=policy.actor.device)])
        node.get_logger().error(prepared.log.failed(now, failure))
