"""Turns a policy of another project, and what it does not say of itself, into a bundle."""

import dataclasses
import hashlib
import platform
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import g1_policy_node
from g1_policy_node.actor import action_difference, load_actor
from g1_policy_node.bundle import Bundle, Training, save_bundle
from g1_policy_node.contract import SCHEMA_VERSION, Contract
from g1_policy_node.paths import find_data
from g1_policy_node.schema import build, read_json, read_yaml
from g1_policy_node.tools.formats.said import Part, contract_of, part_of
from g1_policy_node.tools.formats.source import Source, read_source
from g1_policy_node.tools.golden import record_golden
from g1_policy_node.types import UserError
from g1_policy_node.weights import check_weights, weights_bytes


def import_bundle(
    source_path: Path,
    contract_paths: Sequence[Path],
    out: Path,
    training_path: Path | None = None,
    seed: int = 0,
    overwrite: bool = False,
    model: Path | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Bundle:
    """Make the bundle `out`; UserError says what in the inputs does not fit.

    `contract_paths` are YAML files with a whole contract, or the parts that the source does not
    say. `training_path` is a JSON file with what is known about the training run.
    """
    training = read_json(training_path) if training_path else {}
    build(Training, training, str(training_path))
    given = [part_of(str(path), read_yaml(path)) for path in contract_paths]
    source = read_source(source_path, given, model)
    for note in source.notes:
        progress(note)
    contract = _contract(source, given, out)
    check_weights(contract, source.weights, str(source.path))
    contract = _without_hash(contract, source)
    run = record_golden(contract, source.weights, seed, progress=progress)
    actor = load_actor(contract.network, source.weights, 'cpu')
    action_difference(actor, *run.golden)
    manifest = _manifest(source, training, run.source)
    return save_bundle(out, contract, source.weights, run.golden, manifest, overwrite)


def _manifest(source: Source, training: Any, golden_source: str) -> dict[str, Any]:
    return {
        'created': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        'made_by': f'g1-policy bundle import {g1_policy_node.__version__}',
        'golden_source': golden_source,
        'source': {
            'file': source.path.name,
            'sha256': source.sha256,
            'format': source.format,
            'iteration': source.iteration,
        },
        'training': training,
        'versions': _versions(),
    }


def find_contract(name_or_path: str) -> Path:
    """Return a contract file: a plain name is one of config/robots/, anything else is a path."""
    if Path(name_or_path).name == name_or_path and not name_or_path.endswith(('.yaml', '.yml')):
        return find_data(f'config/robots/{name_or_path}.yaml')
    return Path(name_or_path)


def _contract(source: Source, given: list[Part], out: Path) -> Contract:
    """Put the contract together; its name, a mere label, is the folder's where nobody says one."""
    parts = [*source.parts, *given]
    said = {key for part in parts for key in part.data}
    label = {'schema_version': SCHEMA_VERSION, 'name': out.resolve().name}
    label = {key: value for key, value in label.items() if key not in said}
    return contract_of([*parts, Part(str(out), label)], str(source.path))


def _without_hash(contract: Contract, source: Source) -> Contract:
    """Check the weights that the contract names, and leave it to save_bundle to name them."""
    found = hashlib.sha256(weights_bytes(source.weights)).hexdigest()
    if contract.weights_sha256 not in (None, found):
        raise UserError(
            f'{source.path}: its weights are {found}, the contract names weights_sha256 '
            f'{contract.weights_sha256}; set it to null where the contract is for new weights'
        )
    return dataclasses.replace(contract, weights_sha256=None)


def _versions() -> dict[str, Any]:
    """Return the versions of what made the bundle; a package that is absent is left out."""
    names = ('numpy', 'torch', 'onnx', 'safetensors', 'mujoco', 'mjlab')
    found = {name: next(iter(distributions(name=name)), None) for name in names}
    versions = {name: package.version for name, package in found.items() if package}
    return {'python': platform.python_version(), **versions}
