"""Makes the README's pictures from a walk of its own: `make pictures`.

Needs EGL (apt-get install libegl1 libgl1) and chromium for the picture of the report.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from g1_policy_node.cli import run
from g1_policy_node.tools.film import stage
from g1_policy_node.tools.motion import longest_stretch, yaw
from g1_policy_node.tools.parts import Part, read_parts

IMAGES = Path(__file__).with_name('images')
APART = 46
"""Rows between two robots of the picture of the walk, 0.92 s: a step cycle and a bit."""

CHROMIUM = (
    *('chromium', '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic'),
    *('--no-first-run', '--disable-background-networking', '--disable-component-update'),
    *('--disable-sync', '--hide-scrollbars', '--virtual-time-budget=4000'),
)


def main() -> None:
    """Walk, render, take the screenshots."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder, 'walk')
        if run(
            ['walk', '--lockstep', '--vx', '0.6', '--duration', '12', '--run-dir', str(run_dir)]
        ):
            sys.exit('pictures: the walk was not accepted')
        run(['report', str(run_dir)])
        picture_of_the_walk(run_dir)
        html = run_dir / 'report.html'
        first, plots = Path(folder, 'first.png'), Path(folder, 'dark.png')
        screenshot(html, first, 960, 1180)
        screenshot(html, plots, 960, 3300, dark=True)
        pair = Image.new('RGB', (1940, 1180), 'white')
        pair.paste(Image.open(first), (0, 0))
        pair.paste(Image.open(plots).crop((0, 2120, 960, 3300)), (980, 0))
        pair.save(IMAGES / 'report.webp', quality=80)
    for path in sorted(IMAGES.iterdir()):
        print(f'{path.name}: {path.stat().st_size / 1e3:.0f} kB')


def picture_of_the_walk(run_dir: Path) -> None:
    """Render one robot in several places of its path, seen from aside."""
    parts = read_parts(run_dir)
    assert parts.track is not None and parts.simulator is not None
    walked = longest_stretch(parts.track['running'].astype(bool))
    rows = np.arange(walked.start + 150, walked.start + 150 + 6 * APART, APART).tolist()
    middle = rows[len(rows) // 2]
    with stage(parts.simulator['joint_names'], 1400, 440) as render:
        image = render(parts.track, middle, *(r for r in rows if r != middle), point=from_aside)
    Image.fromarray(image).save(IMAGES / 'walk.webp', quality=85)


def from_aside(camera: Any, track: Part, row: int) -> None:
    """Look across the path, a little from ahead."""
    camera.lookat[:] = (*track['position'][row, :2], 0.66)
    camera.distance, camera.elevation = 2.75, -7.0
    camera.azimuth = float(np.degrees(yaw(track['quat_xyzw'][row : row + 1])[0])) + 108.0


def screenshot(page: Path, out: Path, width: int, height: int, dark: bool = False) -> None:
    """Take a picture of a page as chromium shows it."""
    scheme = ['--blink-settings=preferredColorScheme=0'] if dark else []
    with tempfile.TemporaryDirectory() as profile:
        size = [f'--user-data-dir={profile}', f'--window-size={width},{height}']
        line = [*CHROMIUM, *scheme, *size, f'--screenshot={out}', page.as_uri()]
        subprocess.run(line, check=True, stderr=subprocess.DEVNULL)


if __name__ == '__main__':
    main()
