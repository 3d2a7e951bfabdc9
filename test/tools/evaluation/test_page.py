"""The page's script in a real browser is skipped where there is no chromium."""

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from samples import CONTRACT

from g1_policy_node.paths import find_data
from g1_policy_node.tools.evaluation.figures import figures_of, summarize
from g1_policy_node.tools.evaluation.page import headline, write_page
from g1_policy_node.tools.evaluation.plan import cases, load_plan, quick

PLAN = dataclasses.replace(quick(load_plan(find_data('config/evaluation.yaml'))), bars={'b': {}})
CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser')
ERRORS = '<script>window.onerror = (m) => { document.body.dataset.error = m; };</script>'


def rows(error: float, fell: bool) -> list[dict]:
    """Rows of a policy that is off by `error` everywhere, and falls, or not, at the last."""
    made = [
        {
            **case._asdict(),
            'fell_at': None,
            'seconds': 3.0,
            'error': [error] * 3,
            'rmse': [error] * 3,
            'moved': [2.0, error],
            'turned': error,
            'target_change_mrad': 10.0 + error,
            'power_w': 50.0,
            'energy_j': 150.0,
            'torque_ratio': {'left_wrist_yaw_joint': 1.2},
            'torque_over': {'left_wrist_yaw_joint': 0.25},
            'limit_hits': {},
            'self_contact': 0.0,
            'targets_beyond': {},
            'path': [[0.0, 0.0], [1.0, 0.1], [2.0, error]],
        }
        for case in cases(PLAN)
    ]
    if fell:
        turning = next(i for i, row in enumerate(made) if row['group'] == 'turning')
        made[turning] = {**cases_row(made[turning]), 'fell_at': 1.0}
    return made


def cases_row(row: dict) -> dict:
    """Leave what a run has that fell before its means began."""
    return {key: row[key] for key in ('group', 'command', 'condition', 'kick', 'seed')}


def written(tmp_path: Path) -> str:
    """Write the page of two policies, one of them a script's name, and return it."""
    both = [rows(0.01, False), rows(0.2, True)]
    policies = [
        {
            'name': name,
            'policy': f'/policies/{name}',
            'weights_sha256': 'w' * 64,
            'contract_sha256': 'c' * 64,
            **summarize(mine, PLAN, CONTRACT.joint_names),
            'criteria': [],
            'accepted': None,
        }
        for name, mine in zip(('good', '<b>poor</b>'), both, strict=True)
    ]
    summary = {
        'simulator': {'name': 'mujoco', 'version': '4'},
        'quick': True,
        'plan_sha256': PLAN.sha256,
        'bar': None,
        'policies': policies,
    }
    return write_page(tmp_path, summary, {}, PLAN, both).read_text()


def test_the_page_has_every_figure_and_escapes_names(tmp_path: Path) -> None:
    html = written(tmp_path)
    for figure in figures_of(PLAN).values():
        assert figure.meaning in html
    assert '<b>poor' not in html
    assert 'left wrist yaw in 25.00 % of ticks' in html
    assert not re.search(r'(src|href)="https?:', html)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason='needs chromium (apt-get install chromium)')
def test_the_plots_are_drawn_and_a_fall_is_named(tmp_path: Path) -> None:
    page = tmp_path / 'used.html'
    page.write_text(written(tmp_path).replace('<body>', f'<body>{ERRORS}'))
    flags = ('--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--dump-dom')
    line = [CHROMIUM, *flags, '--virtual-time-budget=3000', f'--user-data-dir={tmp_path / "p"}']
    dom = subprocess.run([*line, page.as_uri()], capture_output=True, text=True, timeout=120)
    assert 'data-error' not in dom.stdout
    for plot in ('kicks', 'error-0', 'error-1', 'error-2', 'torque'):
        drawn = dom.stdout[dom.stdout.index(f'id="{plot}"') :]
        drawn = drawn[: drawn.index('</svg>')]
        assert drawn.count('<circle') >= 2, plot
        assert ('>fell<' in drawn) == plot.startswith('error'), plot
    paths = dom.stdout[dom.stdout.index('id="paths"') : dom.stdout.index('In harder')]
    assert paths.count('<path') == 2 * len(PLAN.straight)


@pytest.mark.parametrize(
    ('accepted', 'said'),
    [
        ((True,), 'a passes the bar “b”.'),
        ((False,), 'a is below the bar “b”.'),
        ((False, False), 'None of a and b passes the bar “b”.'),
        ((True, False), 'a passes the bar “b”: 1 of 2 policies.'),
    ],
)
def test_the_headline_says_who_passes(accepted: tuple[bool, ...], said: str) -> None:
    policies = [{'name': n, 'accepted': a} for n, a in zip('ab', accepted, strict=False)]
    assert headline({'policies': policies, 'bar': 'b'}) == said
