"""`g1-policy bundle show|check|import|export|diff`: bundles, made, verified, looked at."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import (
    ACTION_TOLERANCE,
    Bundle,
    check_actor,
    load_bundle,
    resolve_bundle,
)
from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.devices import check_device_name
from g1_policy_node.tools.bundle_export import EXPORTS, export_bundle
from g1_policy_node.tools.bundle_import import find_contract, import_bundle


def add_parser(subparsers: Any) -> None:
    """Add `bundle` to the command line; each command sets `run`, a function(args) -> exit code."""
    commands = subparsers.add_parser(
        'bundle', help='look at, verify, make and compare policy bundles'
    ).add_subparsers(required=True, metavar='COMMAND')

    show = commands.add_parser('show', help='print the observation table, joints and origin')
    show.add_argument('policy', nargs='?', default='g1_walk', help='a name or a folder')
    show.set_defaults(run=_show)

    check = commands.add_parser('check', help='verify a bundle, golden actions included')
    check.add_argument('policy', nargs='?', default='g1_walk', help='a name or a folder')
    check.add_argument('--device', help='check this device as well as cpu, such as cuda:0')
    check.set_defaults(run=_check)

    _add_import(commands)
    export = commands.add_parser('export', help='write a bundle in the format of another project')
    export.add_argument('policy', help='a name or a folder')
    export.add_argument('--format', required=True, choices=EXPORTS, help='of the files to write')
    export.add_argument('--out', type=Path, required=True, help='the folder to make')
    export.set_defaults(run=_export)

    diff = commands.add_parser('diff', help='list every field in which two contracts differ')
    diff.add_argument('a', help='a name, a bundle folder or a contract file')
    diff.add_argument('b', help='likewise')
    diff.set_defaults(run=_diff)


def _add_import(commands: Any) -> None:
    make = commands.add_parser('import', help='make a bundle of a policy from another project')
    make.add_argument(
        'source',
        type=Path,
        help='an rsl_rl checkpoint, a deploy.yaml, an ONNX or TorchScript file, a LEAPP pipeline; '
        'or the folder of one',
    )
    make.add_argument(
        '--contract',
        action='append',
        default=[],
        metavar='FILE',
        help='the contract, or the parts of it that the source does not say: a YAML file, or a '
        'name under config/robots; may be given several times',
    )
    make.add_argument('--model', type=Path, help='the network of a deploy.yaml, if elsewhere')
    make.add_argument('--out', type=Path, required=True, help='the folder to make')
    make.add_argument('--manifest', type=Path, help='JSON: what is known about the training')
    make.add_argument('--seed', type=int, default=0, help='of the golden rollout')
    make.add_argument('--overwrite', action='store_true', help='replace the bundle at --out')
    make.set_defaults(run=_import)


def _show(args: argparse.Namespace) -> int:
    bundle = load_bundle(resolve_bundle(args.policy))
    contract, console = bundle.contract, Console(highlight=False, markup=False)
    sizes = ' - '.join(map(str, contract.network.sizes))
    console.print(f'{contract.name}   {bundle.path}', soft_wrap=True)
    console.print(f'weights_sha256  {bundle.weights_sha256}')
    console.print(f'contract_sha256 {bundle.contract_sha256}')
    console.print(
        f'network {sizes}, {contract.network.activation}, normalizer {contract.normalizer}; '
        f'{1 / contract.step_dt:g} Hz'
    )
    console.print(f'\nobservation, {contract.observation_size} wide\n{contract.table()}\n')
    console.print(_joint_table(contract))
    for line in _contract_lines(contract):
        console.print(line)
    console.print(_manifest_table(bundle))
    return 0


def _joint_table(contract: Contract) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column('joint, policy order', no_wrap=True)
    for head in ('default', 'scale', 'kp', 'kd', 'armature', 'range rad', 'rad/s', 'N m'):
        table.add_column(head, justify='right', no_wrap=True)
    for i, name in enumerate(contract.joint_names):
        joint = contract.joints[name]
        lower, upper = joint.position_limits
        table.add_row(
            f'{i:>2} {name.removesuffix("_joint")}',
            f'{joint.default_position:g}',
            f'{contract.action.scale[name]:g}',
            f'{joint.stiffness:.4g}',
            f'{joint.damping:.3g}',
            f'{joint.armature:.4f}',
            f'{lower:.2f} {upper:5.2f}',
            f'{joint.velocity_limit:g}',
            f'{joint.effort_limit_training:g}/{joint.effort_limit_hardware:g}',
        )
    return table


def _contract_lines(contract: Contract) -> list[str]:
    lower, upper = contract.command_limits.T
    moved = [
        name
        for name in contract.joint_names
        if contract.action.offset[name] != contract.joints[name].default_position
    ]
    lines = [
        'N m: effort limit in training / of the hardware; armature kg m^2',
        f'action offset: {"the default pose" if not moved else "differs at " + ", ".join(moved)}'
        f'; raw action clipped to {contract.action.clip or "nothing"}',
        'commands: vx {:g}..{:g}, vy {:g}..{:g} m/s, yaw {:g}..{:g} rad/s'.format(
            *(value for pair in zip(lower, upper, strict=True) for value in pair)
        ),
    ]
    if contract.gait:
        gait = contract.gait
        lines.append(
            f'gait: period {gait.period} ticks, feet at {list(gait.offsets)}, contact below '
            f'{gait.contact}; stands below {gait.stand_below:g}'
        )
    return [*lines, '']


def _manifest_table(bundle: Bundle) -> Table:
    """What the manifest says; its hashes are shown above, and null is unknown."""
    rows = len(bundle.golden_observations)
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow='fold')
    table.add_row('golden rows', str(rows))
    for key, value in _flat(dataclasses.asdict(bundle.manifest)).items():
        if not key.endswith('_sha256'):
            table.add_row(key, 'unknown' if value is None else str(value))
    return table


def _check(args: argparse.Namespace) -> int:
    bundle = load_bundle(resolve_bundle(args.policy))
    print(f'{bundle.path}: contract, weights, golden vectors and manifest fit each other')
    for device in dict.fromkeys(('cpu', args.device or 'cpu')):
        actor = load_actor(bundle.contract.network, bundle.weights, check_device_name(device))
        worst = check_actor(bundle, actor)
        print(
            f'{device}: largest action difference {worst:.2g} over '
            f'{len(bundle.golden_actions)} golden rows (allowed {ACTION_TOLERANCE:g})'
        )
    return 0


def _import(args: argparse.Namespace) -> int:
    bundle = import_bundle(
        args.source,
        [find_contract(given) for given in args.contract],
        args.out,
        args.manifest,
        args.seed,
        args.overwrite,
        args.model,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    print(f'{bundle.path}: weights_sha256 {bundle.weights_sha256}')
    print(f'golden vectors: {len(bundle.golden_actions)} rows; {bundle.manifest.golden_source}')
    return 0


def _export(args: argparse.Namespace) -> int:
    for path in export_bundle(load_bundle(resolve_bundle(args.policy)), args.format, args.out):
        print(path)
    return 0


def _diff(args: argparse.Namespace) -> int:
    """Exit code 0 where the contracts are equal, 1 where they differ."""
    a, b = (_flat(_read_contract(given).to_mapping()) for given in (args.a, args.b))
    keys = [*a, *(key for key in b if key not in a)]
    absent = object()
    differing = [key for key in keys if a.get(key, absent) != b.get(key, absent)]
    for key in differing:
        left, right = (json.dumps(x[key]) if key in x else 'not there' for x in (a, b))
        print(f'{key}: {left} | {right}')
    print(f'fields that differ: {len(differing)}' if differing else 'the contracts are equal')
    return 1 if differing else 0


def _read_contract(given: str) -> Contract:
    if given.endswith(('.yaml', '.yml')):
        return load_contract(Path(given))
    return load_bundle(resolve_bundle(given)).contract


def _flat(data: object, prefix: str = '') -> dict[str, Any]:
    """Return nested maps and lists as dotted names: `joints.left_knee_joint.damping`.

    An observation is named by its place and its term, a list of names keeps its order.
    """
    pairs: list[tuple[str, Any]]
    if isinstance(data, Mapping) and data:
        pairs = [(f'{prefix}.{key}' if prefix else str(key), item) for key, item in data.items()]
    elif isinstance(data, list) and data:
        pairs = [(f'{prefix}[{i}]', item) for i, item in enumerate(data)]
    else:
        return {prefix: data}
    return {name: value for key, item in pairs for name, value in _flat(item, key).items()}
