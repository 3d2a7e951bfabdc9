"""The layouts for other people's programs name topics and figures that there are."""

import json
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip('rclpy')

import yaml
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from samples import CONTRACT
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from g1_policy_node.diagnostics import timing_figures
from g1_policy_node.paths import find_data
from g1_policy_node.timing import INT_COLUMNS, Recorder

TYPES = {
    '/cmd_vel': Twist,
    '/odom': Odometry,
    '/joint_command': JointState,
    '/joint_states': JointState,
    '/g1_policy/mode': String,
    '/diagnostics': DiagnosticArray,
}
COUNTS = {'deadline_misses', 'longest_gap_slots'}


def figures() -> set[str]:
    """The names of the figures in /diagnostics, once every stage has been reached."""
    recorder = Recorder()
    for tick in (1, 2):
        recorder.add(tuple([tick] * len(INT_COLUMNS)), np.zeros(3))
    return set(timing_figures(recorder)) | COUNTS


def has_field(message: Any, path: list[str]) -> None:
    for name in path:
        assert name in message.get_fields_and_field_types(), (message, path)
        message = getattr(message, name)


def test_foxglove_plots_what_is_published() -> None:
    layout = json.loads(find_data('config/foxglove.json').read_text())
    panels = layout['configById']
    shown = set(re.findall(r'"(\w+!\w+)"', json.dumps(layout['layout'])))
    assert shown == set(panels)
    values = [path['value'] for panel in panels.values() for path in panel.get('paths', [])]
    assert values
    assert {re.match(r'[/\w]+', value)[0] for value in values} == set(TYPES)
    for value in values:
        topic, path = value.split('.', 1)
        if topic != '/diagnostics':
            has_field(TYPES[topic](), re.findall(r'[a-z_]+', path))
    keys = {key for value in values for key in re.findall(r'key=="([^"]+)"', value)}
    assert keys
    assert keys <= figures()
    assert CONTRACT.joint_names[3] == 'left_knee_joint'


def test_plotjuggler_plots_what_is_published() -> None:
    root = ElementTree.parse(find_data('config/plotjuggler.xml')).getroot()
    names = [curve.get('name', '') for curve in root.iter('curve')]
    prefix = '/diagnostics/g1//g1_policy: router/'
    keys = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
    assert keys
    assert keys <= figures()
    for name in names:
        _, topic, *path = name.split('/')
        if f'/{topic}' in ('/cmd_vel', '/odom'):
            has_field(TYPES[f'/{topic}'](), path)
    joints = {name.split('/')[2] for name in names if name.startswith('/joint_')}
    assert joints
    assert joints <= set(CONTRACT.joint_names)
    for splitter in root.iter('DockSplitter'):
        count = int(splitter.get('count', ''))
        assert count == len(splitter) == len(splitter.get('sizes', '').split(';'))


def test_rviz_looks_from_the_frames_that_are_published() -> None:
    layout = yaml.safe_load(find_data('config/g1.rviz').read_text())['Visualization Manager']
    assert layout['Global Options']['Fixed Frame'] == 'odom'
    assert layout['Views']['Current']['Target Frame'] == 'pelvis'
