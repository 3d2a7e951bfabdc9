"""The view in a real browser, without a window, on a walking robot."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytest.importorskip('viser', reason='viser, the extra view, is not installed')
pytest.importorskip('selenium', reason='selenium is not installed')

import numpy as np
import rclpy
import viser
from geometry_msgs.msg import Twist
from PIL import Image
from rclpy.node import Node
from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from std_msgs.msg import String
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from g1_policy_node.bringup import Options, processes, write_parameters
from g1_policy_node.newest import EVERY_LATCHED_QOS, NewestMessage
from g1_policy_node.run_folder import VIEW_URL
from g1_policy_node.tools.crew import Crew

CHROMIUM, CHROMEDRIVER = shutil.which('chromium'), shutil.which('chromedriver')
PATIENCE_S = 90.0
# Without a graphics card, and as root in a container.
FLAGS = (
    '--headless=new',
    '--no-sandbox',
    '--disable-dev-shm-usage',
    '--use-angle=swiftshader',
    '--enable-unsafe-swiftshader',
    '--window-size=1000,600',
    '--force-device-scale-factor=0.5',  # a quarter of the pixels to draw
)
pytestmark = [
    pytest.mark.ros,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        not (CHROMIUM and CHROMEDRIVER),
        reason='no browser: apt-get install chromium chromium-driver',
    ),
]


def until(what: str, condition: Callable[[], Any]) -> Any:
    """Wait, as long as a loaded machine may take, for what must come; return it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        # The driver gives a page 10 s to draw itself, which on a loaded machine is not enough.
        with suppress(TimeoutException):
            if result := condition():
                return result
        assert time.monotonic() < deadline, f'{what} did not come'
        time.sleep(0.2)


class Walk:
    """What the robot's side says: the newest mode and command."""

    def __init__(self, node: Node, run_dir: Path) -> None:
        self.run_dir = run_dir
        self._modes = NewestMessage(node, String, 'g1_policy/mode', EVERY_LATCHED_QOS)
        self._commands = NewestMessage(node, Twist, 'cmd_vel')
        self._mode = ''

    def mode(self) -> str:
        while taken := self._modes.take():
            self._mode = taken.message.data
        return self._mode

    def vx(self) -> float | None:
        taken = self._commands.take()
        return taken.message.linear.x if taken else None


@pytest.fixture(scope='module')
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """A walk whose command are the sliders of the view, in lock-step: no load makes it fall."""
    run_dir = tmp_path_factory.mktemp('view')
    options = Options(view=True, lockstep=True, vx=0.5, run_dir=str(run_dir))
    specs = processes(options)
    write_parameters(specs)
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('tester', context=context)
    with Crew(specs, run_dir, os.environ):
        yield Walk(node, run_dir)
    node.destroy_node()
    rclpy.shutdown(context=context)


@pytest.fixture(scope='module')
def url(walk: Walk) -> str:
    path = walk.run_dir / VIEW_URL
    until('the view', path.is_file)
    told: str = json.loads(path.read_text())['url']
    return told


@pytest.fixture(scope='module')
def browser(url: str) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(CHROMEDRIVER))
    try:
        driver.set_page_load_timeout(PATIENCE_S)
        driver.get(url)
        yield driver
    finally:
        driver.quit()


def button(browser: Any, name: str) -> Any:
    found = browser.find_elements('xpath', f'//button[normalize-space()="{name}"]')
    return found[0] if found else None


def robot(browser: Any, file: Path) -> np.ndarray:
    """Where the page shows the robot's black parts (H, W): the ground is lighter.

    The panel on the right and a notice at the top left are left out.
    """
    browser.save_screenshot(str(file))
    colours = np.asarray(Image.open(file).convert('RGB'))
    return colours[85:, 100:325].max(2) < 90


def test_only_this_machine_is_served(url: str) -> None:
    assert url.startswith('http://127.0.0.1:')
    port = int(url.rpartition(':')[2])
    table = Path('/proc/net/tcp').read_text().splitlines()[1:]
    listening = {row.split()[1] for row in table if row.split()[3] == '0A'}
    assert {item for item in listening if item.endswith(f':{port:04X}')} == {
        f'0100007F:{port:04X}'
    }


@pytest.mark.parametrize('origin', ['http://example.org', 'http://127.0.0.1.example.org', 'null'])
def test_a_page_of_another_site_is_refused(url: str, origin: str) -> None:
    protocol = Subprotocol(f'viser-v{viser.__version__}')
    place = url.replace('http', 'ws')
    with (
        pytest.raises(InvalidStatus, match='403'),
        connect(place, origin=Origin(origin), subprotocols=[protocol]),
    ):
        pass
    with connect(place, origin=Origin(url), subprotocols=[protocol], max_size=None) as own:
        assert own.recv(PATIENCE_S)


def test_the_sliders_are_the_command(walk: Walk, url: str) -> None:
    assert until('a command', walk.vx) == 0.5


def test_the_page_shows_a_robot_that_moves(walk: Walk, browser: Any) -> None:
    until('RUN', lambda: walk.mode().startswith('RUN'))
    until('the panel', lambda: button(browser, 'E-STOP'))
    file = walk.run_dir / 'page.png'
    seen = until('the robot', lambda: [m for m in [robot(browser, file)] if m.sum() > 40])
    until('a motion', lambda: (robot(browser, file) ^ seen[0]).sum() > 40)


def press(browser: Any, name: str, answer: str) -> None:
    until('the panel', lambda: button(browser, name)).click()
    until('the answer on the page', lambda: answer in browser.page_source)


def test_stand_zeroes_the_sliders_and_run_follows_them_again(walk: Walk, browser: Any) -> None:
    until('RUN', lambda: walk.mode().startswith('RUN'))
    press(browser, 'Stand', 'standing; still in RUN')
    until('a zero command', lambda: walk.vx() == 0.0)
    press(browser, 'Run', 'following cmd_vel')


def test_push_pushes_the_robot(walk: Walk, browser: Any) -> None:
    press(browser, 'Push', 'pushed by 0.8 m/s')


def test_the_estop_button_damps_until_reset(walk: Walk, browser: Any) -> None:
    until('RUN', lambda: walk.mode().startswith('RUN'))
    press(browser, 'E-STOP', 'damped')
    until('DAMP', lambda: walk.mode().startswith('DAMP: e-stop requested'))

    def reset() -> bool:
        """Press until accepted: on a loaded machine a sample may be too old just then."""
        until('the panel', lambda: button(browser, 'Reset')).click()
        time.sleep(2)
        return 'reset; waiting' in browser.page_source

    until('a reset', reset)
    until('RUN again', lambda: walk.mode().startswith('RUN'))


def test_a_phone_shows_the_whole_robot_and_the_estop(walk: Walk, browser: Any) -> None:
    phone = {'width': 390, 'height': 844, 'deviceScaleFactor': 0.5, 'mobile': True}
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', phone)
    browser.refresh()
    file = walk.run_dir / 'phone.png'

    def feet() -> bool:
        browser.save_screenshot(str(file))
        colours = np.asarray(Image.open(file).convert('RGB'))
        return bool((colours[205:250].max(2) < 90).sum() > 40)

    estop = until('the panel', lambda: button(browser, 'E-STOP'))
    until('the panel at rest', lambda: estop.rect['y'] > 500)  # all of it below the feet
    assert estop.rect['y'] + estop.rect['height'] < phone['height']
    until('the feet', feet)
