"""Writes a bundle in the formats of other projects; importing it again gives an equal bundle."""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import g1_policy_node
from g1_policy_node.bundle import Bundle
from g1_policy_node.contract import Contract, ObservationTerm, canonical_json
from g1_policy_node.tools.formats.deploy_yaml import EMBEDDED, deploy_text
from g1_policy_node.tools.formats.leapp import KINDS
from g1_policy_node.tools.formats.onnx_file import OnnxWriter
from g1_policy_node.types import UserError

NODE = 'policy'
_ACTIVATIONS = {'elu': 'Elu', 'relu': 'Relu', 'tanh': 'Tanh'}


def export_bundle(bundle: Bundle, kind: str, out: Path) -> list[Path]:
    """Write the bundle into the new folder `out` and return its files.

    `kind` is one of EXPORTS. UserError where the format cannot hold the contract.
    """
    if out.exists():
        raise UserError(f'{out}: exists already')
    out.mkdir(parents=True)
    try:
        EXPORTS[kind](bundle, out)
    except UserError:
        for path in out.iterdir():
            path.unlink()
        out.rmdir()
        raise
    return sorted(out.iterdir())


def _export_onnx(bundle: Bundle, out: Path) -> None:
    contract, writer = bundle.contract, OnnxWriter()
    _add_mlp(writer, bundle, 'observation', 'action')
    inputs = {'observation': contract.network.sizes[0]}
    metadata = {EMBEDDED: canonical_json(contract), 'weights_sha256': bundle.weights_sha256}
    writer.write(out / 'policy.onnx', inputs, {'action': len(contract.joint_names)}, metadata)


def _export_deploy(bundle: Bundle, out: Path) -> None:
    (out / 'deploy.yaml').write_text(deploy_text(bundle.contract), encoding='utf-8')
    _export_onnx(bundle, out)


def _export_leapp(bundle: Bundle, out: Path) -> None:
    contract, writer = bundle.contract, OnnxWriter()
    names = [_input_name(i, contract) for i in range(len(contract.observations))]
    blocks = [
        _add_term(writer, contract, term, name)
        for term, name in zip(contract.observations, names, strict=True)
    ]
    writer.add('Concat', blocks, 'observation', axis=1)
    _add_mlp(writer, bundle, 'observation', 'action')
    joints = len(contract.joint_names)
    outputs = {name: joints for name in _outputs(contract)}
    _add_targets(writer, contract)
    inputs = {n: t.width for n, t in zip(names, contract.observations, strict=True)}
    writer.write(out / f'{NODE}.onnx', inputs, outputs, {})
    data = _pipeline(contract, names, (out / f'{NODE}.onnx').read_bytes())
    data = json.loads(json.dumps(data))  # no two places share a list, so YAML writes no aliases
    text = yaml.safe_dump(data, sort_keys=False, width=100, default_flow_style=None)
    (out / f'{contract.name}.yaml').write_text(text, encoding='utf-8')


EXPORTS: Mapping[str, Callable[[Bundle, Path], None]] = {
    'onnx': _export_onnx,
    'deploy-yaml': _export_deploy,
    'leapp': _export_leapp,
}


def _add_mlp(writer: OnnxWriter, bundle: Bundle, x: str, output: str) -> None:
    weights = bundle.weights
    if 'normalizer.mean' in weights:
        for kind, key in (('Sub', 'normalizer.mean'), ('Div', 'normalizer.divisor')):
            x = writer.add(kind, [x, writer.constant(key, weights[key])], f'{key} applied')
    depth = len(bundle.contract.network.sizes) - 1
    for i in range(depth):
        names = [f'layers.{i}.{key}' for key in ('weight', 'bias')]
        constants = [writer.constant(name, weights[name]) for name in names]
        last = i == depth - 1
        x = writer.add('Gemm', [x, *constants], output if last else f'layers.{i}', transB=1)
        if not last:
            kind = _ACTIVATIONS[bundle.contract.network.activation]
            x = writer.add(kind, [x], f'activation.{i}')


def _add_term(writer: OnnxWriter, contract: Contract, term: ObservationTerm, name: str) -> str:
    """Add clip(measured - default) * scale, all frames at once, and return its name."""
    x = name
    if term.term == 'joint_pos_rel':
        pose = np.tile(contract.per_joint('default_position'), term.history)
        x = writer.add('Sub', [x, writer.constant(f'{name}.default', pose)], f'{name}.shifted')
    if term.clip is not None:
        bounds = [writer.constant(f'{name}.clip{i}', bound) for i, bound in enumerate(term.clip)]
        x = writer.add('Clip', [x, *bounds], f'{name}.clipped')
    if term.scale != 1.0:
        scale = np.tile(np.broadcast_to(term.scale, term.size), term.history)
        x = writer.add('Mul', [x, writer.constant(f'{name}.scale', scale)], f'{name}.scaled')
    return x


def _add_targets(writer: OnnxWriter, contract: Contract) -> None:
    """Add target = offset + scale * clip(action), and the gains, which are constant."""
    names, x = contract.joint_names, 'action'
    if contract.action.clip is not None:
        bounds = [
            writer.constant(f'clip{i}', bound) for i, bound in enumerate(contract.action.clip)
        ]
        x = writer.add('Clip', [x, *bounds], 'action.clipped')
    scale = writer.constant('action.scale', [contract.action.scale[name] for name in names])
    offset = writer.constant('action.offset', [contract.action.offset[name] for name in names])
    x = writer.add('Mul', [x, scale], 'action.scaled')
    writer.add('Add', [x, offset], 'joint_targets')
    for output, key in (('kp', 'stiffness'), ('kd', 'damping')):
        constant = writer.constant(key, contract.per_joint(key)[np.newaxis])
        writer.add('Identity', [constant], output)


def _input_name(i: int, contract: Contract) -> str:
    name = contract.observations[i].term
    before = [term.term for term in contract.observations[:i]]
    return f'{name}_{i}' if name in before else name


def _outputs(contract: Contract) -> dict[str, str | None]:
    """Return the kinds of the outputs; the action is one where it is an input of the next tick."""
    fed_back: dict[str, str | None] = {'action': None} if _feeds_back(contract) else {}
    return {'joint_targets': 'target/joint/position', 'kp': 'kp', 'kd': 'kd', **fed_back}


def _feeds_back(contract: Contract) -> bool:
    return any(t.term == 'last_action' and t.history == 1 for t in contract.observations)


def _tensor(name: str, width: int, kind: str | None, joints: list[str] | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        'name': name,
        'dtype': 'float32',
        'shape': [1, width],
        'type': 'tensor',
    }
    if kind:
        data['kind'] = kind
    if joints:
        data['element_names'] = [None, joints]
    return data


def _pipeline(contract: Contract, names: list[str], model: bytes) -> dict[str, Any]:
    joints, inputs, fed_back = list(contract.joint_names), [], []
    for name, term in zip(names, contract.observations, strict=True):
        per_joint = term.size == len(joints)
        kind = KINDS.get(term.term) if term.history == 1 else None
        item = _tensor(name, term.width, kind, joints if per_joint else None)
        item |= {'term': term.term, 'history': term.history, 'history_order': term.history_order}
        inputs.append(item)
        if term.term == 'last_action' and term.history == 1:
            fed_back.append(f'{NODE}/{name}')
    outputs = [_tensor(n, len(joints), kind, joints) for n, kind in _outputs(contract).items()]
    free = [name for name in names if f'{NODE}/{name}' not in fed_back]
    return {
        'models': {
            NODE: {
                'inputs': inputs,
                'outputs': outputs,
                'parameters': {
                    'model_path': f'{NODE}.onnx',
                    'md5sum': hashlib.md5(model, usedforsecurity=False).hexdigest(),
                    'sha256sum': hashlib.sha256(model).hexdigest(),
                    'backend': 'onnx',
                },
            }
        },
        'pipeline': {
            'data_flow': {},
            'feedback_flow': {f'{NODE}/action': fed_back} if fed_back else {},
            'inputs': {NODE: free},
            'outputs': {NODE: [n for n, kind in _outputs(contract).items() if kind]},
            'configs': {'frequency': 1.0 / contract.step_dt, EMBEDDED: contract.to_mapping()},
        },
        'system information': {
            'leapp config version': '1.3',
            'made by': f'g1_policy_node {g1_policy_node.__version__}',
        },
    }
