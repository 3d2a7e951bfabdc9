import dataclasses
import sys
from pathlib import Path

import pytest

from g1_policy_node import bringup
from g1_policy_node.bringup import KINDS, Options, read_option, read_options
from g1_policy_node.types import UserError


def by_name(options: Options) -> dict[str, bringup.ProcessSpec]:
    return {spec.executable: spec for spec in bringup.processes(options)}


def test_defaults_as_a_user_would_type_them_are_the_defaults() -> None:
    typed = {name: bringup.default_text(name) for name in KINDS}
    assert read_options(typed) == Options()


def test_every_option_is_described() -> None:
    assert set(bringup.DESCRIPTIONS) == set(KINDS)
    assert all(bringup.DESCRIPTIONS.values())


@pytest.mark.parametrize('text', ['true', 'True'])
def test_true_is_read_in_both_spellings(text: str) -> None:
    assert read_option('use_sim_time', text) is True


def test_an_int_is_taken_for_a_number_and_a_device_keeps_its_colon() -> None:
    assert read_option('vx', '1') == 1.0
    assert isinstance(read_option('vx', '1'), float)
    assert read_option('device', 'cuda:0') == 'cuda:0'


@pytest.mark.parametrize(
    ('name', 'text', 'expected'),
    [
        ('vx', 'fast', "vx: expected a number, got 'fast'"),
        ('vx', 'nan', "vx: expected a number, got 'nan'"),
        ('duration', '-1', 'duration: -1 s is negative'),
        ('autostart', 'yes', "autostart: 'yes' is none of true, false"),
        ('sim', 'gazebo', "sim: 'gazebo' is none of mujoco, isaac, none"),
        ('log_level', 'loud', "log_level: 'loud' is none of debug, info, warn, error, fatal"),
        ('namespace', 'a b', "namespace: 'a b' is not a ROS namespace"),
        ('params_file', '/nowhere.yaml', 'params_file: no file /nowhere.yaml'),
        ('script', '/nowhere.yaml', 'script: no file /nowhere.yaml'),
        ('devices', 'cpu,', "devices: 'cpu,' has an empty entry"),
        ('storage', 'tar', "storage: 'tar' is none of mcap, sqlite3"),
    ],
)
def test_a_wrong_value_is_named_in_one_line(name: str, text: str, expected: str) -> None:
    with pytest.raises(UserError) as error:
        read_options({name: text})
    assert str(error.value) == expected


def test_lockstep_needs_a_simulator() -> None:
    with pytest.raises(UserError, match='lockstep: needs a simulator'):
        Options(lockstep=True, sim='none')


def test_a_walk_is_four_processes_and_less_where_something_else_takes_over() -> None:
    everything = ['mujoco_sim', 'policy_node', 'cmd_source', 'floor']
    assert list(by_name(Options(run_dir='/r'))) == everything
    assert list(by_name(Options(run_dir='/r', sim='none', cmd_source=False))) == [
        'policy_node',
        'floor',
    ]


def test_an_interface_puts_the_bridge_in_the_simulators_place() -> None:
    options = Options(sim='none', interface='eth0', run_dir='/tmp/run')
    names = [spec.executable for spec in bringup.processes(options)]
    assert names == ['unitree_bridge', 'policy_node', 'cmd_source', 'floor']
    assert bringup.processes(options)[0].parameters['interface'] == 'eth0'
    with pytest.raises(UserError, match='both be the robot'):
        Options(interface='eth0')


def test_what_is_left_open_is_left_to_the_parameter_file() -> None:
    specs = by_name(Options(run_dir='/r'))
    assert not {'policy', 'device', 'devices'} & set(specs['policy_node'].parameters)
    assert 'policy' not in specs['mujoco_sim'].parameters


def test_what_is_chosen_reaches_the_processes_it_concerns() -> None:
    specs = by_name(Options(run_dir='/r', policy='p', device='cuda:0', devices='cpu,cuda:0'))
    router = specs['policy_node'].parameters
    assert (router['policy'], router['device']) == ('p', 'cuda:0')
    assert router['devices'] == ['cpu', 'cuda:0']
    assert specs['mujoco_sim'].parameters['policy'] == 'p'
    assert (
        by_name(Options(run_dir='/r', devices='auto'))['policy_node'].parameters['devices']
        == 'auto'
    )


@pytest.mark.parametrize(
    ('options', 'simulated'),
    [
        (Options(run_dir='/r'), False),
        (Options(run_dir='/r', use_sim_time=True), True),
        (Options(run_dir='/r', lockstep=True), True),
    ],
)
def test_all_nodes_agree_on_whose_time_it_is(options: Options, simulated: bool) -> None:
    specs = by_name(options)
    assert specs['policy_node'].parameters['use_sim_time'] is simulated
    assert specs['cmd_source'].parameters['use_sim_time'] is simulated
    assert specs['mujoco_sim'].parameters['publish_clock'] is simulated
    # The simulator makes the time: it must not wait for it, but for those who live by it.
    assert 'use_sim_time' not in specs['mujoco_sim'].parameters
    followers = ['g1_policy', 'g1_cmd'] if simulated else None
    assert specs['mujoco_sim'].parameters.get('clock_listeners') == followers


def test_the_clock_waits_for_nobody_who_takes_no_time_from_it_and_for_nobody_alone() -> None:
    options = Options(run_dir='/r', lockstep=True, view=True, record=True)
    specs = by_name(options)
    assert list(specs)[:3] == ['tape_recorder', 'mujoco_sim', 'policy_node']
    assert specs['mujoco_sim'].parameters['clock_listeners'] == ['g1_policy']
    assert 'clock_listeners' not in bringup.simulator(options).parameters


def test_command_lines_run_our_modules_with_this_python() -> None:
    specs = by_name(Options(run_dir='/r', namespace='left', log_level='debug'))
    line = bringup.command_line(specs['policy_node'])
    assert line[:3] == [sys.executable, '-m', 'g1_policy_node.node']
    assert line[line.index('__ns:=/left') - 1] == '-r'
    assert line[line.index('--log-level') + 1] == 'debug'
    assert bringup.command_line(specs['floor']) == [
        sys.executable,
        '-m',
        'g1_policy_node.tools.floor',
        '/r',
    ]


@pytest.mark.parametrize('namespace', ['', 'left'])
def test_ros_sees_the_options_even_against_a_file_with_the_nodes_own_section(
    tmp_path: Path, namespace: str
) -> None:
    rclpy = pytest.importorskip('rclpy')
    params = tmp_path / 'user.yaml'
    params.write_text(
        '/**:\n  ros__parameters: {rate: 10.0}\n'
        f'/{namespace + "/" if namespace else ""}g1_cmd:\n  ros__parameters: {{vx: 9.0}}\n'
    )
    options = Options(
        run_dir=str(tmp_path), vx=-0.25, params_file=str(params), namespace=namespace
    )
    spec = by_name(options)['cmd_source']
    spec = dataclasses.replace(spec, parameters={**spec.parameters, 'script': 'a: "1"'})
    bringup.write_parameters([spec])
    context = rclpy.Context()
    rclpy.init(args=bringup.command_line(spec)[3:], context=context)
    node = rclpy.create_node(
        'name', context=context, automatically_declare_parameters_from_overrides=True
    )
    seen = {name: node.get_parameter(name).value for name in ('vx', 'rate', 'script', 'run_dir')}
    name = node.get_fully_qualified_name()
    node.destroy_node()
    rclpy.shutdown(context=context)
    assert name == (f'/{namespace}/g1_cmd' if namespace else '/g1_cmd')
    assert seen == {'vx': -0.25, 'rate': 10.0, 'script': 'a: "1"', 'run_dir': str(tmp_path)}


@pytest.mark.parametrize(
    ('options', 'sender'),
    [
        ({}, 'cmd_source'),
        ({'view': True}, 'g1_view'),
        ({'view': True, 'cmd_source': False}, ''),
        ({'joy': True, 'view': True}, 'joy_teleop'),
        ({'joy': True, 'cmd_source': False}, 'joy_teleop'),
    ],
)
def test_cmd_vel_has_one_sender(options: dict[str, bool], sender: str) -> None:
    chosen = Options(run_dir='/r', **options)
    assert chosen.sender == sender
    specs = by_name(chosen)
    assert ('cmd_source' in specs) is (sender == 'cmd_source')
    assert ('joy_teleop' in specs) is (sender == 'joy_teleop')
    assert ('g1_view' in specs) is options.get('view', False)
    if 'g1_view' in specs:
        assert specs['g1_view'].parameters['drive'] is (sender == 'g1_view')


def test_a_script_needs_the_command_source(tmp_path: Path) -> None:
    script = tmp_path / 'script.yaml'
    script.touch()
    with pytest.raises(UserError, match='script: the sender of cmd_vel is g1_view'):
        Options(view=True, script=str(script))
