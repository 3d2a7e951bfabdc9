"""report.html: one self-contained page that says in words, figures and plots what a run did."""

import base64
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from g1_policy_node.modes import MEANINGS
from g1_policy_node.tools.film import Film
from g1_policy_node.types import Mode

NAME = 'report.html'
FOLDER = Path(__file__).with_name('report_page')
NOT_RENDERED = Film('There are no pictures yet: g1-policy report renders them.')

STAGE_MEANINGS = {
    'sensor_age': 'how old the newest joint sample was when the tick began',
    'observe': 'from waking up to the finished observation',
    'act': 'the neural network',
    'check': 'scaling and safety limits',
    'publish': 'handing the command to the network',
    'transport': 'the command on its way to the robot',
    'sensor_to_command': 'age of the joint sample plus everything up to the published command',
}

COUNTER_MEANINGS = {
    'command_not_finite': 'velocity commands that were no number',
    'command_clipped': 'velocity commands beyond what the policy was trained for',
    'command_stale': 'times the velocity command stopped coming',
    'command_order': 'velocity commands that came out of order',
    'observation_not_finite': 'observations that were no number',
    'action_not_finite': 'outputs of the network that were no number',
    'tilt': 'ticks in which the robot was tilted too far',
    'target_position_clipped': 'joint targets kept inside the joint limits',
    'target_torque_clipped': 'joint targets kept from asking for too much torque',
    'target_rate_clipped': 'joint targets kept from moving too fast',
}

_SIMULATORS = {'mujoco': 'MuJoCo', 'isaac': 'Isaac Lab'}

Summary = Mapping[str, Any]


class Check(NamedTuple):
    """One limit in words: what is asked, what was measured, the limit, and whether it was met."""

    asked: str
    measured: str
    limit: str
    met: bool


def write_page(
    run_dir: Path,
    summary: Summary,
    manifest: Mapping[str, Any],
    curves: Mapping[str, Any],
    film: Film = NOT_RENDERED,
) -> Path:
    """Write report.html into the run's folder, whole or not at all, and return its path."""
    return write_html(run_dir, page(run_dir.name, summary, manifest, curves, film))


def write_html(run_dir: Path, html: str) -> Path:
    """Write report.html, whole or not at all, and return its path."""
    partial = run_dir / f'{NAME}.partial'
    partial.write_text(html, encoding='utf-8')
    return partial.replace(run_dir / NAME)


def page(
    name: str,
    summary: Summary,
    manifest: Mapping[str, Any],
    curves: Mapping[str, Any],
    film: Film,
) -> str:
    """Return the page; every figure in it is one of `summary`, every text is escaped."""
    return render(
        'report.html',
        name=name,
        headline=headline(summary),
        story=story(summary, manifest),
        checks=checks(summary),
        summary=summary,
        walk=summary['walk'],
        manifest=manifest,
        curves=curves,
        film=film,
        stages=STAGE_MEANINGS,
        counters=COUNTER_MEANINGS,
        modes=MEANINGS,
        manifest_text=json.dumps(manifest, indent=2),
        summary_text=json.dumps(summary, indent=2),
    )


def render(template: str, **given: Any) -> str:
    """Return a template of this folder filled in; every text is escaped."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies['json.dumps_kwargs'] = {}  # Its default sorts the stages by name.
    environment.filters |= {'number': number, 'webp': _webp, 'png': _png}
    return environment.get_template(template).render(**given)


def headline(summary: Summary) -> str:
    """Return what happened, in one sentence."""
    walk = summary['walk']
    seconds = walk.get('run_seconds')
    if walk['fell']:
        return 'The robot fell.'
    if seconds == 0.0:
        return 'The robot never walked: the policy did not get to run.'
    if seconds is None and _stuck(summary):
        return 'The policy never got to run.'
    if seconds is None:
        return 'The policy ran; how the robot moved was not recorded.'
    command = walk.get('command')
    if command is not None and math.hypot(*command) < 0.1:
        what = f'stood for {seconds:.1f} s'
    elif walk.get('distance_m') is not None:
        what = f'walked {walk["distance_m"]:.1f} m in {seconds:.1f} s'
    else:
        what = f'walked for {seconds:.1f} s'
    if walk['fell'] is None:
        return f'The robot {what}; whether it fell is not known.'
    return f'The robot {what} and stayed on its feet.'


def story(summary: Summary, manifest: Mapping[str, Any]) -> list[str]:
    """Return the same with its figures, a sentence each; what is not known is left out."""
    walk, sim = summary['walk'], (manifest.get('simulator') or {}).get('name')
    where = f'simulated in {_SIMULATORS.get(sim, sim)}' if sim else 'no simulator took part'
    who = 'A Unitree G1 with 29 joints'
    stuck = _stuck(summary)
    moved = 'not moved' if stuck else 'moved'
    lines = [f'{who}, {where}, {moved} by the learned policy {_policy(manifest)}.']
    if stuck:
        lines.append(f'It came as far as {stuck["mode"]}: {stuck["reason"]}.')
    if walk.get('command') and walk.get('mean_velocity'):
        lines.append(f'It was asked for {_velocity(walk["command"])}.')
        lines.append(
            f'On average it moved at {_velocity(walk["mean_velocity"], walk["command"])}.'
        )
    if summary['rate_hz'] is not None:
        device = summary['device'] or 'an unknown device'
        lines.append(
            f'The policy ran on {device} and gave {summary["rate_hz"]:.1f} commands per second'
            f'{" of simulated time" if summary["lockstep"] else ""}; '
            f'{number(summary["deadline_misses"])} of {number(summary["slots"])} were missed.'
        )
    if summary['lockstep']:
        lines.append(
            'Robot and policy waited for each other (lock-step), so this run says nothing about '
            'keeping time.'
        )
    if summary['ended']:
        lines.append(f'The end: {summary["ended"]}.')
    return lines


def _stuck(summary: Summary) -> Mapping[str, Any] | None:
    """Return the last transition before the end of a node that never came to RUN."""
    seen = summary.get('transitions') or []
    on = [transition for transition in seen if transition['mode'] != Mode.INACTIVE.value]
    ran = any(transition['mode'] == Mode.RUN.value for transition in on)
    return on[-1] if on and not ran else None


def checks(summary: Summary) -> list[Check]:
    """Return the criteria of the summary in words, in their order."""
    return [_check(criterion) for criterion in summary['criteria']]


def _check(criterion: Mapping[str, Any]) -> Check:
    value, limit, met = criterion['value'], criterion['limit'], criterion['met']
    if criterion['name'] == 'fell':
        measured = 'not known' if value is None else ('it fell' if value else 'no fall')
        return Check('It stays on its feet', measured, 'no fall', met)
    if criterion['name'] == 'vx_error':
        asked = 'Mean forward velocity near the command'
        return Check(asked, _or_unknown(value, '{:.3f} m/s off'), f'{limit:.2f} m/s off', met)
    if criterion['name'] == 'missed_share':
        asked = 'Few missed slots: 0.5 %, or three times what an idle process misses'
        return Check(asked, _or_unknown(value, '{:.2%}'), f'{limit:.2%}', met)
    if criterion['name'] == 'run_seconds':
        return Check(
            'It walks as long as asked',
            _or_unknown(value, '{:.1f} s'),
            'until stopped' if limit == 0 else _or_unknown(limit, '{:.1f} s'),
            met,
        )
    return Check(criterion['name'], number(value, 4), number(limit, 4), met)


def number(value: object, digits: int = 0) -> str:
    """Return a figure for people; a dash where it is not known."""
    if value is None:
        return '-'
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return f'{value:.{digits}f}' if isinstance(value, float) else str(value)


def _or_unknown(value: float | None, form: str) -> str:
    return 'not known' if value is None else form.format(value)


def _policy(manifest: Mapping[str, Any]) -> str:
    policy = manifest.get('policy')
    return Path(policy).name if policy else '(not recorded)'


def _velocity(velocity: list[float | None], like: list[float] | None = None) -> str:
    """Return vx, vy, wz in words: what is asked for, or what `like` asks for."""
    words = (
        ('m/s forward', 'm/s backward'),
        ('m/s to the left', 'm/s to the right'),
        ('rad/s turning left', 'rad/s turning right'),
    )
    said = [
        f'{abs(value):.2f} {names[value < 0]}'
        for value, wanted, names in zip(velocity, like or velocity, words, strict=True)
        if value is not None and (wanted or not any(like or velocity))
    ]
    if not any(like or velocity):
        return 'standing still' if like is None else ', '.join(said)
    return ', '.join(said) or 'an unknown velocity'


def _webp(picture: bytes) -> str:
    return 'data:image/webp;base64,' + base64.b64encode(picture).decode()


def _png(picture: bytes) -> str:
    return 'data:image/png;base64,' + base64.b64encode(picture).decode()
