"""Tells the format of what is imported, and reads it: weights, and what it says of a contract."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.joints import G1_JOINT_NAMES
from g1_policy_node.schema import read_small_file
from g1_policy_node.tools.formats import deploy_yaml, leapp, mjlab, rsl_rl
from g1_policy_node.tools.formats.graph import Graph, Mlp, network_of, plain_mlp, read_outputs
from g1_policy_node.tools.formats.onnx_file import MAX_MODEL_BYTES, read_onnx
from g1_policy_node.tools.formats.said import Part, merged_extras, part_of
from g1_policy_node.tools.formats.torchscript import is_torchscript, read_torchscript
from g1_policy_node.types import UserError

MODELS = ('policy.onnx', 'policy.pt')
"""What a deploy.yaml's network is called in the same folder."""


class Source(NamedTuple):
    """A policy as read: `parts` is what it says of its contract, `notes` what to tell the user.

    `weights` float32 by the names of weights.py; `path` and `sha256` are of the file with them.
    """

    format: str
    path: Path
    sha256: str
    weights: Mapping[str, NDArray[np.float32]]
    parts: list[Part]
    notes: list[str]
    iteration: int | None = None


def read_source(path: Path, given: Sequence[Part], model: Path | None = None) -> Source:
    """Read a policy of any known format; `given` are the user's own parts.

    `path` is a file, or the folder of a deploy.yaml or of a LEAPP pipeline; `model` is the
    network that belongs to a deploy.yaml. UserError says what is missing or does not fit.
    """
    extras = merged_extras(given)
    if path.is_dir():
        path = _main_file(path)
    if path.suffix in ('.yaml', '.yml'):
        data = deploy_yaml.read_tagged_yaml(path)
        if 'models' not in data:
            return _deploy(path, data, extras, model)
        if model is None:
            return _leapp(path, extras)
    if model is not None:
        raise UserError(f'{path}: --model belongs to a deploy.yaml alone')
    if path.suffix == '.onnx':
        return _onnx(path, extras)
    if is_torchscript(path):
        mlp = plain_mlp(_outputs(read_torchscript(path), path), str(path))
        return _source('TorchScript', path, mlp, [], [])
    checkpoint = rsl_rl.read_checkpoint(path)
    note = f'format={checkpoint.format}, {checkpoint.mapped} tensors mapped, 0 left over'
    return Source(
        checkpoint.format, path, checkpoint.sha256, checkpoint.weights, [], [note],
        checkpoint.iteration,
    )  # fmt: skip


def _main_file(folder: Path) -> Path:
    if (folder / 'deploy.yaml').is_file():
        return folder / 'deploy.yaml'
    found = sorted(folder.glob('*.yaml'))
    if len(found) != 1:
        names = ', '.join(p.name for p in found) or 'no .yaml file'
        raise UserError(f'{folder}: holds {names}; give the file itself')
    return found[0]


def _outputs(graph: Graph, path: Path) -> dict[str, Any]:
    return read_outputs(graph, str(path))


def _source(kind: str, path: Path, mlp: Mlp, parts: list[Part], notes: list[str]) -> Source:
    raw = read_small_file(path, MAX_MODEL_BYTES)
    said = Part(str(path), network_of(mlp, str(path)))
    note = f'format={kind}, {len(mlp.weights)} tensors mapped, 0 left over'
    sha256 = hashlib.sha256(raw).hexdigest()
    return Source(kind, path, sha256, mlp.weights, [said, *parts], [note, *notes])


def _onnx(path: Path, extras: Mapping[str, Any]) -> Source:
    file = read_onnx(path)
    mlp = plain_mlp(_outputs(file.graph, path), str(path))
    if deploy_yaml.EMBEDDED in file.metadata:
        try:
            data = json.loads(file.metadata[deploy_yaml.EMBEDDED])
        except ValueError as error:
            raise UserError(f'{path}: {deploy_yaml.EMBEDDED} is not JSON ({error})') from None
        return _source('ONNX with a contract', path, mlp, [part_of(str(path), data)], [])
    if mjlab.is_mjlab(file.metadata):
        part = mjlab.mjlab_part(file.metadata, extras, str(path))
        return _source(
            "ONNX with mjlab's metadata, 3 decimals", path, mlp, [part],
            [mjlab.precision_lost(part)],
        )  # fmt: skip
    return _source('ONNX', path, mlp, [], [])


def _deploy(
    path: Path, data: Mapping[str, Any], extras: Mapping[str, Any], model: Path | None
) -> Source:
    parts = []
    if deploy_yaml.EMBEDDED in data:
        parts.append(part_of(f'{path}: {deploy_yaml.EMBEDDED}', data[deploy_yaml.EMBEDDED]))
        extras = {'sdk_joint_names': list(G1_JOINT_NAMES), **extras}
    parts.insert(0, deploy_yaml.deploy_part(data, extras, str(path)))
    if model is None:
        found = [path.with_name(name) for name in MODELS if path.with_name(name).is_file()]
        if len(found) != 1:
            raise UserError(f'{path}: {len(found)} of {" and ".join(MODELS)} beside it; --model')
        model = found[0]
    graph = read_torchscript(model) if is_torchscript(model) else read_onnx(model).graph
    kind = f'deploy.yaml and {model.suffix[1:]}'
    return _source(kind, model, plain_mlp(_outputs(graph, model), str(model)), parts, [])


def _leapp(path: Path, extras: Mapping[str, Any]) -> Source:
    file = leapp.read_leapp(path)
    parts = leapp.leapp_parts(file, extras, str(path))
    return _source('LEAPP', file.model, leapp.leapp_mlp(file, str(path)), parts, [])
