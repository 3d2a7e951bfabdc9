"""LEAPP 0.7: the pipeline file of NVIDIA's export, with its ONNX or TorchScript model beside it.

Format: leapp 0.7.2 (Apache-2.0), leapp/utils/tensor_description.py and inference_manager.py.
Read are pipelines of one model whose inputs are observation terms (by kind, or by a key `term`
of this package's exports), with the default pose, clips and scales inside the model, and whose
outputs are joint targets, perhaps the action that is fed back, and perhaps the gains.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from g1_policy_node.schema import read_small_file
from g1_policy_node.tools.formats.deploy_yaml import EMBEDDED, read_tagged_yaml
from g1_policy_node.tools.formats.graph import Block, Constant, Mlp, Value, read_outputs
from g1_policy_node.tools.formats.onnx_file import MAX_MODEL_BYTES, read_onnx
from g1_policy_node.tools.formats.said import Part, needed, part_of, simple_scale
from g1_policy_node.tools.formats.terms import term_named
from g1_policy_node.tools.formats.torchscript import read_torchscript
from g1_policy_node.types import UserError

KINDS = {
    'base_lin_vel': 'state/body/linear_velocity',
    'base_ang_vel': 'state/body/angular_velocity',
    'projected_gravity': 'state/vector3d',
    'velocity_commands': 'command/body/velocity',
    'joint_pos_rel': 'state/joint/position',
    'joint_vel_rel': 'state/joint/velocity',
}
"""What each term is measured as; a vector in general may be any, so it is not read as gravity."""

_TERMS = {kind: term for term, kind in KINDS.items() if kind != 'state/vector3d'}
ROUNDING = 1e-5
"""Models carry float32, contracts more."""


class LeappFile(NamedTuple):
    """A pipeline of one model: its description, what its outputs are, and the files' names."""

    node: str
    description: Mapping[str, Any]
    pipeline: Mapping[str, Any]
    values: dict[str, Value]
    model: Path


def read_leapp(path: Path) -> LeappFile:
    """Read a pipeline file and its model; UserError where it is more than one policy."""
    data = read_tagged_yaml(path)
    try:
        models, pipeline = data['models'], data['pipeline']
        if len(models) != 1:
            raise UserError(f'{path}: {len(models)} models ({", ".join(models)}), not one policy')
        node, description = next(iter(models.items()))
        parameters = description['parameters']
        model = (path.parent / parameters['model_path']).resolve()
        if not model.is_relative_to(path.parent.resolve()):
            raise UserError(f'{path}: model_path {parameters["model_path"]!r} leaves the folder')
        raw = read_small_file(model, MAX_MODEL_BYTES)
        if hashlib.sha256(raw).hexdigest() != parameters['sha256sum']:
            raise UserError(f'{model}: is not the file whose sha256sum {path} gives')
        values = _read_model(model, parameters['backend'], description, str(path))
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f'{path}: not a whole LEAPP pipeline ({error!r:.120})') from None
    return LeappFile(node, description, pipeline, values, model)


def _read_model(
    model: Path, backend: str, description: Mapping[str, Any], where: str
) -> dict[str, Value]:
    """Return the model's outputs by the pipeline's names; TorchScript's go by their place."""
    if backend.startswith('onnx'):
        return read_outputs(read_onnx(model).graph, str(model))
    if not backend.startswith('jit'):
        raise UserError(f'{where}: backend {backend} is neither onnx nor jit')
    graph = read_torchscript(model)
    names = [item['name'] for item in description['inputs']]
    outputs = [item['name'] for item in description['outputs']]
    if (len(graph.inputs), len(graph.outputs)) != (len(names), len(outputs)):
        raise UserError(f'{model}: has other inputs or outputs than {where} describes')
    renamed = dict(zip(graph.inputs, names, strict=True))
    found = read_outputs(graph, str(model))
    return {
        name: _renamed(found[old], renamed)
        for old, name in zip(graph.outputs, outputs, strict=True)
    }


def _renamed(value: Value, names: Mapping[str, str]) -> Value:
    if not isinstance(value, Mlp):
        return value
    blocks = tuple(dataclasses.replace(b, name=names.get(b.name, b.name)) for b in value.blocks)
    return dataclasses.replace(value, blocks=blocks)


def leapp_mlp(file: LeappFile, where: str) -> Mlp:
    """Return the model behind the joint targets, its one MLP."""
    name = _output(file, 'target/joint/position', where)['name']
    found = file.values.get(name)
    if not isinstance(found, Mlp):
        raise UserError(f'{where}: output {name} is no output of an MLP')
    return found


def leapp_parts(file: LeappFile, extras: Mapping[str, Any], where: str) -> list[Part]:
    """Return what the pipeline says of a contract, and the contract embedded in it, if any."""
    try:
        part = Part(where, _data(file, extras, where), ROUNDING)
        configs = file.pipeline.get('configs') or {}
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise UserError(f'{where}: not a whole LEAPP pipeline ({error!r:.120})') from None
    if EMBEDDED not in configs:
        return [part]
    return [part, part_of(f'{where}: {EMBEDDED}', configs[EMBEDDED])]


def _data(file: LeappFile, extras: Mapping[str, Any], where: str) -> dict[str, Any]:
    mlp = leapp_mlp(file, where)
    joints = _element_names(_output(file, 'target/joint/position', where), where)
    inputs = {item['name']: item for item in file.description['inputs']}
    if absent := [block.name for block in mlp.blocks if block.name not in inputs]:
        raise UserError(f'{where}: does not describe the inputs {", ".join(absent)}')
    per_joint: dict[str, dict[str, float]] = {name: {} for name in joints}
    rows = []
    for block in mlp.blocks:
        item = inputs[block.name]
        row = _row(file, item, block, extras, joints, where)
        rows.append(row)
        if row['term'] == 'joint_pos_rel':
            _set(per_joint, 'default_position', block.minus, where)
    for kind, key in (('kp', 'stiffness'), ('kd', 'damping')):
        if any(item.get('kind') == kind for item in file.description['outputs']):
            item = _output(file, kind, where)
            gains = file.values.get(item['name'])
            if isinstance(gains, Block | Mlp) or _element_names(item, where) != joints:
                raise UserError(f'{where}: {kind} is not one constant per joint of the targets')
            _set(per_joint, key, gains, where)
    data: dict[str, Any] = {
        'joint_names': joints,
        'joints': per_joint,
        'action': _action(mlp, joints, where),
        'observations': rows,
    }
    if frequency := (file.pipeline.get('configs') or {}).get('frequency'):
        data['step_dt'] = 1.0 / frequency
    return data


def _output(file: LeappFile, kind: str, where: str) -> Mapping[str, Any]:
    found = [item for item in file.description['outputs'] if item.get('kind') == kind]
    if len(found) != 1:
        raise UserError(f'{where}: {len(found)} outputs of kind {kind}, not one')
    only: Mapping[str, Any] = found[0]
    return only


def _element_names(item: Mapping[str, Any], where: str) -> list[str]:
    """Return the names along the last axis; before 0.7 the list was flat."""
    names = item.get('element_names')
    if isinstance(names, list) and names and isinstance(names[-1], list):
        names = names[-1]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f'{where}: {item["name"]} does not name its elements: joint_names')
    return names


def _set(
    per_joint: dict[str, dict[str, float]], key: str, values: Constant | None, where: str
) -> None:
    flat = np.asarray(values).reshape(-1)[: len(per_joint)]
    if len(flat) != len(per_joint):
        raise UserError(f'{where}: {key} has {len(flat)} values for {len(per_joint)} joints')
    for joint, value in zip(per_joint.values(), flat, strict=True):
        joint[key] = shortest(value)


def shortest(value: Any) -> float:
    """Return the shortest decimal number that is this float32."""
    return float(str(np.float32(value)))


def _action(mlp: Mlp, joints: list[str], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, given, default in (('scale', mlp.times, 1.0), ('offset', mlp.plus, 0.0)):
        values = np.full(len(joints), default, np.float32) if given is None else given
        values = np.broadcast_to(values.reshape(-1), len(joints)) if values.size == 1 else values
        if len(values) != len(joints):
            raise UserError(f'{where}: {len(values)} values of action {key}, not {len(joints)}')
        found[key] = {n: shortest(v) for n, v in zip(joints, values, strict=True)}
    return {**found, 'clip': mlp.clip and [shortest(bound) for bound in mlp.clip]}


def _row(
    file: LeappFile,
    item: Mapping[str, Any],
    block: Block,
    extras: Mapping[str, Any],
    joints: list[str],
    where: str,
) -> dict[str, Any]:
    term = _term(file, item, extras, where)
    shape = item['shape'] if isinstance(item['shape'], list) else json.loads(item['shape'])
    history = item.get('history', 1)
    row: dict[str, Any] = {'term': term, 'size': shape[-1] // history, 'history': history}
    if history > 1:
        row['history_order'] = item.get('history_order') or needed(extras, 'history_order', where)
    if (block.minus is not None) != (term == 'joint_pos_rel') or block.over is not None:
        raise UserError(f'{where}: {item["name"]} is not shifted as {term} is')
    if 'joint' in term and _element_names(item, where) != joints:
        raise UserError(
            f'{where}: {item["name"]} has its joints in another order than the targets'
        )
    if block.minus is not None and not np.array_equal(
        block.minus, np.tile(block.minus[: row['size']], history)
    ):
        raise UserError(f'{where}: {item["name"]} is not shifted by one pose in all frames')
    times = [1.0] if block.times is None else [shortest(v) for v in block.times]
    row['scale'] = simple_scale(times if len(times) == 1 else times[: row['size']])
    row['clip'] = block.clip and [shortest(bound) for bound in block.clip]
    return row


def _term(file: LeappFile, item: Mapping[str, Any], extras: Mapping[str, Any], where: str) -> str:
    """Return the term of an input: said by the file, by its kind, or fed back from the action."""
    name = item['name']
    if 'term' in item or name in extras.get('terms', {}):
        return term_named(item.get('term', name), extras, where)
    for source, targets in (file.pipeline.get('feedback_flow') or {}).items():
        if f'{file.node}/{name}' in targets:
            value = file.values.get(source.partition('/')[2])
            if isinstance(value, Mlp) and not value.changed:
                return 'last_action'
    if item.get('kind') in _TERMS:
        return _TERMS[item['kind']]
    kind = item.get('kind', 'no kind')
    raise UserError(f'{where}: input {name} ({kind}) is no term by itself; say it under `terms`')
