"""`g1-policy tape`: record, replay, compare, info."""

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.devices import check_device_name
from g1_policy_node.run_folder import RUNS
from g1_policy_node.tools.ros_environment import find_wheels
from g1_policy_node.types import UserError

try:
    from g1_policy_node.tools.tape.tape import Tape, open_tape
except ImportError as error:
    raise UserError(f'tapes need rosbags, which is not installed ({error})') from None


def add_parser(commands: Any) -> None:
    """Add `tape` and its four commands."""
    tape = commands.add_parser('tape', help='record, replay and compare tapes')
    actions = tape.add_subparsers(metavar='ACTION', required=True)
    record = actions.add_parser('record', help='record what is on the topics, until Ctrl-C')
    record.add_argument('--out', type=Path, help='the new folder (default: under runs/)')
    record.add_argument('--storage', choices=('mcap', 'sqlite3'), default='mcap')
    record.add_argument('--duration', type=float, default=0.0, help='seconds; 0: until stopped')
    record.add_argument('--policy', default='g1_walk', help='whose contract and hashes to attach')
    record.add_argument('--namespace', default='', help='of the robot')
    record.set_defaults(run=_record)
    replay = actions.add_parser('replay', help='publish its sensors and commands, or --offline')
    replay.add_argument('--offline', action='store_true', help='through actor and safety, no ROS')
    replay.add_argument('--rate', type=float, default=1.0, help='times the original speed')
    replay.add_argument('--clock', action='store_true', help='publish /clock with its time')
    replay.add_argument('--loop', action='store_true', help='begin again at the end')
    replay.add_argument('--device', default='cpu', help='with --offline: cpu or cuda:N')
    replay.set_defaults(run=_replay)
    compare = actions.add_parser('compare', help='the same observations on every device')
    compare.add_argument('--devices', default='cpu', help='a list such as cpu,cuda:0')
    compare.add_argument('--ticks', type=int, default=500, help='rows at 50 Hz, for every way')
    compare.add_argument('--run-dir', default='', help='default: a new folder under runs/')
    compare.set_defaults(run=_compare)
    info = actions.add_parser('info', help='what is in it, and whether it is complete')
    info.set_defaults(run=_info)
    for parser in (replay, compare, info):
        parser.add_argument('bag', type=Path, help='a rosbag2 folder or file')
        parser.add_argument('--namespace', default='', help='whose topics, if there are several')
    for parser in (replay, compare):
        parser.add_argument('--policy', default='g1_walk', help='a folder, or a name')
    for parser in (replay, info):
        parser.add_argument('--json', action='store_true', help='print figures as JSON')


def _open(arguments: argparse.Namespace) -> Tape:
    tape = open_tape(arguments.bag, arguments.namespace)
    for note in tape.bag.notes:
        Console(stderr=True).print(f'note: {note}', style='yellow', highlight=False)
    return tape


def _record(arguments: argparse.Namespace) -> int:
    from g1_policy_node.tools.tape.recorder import record_command

    find_wheels()
    name = f'{time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())}-tape'
    return record_command(
        arguments.out or RUNS / name,
        arguments.storage,
        arguments.policy,
        arguments.namespace,
        arguments.duration,
    )


def _replay(arguments: argparse.Namespace) -> int:
    if arguments.offline:
        return _replay_offline(arguments)
    from g1_policy_node.tools.tape.player import play_command

    if not arguments.rate > 0:
        raise UserError(f'rate: {arguments.rate:g} is not above 0')
    find_wheels()
    return play_command(
        _open(arguments),
        arguments.namespace,
        arguments.rate,
        arguments.clock,
        arguments.loop,
        arguments.json,
    )


def _replay_offline(arguments: argparse.Namespace) -> int:
    from g1_policy_node.tools.tape.offline import replay_offline

    bundle = load_bundle(resolve_bundle(arguments.policy))
    load = partial(
        load_actor,
        bundle.contract.network,
        bundle.weights,
        check_device_name(arguments.device),
    )
    result = replay_offline(_open(arguments), bundle, load)
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        _show_replay(result)
    return 1 if result['reproduced'] is False else 0


def _show_replay(result: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    us = result['forward_us']
    console.print(
        f'{result["ticks"]} ticks on {result["device"]}, forward p50 {us["p50"]:.0f}, '
        f'p99 {us["p99"]:.0f} us one by one'
    )
    if result['policy_differs']:
        console.print(f'policy: {result["policy_differs"]}', style='yellow')
    if result['reconstructed']:
        console.print(
            'reconstructed from the sensor topics: latencies only, no actions to compare'
        )
        return
    console.print(
        f'actions differ by at most {result["action_difference"]:.2g} '
        f'(tolerance {result["tolerance"]:g})'
    )
    if result['targets'] and result['targets']['compared']:
        held = result['targets']
        console.print(
            f'joint targets differ by at most {held["difference_rad"]:.2g} rad in '
            f'{held["compared"]} ticks; {held["verdicts_differ"]} verdicts differ'
        )
    console.print('reproduced' if result['reproduced'] else 'not reproduced', style='bold')


def _compare(arguments: argparse.Namespace) -> int:
    from g1_policy_node.tools.tape.compare import Request, compare

    console = Console(highlight=False)
    bundle = load_bundle(resolve_bundle(arguments.policy))
    devices = tuple(map(check_device_name, arguments.devices.split(',')))
    request = Request(devices, arguments.ticks, arguments.run_dir)
    with console.status('') as status:
        summary = compare(_open(arguments), bundle, request, status.update)
    for title, key in (('at 50 Hz, us', 'at_period_us'), ('tight loop, us', 'tight_us')):
        console.print(_latency_table(title, summary[key]))
    _show_batches(console, summary['batches'])
    actions = summary['actions']
    if actions['worst'] is not None:
        within = 'within' if actions['within'] else 'NOT within'
        console.print(f'actions: {actions["worst"]:.2g} apart, {within} {actions["tolerance"]:g}')
    for item in summary['not_measured']:
        console.print(f'not measured: {item}', soft_wrap=True)
    console.print(summary['sentence'], style='bold', soft_wrap=True)
    console.print(summary['run_dir'], soft_wrap=True)
    return 0 if actions['within'] is not False else 1


def _latency_table(title: str, figures: dict[str, Any]) -> Table:
    names = ('p50', 'p95', 'p99', 'p99.9', 'max')
    table = Table(title, *names, box=SIMPLE)
    for name, row in figures.items():
        table.add_row(name, *('-' if row[p] is None else f'{row[p]:.0f}' for p in names))
    return table


def _show_batches(console: Console, cells: list[dict[str, Any]]) -> None:
    sizes = sorted({cell['batch'] for cell in cells})
    if not sizes:
        return
    table = Table('batch, p50 us', *map(str, sizes), box=SIMPLE)
    for name in dict.fromkeys(_cell_name(cell) for cell in cells):
        by_size = {c['batch']: c['total_us']['p50'] for c in cells if _cell_name(c) == name}
        table.add_row(name, *(f'{by_size[size]:.0f}' for size in sizes))
    console.print(table)


def _cell_name(cell: dict[str, Any]) -> str:
    threads = f', {cell["threads"]} threads' if cell['device'] == 'cpu' else ''
    return f'{cell["device"]} {cell["path"]}{threads}'


def _info(arguments: argparse.Namespace) -> int:
    from g1_policy_node.tools.tape.info import describe

    found = describe(_open(arguments))
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    console = Console(highlight=False, soft_wrap=True)
    table = Table('topic', 'messages', 'Hz', 'p50 ms', 'p99 ms', 'gaps', 'longest', box=SIMPLE)
    for topic, row in found['topics'].items():
        if row['rate_hz'] is None:
            table.add_row(topic, str(row['messages']), *['-'] * 5)
            continue
        period = row['period_ms']
        table.add_row(
            topic,
            str(row['messages']),
            f'{row["rate_hz"]:.1f}',
            f'{period["p50"]:.1f}',
            f'{period["p99"]:.1f}',
            str(row['gaps']),
            f'{row["longest_gap_ms"]:.0f} ms',
        )
    console.print(f'{found["duration_s"]:.1f} s, {found["messages"]} messages, {found["storage"]}')
    console.print(table)
    if found['steps']:
        steps = found['steps']
        console.print(f'ticks: {steps["rows"]} of {steps["slots"]} slots ({steps["covered"]:.2%})')
    if found['sensor_age_ms']:
        age = found['sensor_age_ms']
        console.print(
            f'age of joint_states at a tick: p50 {age["p50"]:.1f}, p99 {age["p99"]:.1f} ms'
        )
    for name, value in found['custom'].items():
        console.print(f'{name}: {value}')
    for problem in found['complete']['problems']:
        console.print(f'incomplete: {problem}', style='yellow')
    console.print('complete' if found['complete']['accepted'] else 'not complete', style='bold')
    return 0
