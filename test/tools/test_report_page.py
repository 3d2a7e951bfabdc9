"""The script of the report in a real browser; skipped where there is no chromium."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from run_parts import merged

CHROMIUM = shutil.which('chromium') or shutil.which('chromium-browser')
FLAGS = (
    *('--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'),
    *('--disable-background-networking', '--disable-component-update', '--disable-sync'),
    *('--virtual-time-budget=4000', '--dump-dom'),
)
PLOTS = ('velocity-vx', 'velocity-vy', 'velocity-wz', 'joint-plot', 'lateness-plot')
# Runs before the page's own script, and after its first drawing.
ERRORS = '<script>window.onerror = (m) => { document.body.dataset.error = m; };</script>'
USE = """<script>setTimeout(() => {
  const plot = document.querySelector('#velocity-vx svg');
  const joint = document.querySelector('#joint-plot svg');
  const { left, top, width } = plot.getBoundingClientRect();
  const at = (share) => ({ clientX: left + 46 + share * (width - 52), clientY: top + 60 });
  plot.setPointerCapture = () => {};
  const say = (kind, share) => plot.dispatchEvent(new PointerEvent(kind, at(share)));
  const curve = () => joint.querySelector('.curve').getAttribute('d');
  const select = document.getElementById('joint');
  const before = curve();
  select.value = 0;
  select.onchange();
  document.body.dataset.joint = String(curve() !== before);
  say('pointerdown', 0.4); say('pointermove', 0.5);
  document.body.dataset.reading = document.querySelector('#velocity-vx .plot-title').innerText;
  say('pointerup', 0.6);
  document.body.dataset.view = view.map((t) => t.toFixed(2)).join(' to ');
  document.querySelector('.plot-title button').click();
  document.body.dataset.whole = String(view[0] === full[0] && view[1] === full[1]);
}, 500);</script>"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason='needs chromium (apt-get install chromium)')
def test_the_plots_are_drawn_and_answer_to_the_hand(tmp_path: Path) -> None:
    merged(tmp_path)
    html = (tmp_path / 'report.html').read_text()
    used = html.replace('<body>', f'<body>{ERRORS}').replace('</body>', f'{USE}</body>')
    page = tmp_path / 'used.html'
    page.write_text(used)
    line = [CHROMIUM, *FLAGS, f'--user-data-dir={tmp_path / "profile"}', page.as_uri()]
    dom = subprocess.run(line, capture_output=True, text=True, timeout=120).stdout
    body = dict(re.findall(r'data-(\w+)="([^"]*)"', re.search(r'<body[^>]*>', dom)[0]))
    assert 'error' not in body
    for plot in PLOTS:
        drawn = dom[dom.index(f'id="{plot}"') :]
        assert re.search(r'class="curve[^>]* d="M[\d.]', drawn[: drawn.index('</svg>')]), plot
    hills = dom[dom.index('id="latency-plot"') :]
    assert 'sensor_age' in hills[: hills.index('</svg>')]
    # From 1 s before RUN to 8 s: 40 % is 2.6 s, 60 % is 4.4 s; there it moves at 0.55 m/s.
    assert body['joint'] == 'true'
    assert body['view'] == '2.60 to 4.40'
    assert 'at 3.50 s' in body['reading']
    assert 'measured 0.55' in body['reading']
    assert 'asked 0.50' in body['reading']
    assert body['whole'] == 'true'
