"""Isaac Lab's deploy.yaml, as unitree_rl_lab writes and its controller reads it.

Format: unitree_rl_lab/source/unitree_rl_lab/unitree_rl_lab/utils/export_deploy_cfg.py and
deploy/include/isaaclab/manager/. Gains are in SDK order, everything else in policy order;
`joint_ids_map[i]` is the SDK motor of policy joint i. History is kept per term, oldest first,
and the first observation fills all of it. A frame is clip(value) * scale.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from g1_policy_node.contract import Contract
from g1_policy_node.joints import G1_JOINT_NAMES, describe_mismatch
from g1_policy_node.schema import MAX_TEXT_BYTES, read_small_file
from g1_policy_node.tools.formats.said import Part, needed, simple_scale
from g1_policy_node.tools.formats.terms import term_named
from g1_policy_node.types import UserError

EMBEDDED = 'g1_policy_contract'
"""The key under which this package's exports carry the whole contract."""

ALL_JOINTS = ('tag:yaml.org,2002:python/object/apply:builtins.slice', [None, None, None])
_CLIP_ROUNDING = 1e-9
MAX_VALUES = 50_000
"""Of a deploy.yaml: a large one has some thousand."""


class _TagReader(yaml.SafeLoader):
    """Reads a tagged node as (tag, plain data); nothing is built, looked up or run."""


def _tagged(loader: Any, suffix: str, node: Any) -> tuple[str, Any]:
    if isinstance(node, yaml.SequenceNode):
        return suffix, loader.construct_sequence(node, deep=True)
    if isinstance(node, yaml.MappingNode):
        return suffix, loader.construct_mapping(node, deep=True)
    return suffix, loader.construct_scalar(node)


_TagReader.add_multi_constructor('', _tagged)


def read_tagged_yaml(path: Path) -> Mapping[str, Any]:
    """Return a YAML file's map, every tagged node as (tag, data); UserError where it is none."""
    raw = read_small_file(path, MAX_TEXT_BYTES)
    try:
        data = yaml.load(raw.decode(), Loader=_TagReader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f'{path}: not YAML ({" ".join(str(error).split()):.200})') from None
    _check_size(data, path)
    if not isinstance(data, Mapping):
        raise UserError(f'{path}: expected a map, got {data!r:.80}')
    return data


def _check_size(data: Any, path: Path) -> None:
    """Refuse what aliases make of a small file: a billion values."""
    waiting, seen = [data], 0
    while waiting:
        item = waiting.pop()
        seen += 1
        if seen > MAX_VALUES:
            raise UserError(f'{path}: more than {MAX_VALUES} values, aliases counted each time')
        if isinstance(item, Mapping):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            waiting += item


def deploy_part(data: Mapping[str, Any], extras: Mapping[str, Any], where: str) -> Part:
    """Return what a deploy.yaml says of a contract; UserError names what does not fit."""
    try:
        return _part(data, extras, where)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f'{where}: not a whole deploy.yaml ({error!r:.120})') from None


def _part(data: Mapping[str, Any], extras: Mapping[str, Any], where: str) -> Part:
    sdk = needed(extras, 'sdk_joint_names', where)
    ids = data['joint_ids_map']
    if sorted(ids) != list(range(len(sdk))):
        raise UserError(f'{where}: joint_ids_map is no order of the {len(sdk)} sdk_joint_names')
    names = [sdk[i] for i in ids]
    default = _by_name(names, data['default_joint_pos'], 'default_joint_pos', where)
    kp = _by_name(sdk, data['stiffness'], 'stiffness', where)
    kd = _by_name(sdk, data['damping'], 'damping', where)
    ranges = data['commands']['base_velocity']['ranges']
    parts = {
        'step_dt': data['step_dt'],
        'joint_names': names,
        'joints': {
            name: {'default_position': default[name], 'stiffness': kp[name], 'damping': kd[name]}
            for name in names
        },
        'action': _action(data['actions'], names, where),
        'observations': [
            _row(name, row, extras, where) for name, row in data['observations'].items()
        ],
        'commands': {key: ranges[key] for key in ('lin_vel_x', 'lin_vel_y', 'ang_vel_z')},
    }
    return Part(where, parts, _CLIP_ROUNDING)


def _by_name(names: Sequence[str], values: Any, key: str, where: str) -> dict[str, Any]:
    if len(values) != len(names):
        raise UserError(f'{where}: {key} has {len(values)} values for {len(names)} joints')
    return dict(zip(names, values, strict=True))


def _action(actions: Mapping[str, Any], names: list[str], where: str) -> dict[str, Any]:
    if list(actions) != ['JointPositionAction']:
        raise UserError(
            f'{where}: actions are {", ".join(actions)}, not JointPositionAction alone'
        )
    term = actions['JointPositionAction']
    if term.get('joint_ids') not in (None, ALL_JOINTS):
        raise UserError(f'{where}: joint_ids {term["joint_ids"]!r:.80} are not all joints')
    scale = _by_name(names, term['scale'], 'scale', where)
    offset = _by_name(names, term['offset'], 'offset', where)
    said: dict[str, Any] = {'scale': scale, 'offset': offset, 'clip': None}
    if (clips := term.get('clip')) is not None:  # Isaac Lab clips the target, not the raw action
        raw = [
            [(bound - offset[name]) / scale[name] for bound in clip]
            for name, clip in _by_name(names, clips, 'clip', where).items()
        ]
        if any(abs(a - b) > 1e-6 for pair in raw for a, b in zip(pair, raw[0], strict=True)):
            raise UserError(f'{where}: clip is not one range of the raw action for all joints')
        said['clip'] = raw[0]
    return said


def _row(
    name: str, row: Mapping[str, Any], extras: Mapping[str, Any], where: str
) -> dict[str, Any]:
    term = term_named(name, extras, where)
    if others := {k: v for k, v in (row['params'] or {}).items() if k != 'command_name'}:
        raise UserError(f'{where}: observation {name} has parameters {others!r:.80}')
    return {
        'term': term,
        'size': len(row['scale']),
        'scale': simple_scale(row['scale']),
        'clip': row['clip'],
        'history': row['history_length'],
        'history_order': 'oldest_first',
    }


def deploy_text(contract: Contract) -> str:
    """Return the contract as a deploy.yaml in full precision, its own form embedded."""
    if wrong := describe_mismatch(contract.joint_names, G1_JOINT_NAMES):
        raise UserError(f'{contract.name}: deploy.yaml needs the joints of the G1: {wrong}')
    names = contract.joint_names
    by_sdk = [contract.joints[name] for name in G1_JOINT_NAMES]
    limits = contract.to_mapping()['commands']
    data = {
        'joint_ids_map': [G1_JOINT_NAMES.index(name) for name in names],
        'step_dt': contract.step_dt,
        'stiffness': [joint.stiffness for joint in by_sdk],
        'damping': [joint.damping for joint in by_sdk],
        'default_joint_pos': [contract.joints[name].default_position for name in names],
        'commands': {'base_velocity': {'ranges': {**limits, 'heading': None}}},
        'actions': {'JointPositionAction': _action_data(contract)},
        'observations': _rows(contract),
        EMBEDDED: contract.to_mapping(),
    }
    return str(yaml.safe_dump(data, sort_keys=False, width=100, default_flow_style=None))


def _action_data(contract: Contract) -> dict[str, Any]:
    action, names = contract.action, contract.joint_names
    clip = action.clip
    return {
        'clip': clip and [[action.offset[n] + action.scale[n] * c for c in clip] for n in names],
        'joint_names': ['.*'],
        'scale': [action.scale[name] for name in names],
        'offset': [action.offset[name] for name in names],
        'joint_ids': None,
    }


def _rows(contract: Contract) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for term in contract.observations:
        if term.term in rows:
            raise UserError(f'{contract.name}: deploy.yaml cannot have {term.term} twice')
        if term.history > 1 and term.history_order != 'oldest_first':
            raise UserError(f'{contract.name}: deploy.yaml has no history {term.history_order}')
        scale = term.scale if isinstance(term.scale, tuple) else (term.scale,) * term.size
        rows[term.term] = {
            'params': {'command_name': 'base_velocity'}
            if term.term == 'velocity_commands'
            else {},
            'clip': list(term.clip) if term.clip else None,
            'scale': list(scale),
            'history_length': term.history,
        }
    return rows
