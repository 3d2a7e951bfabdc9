"""A policy bundle: contract, weights, golden vectors and where they came from, in one folder.

Loading checks everything against everything and refuses with the exact difference. Nothing in a
bundle is ever unpickled.
"""

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.actor import ACTION_TOLERANCE, Actor, action_difference
from g1_policy_node.contract import Contract, dump_contract, load_contract
from g1_policy_node.golden_vectors import (
    MAX_GOLDEN_BYTES,
    Golden,
    check_golden,
    golden_bytes,
    parse_golden,
)
from g1_policy_node.observation import ObservationBuilder
from g1_policy_node.paths import find_data
from g1_policy_node.schema import build, read_json, read_small_file
from g1_policy_node.types import Array, UserError
from g1_policy_node.weights import (
    MAX_WEIGHTS_BYTES,
    Tensors,
    check_weights,
    parse_weights,
    weights_bytes,
)

__all__ = [
    'ACTION_TOLERANCE',
    'Bundle',
    'BundleManifest',
    'check_actor',
    'load_bundle',
    'resolve_bundle',
    'save_bundle',
    'write_evaluation',
]

CONTRACT, WEIGHTS, GOLDEN, MANIFEST = FILES = (
    'policy.yaml', 'actor.safetensors', 'golden.npz', 'manifest.json'
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """The file a bundle was imported from."""

    file: str | None = None
    sha256: str | None = None
    format: str | None = None
    iteration: int | None = None


@dataclass(frozen=True)
class Training:
    """What is known about the run that trained the policy; None is unknown."""

    framework: str | None = None
    simulator: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    environments: int | None = None
    steps_per_iteration: int | None = None
    iterations: int | None = None
    environment_steps: int | None = None
    resumed_runs: int | None = None
    wall_time_s: float | None = None
    seed: int | None = None
    teacher_sha256: str | None = None
    """The weights it began by imitating."""
    git_commit: str | None = None
    versions: Mapping[str, str] | None = None


@dataclass(frozen=True)
class BundleManifest:
    """Where a bundle came from; None is unknown. The two hashes must fit the bundle.

    `evaluation` is what `g1-policy evaluate --write` measured.
    """

    weights_sha256: str
    contract_sha256: str
    created: str | None = None
    made_by: str | None = None
    golden_source: str | None = None
    source: Source = field(default_factory=Source)
    training: Training = field(default_factory=Training)
    versions: Mapping[str, str] | None = None
    evaluation: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Bundle:
    """A bundle that passed every check that needs no actor.

    `weights` float32 by the names in weights.py, `golden_observations` (T, n) float32,
    `golden_actions` (T, N) float64; none of the arrays is writeable.
    """

    path: Path
    contract: Contract
    weights: dict[str, NDArray[np.float32]]
    golden_observations: NDArray[np.float32]
    golden_actions: Array
    manifest: BundleManifest

    @property
    def weights_sha256(self) -> str:
        """The hash of the weights file."""
        return self.manifest.weights_sha256

    @property
    def contract_sha256(self) -> str:
        """The hash of the contract as canonical JSON."""
        return self.manifest.contract_sha256


def resolve_bundle(name_or_path: str) -> Path:
    """Return a bundle's folder: a plain name is one of policies/, anything else is a path."""
    if not name_or_path.strip():
        raise UserError('policy: neither a name nor a folder was given')
    if Path(name_or_path).name == name_or_path:
        try:
            return find_data(f'policies/{name_or_path}')
        except UserError as error:
            hint = f'; for the folder here write ./{name_or_path}'
            raise UserError(f'{error}{hint * Path(name_or_path).is_dir()}') from None
    return Path(name_or_path).expanduser()


def load_bundle(path: Path) -> Bundle:
    """Read a bundle and check its parts against each other; UserError says what differs."""
    if not path.is_dir():
        raise UserError(f'{path}: no such folder')
    if missing := [name for name in FILES if not (path / name).exists()]:
        raise UserError(f'{path}: not a policy bundle, {", ".join(missing)} not there')
    contract = load_contract(path / CONTRACT)
    weights = _load_weights(path, contract)
    _check_terms(contract, path / CONTRACT)
    raw = read_small_file(path / GOLDEN, MAX_GOLDEN_BYTES)
    golden = parse_golden(raw, contract, str(path / GOLDEN))
    manifest = _load_manifest(path / MANIFEST, contract)
    arrays: list[NDArray[Any]] = [*weights.values(), golden.observations, golden.actions]
    for array in arrays:
        array.setflags(write=False)
    return Bundle(path, contract, weights, golden.observations, golden.actions, manifest)


def check_actor(bundle: Bundle, actor: Actor, every: int = 1) -> float:
    """Return the largest difference of the actor's actions from the golden ones, or every n-th.

    Raises UserError where it is above ACTION_TOLERANCE or not finite.
    """
    try:
        return action_difference(
            actor, bundle.golden_observations[::every], bundle.golden_actions[::every]
        )
    except UserError as error:
        raise UserError(f'{bundle.path}: {error}') from None


def save_bundle(
    path: Path,
    contract: Contract,
    weights: Tensors,
    golden: Golden,
    manifest: Mapping[str, Any],
    overwrite: bool = False,
) -> Bundle:
    """Write a bundle and load it back; `manifest` gives the BundleManifest's known fields.

    The folder appears whole or not at all. `overwrite` replaces a bundle, and nothing else.
    The contract's weights_sha256, and both hashes of the manifest, are filled in here.
    """
    check_weights(contract, weights, str(path))
    _check_terms(contract, path)
    check_golden(golden, contract, str(path))
    raw = weights_bytes(weights)
    contract = dataclasses.replace(contract, weights_sha256=_sha256(raw))
    hashes = {'weights_sha256': _sha256(raw), 'contract_sha256': contract.sha256}
    record = build(BundleManifest, {**manifest, **hashes}, 'manifest')
    _check_replaceable(path, overwrite)
    partial = path.with_name(f'.{path.name}.{os.getpid()}.partial')
    try:
        partial.mkdir(parents=True)
        dump_contract(contract, partial / CONTRACT)
        (partial / WEIGHTS).write_bytes(raw)
        (partial / GOLDEN).write_bytes(golden_bytes(golden, contract))
        (partial / MANIFEST).write_text(_manifest_text(record), encoding='utf-8')
        load_bundle(partial)
        if path.exists():
            shutil.rmtree(path)
        partial.rename(path)
    except OSError as error:
        raise UserError(f'{path}: cannot be written ({error.strerror})') from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return load_bundle(path)


def write_evaluation(bundle: Bundle, evaluation: Mapping[str, Any]) -> Bundle:
    """Put an evaluation into the bundle's manifest; contract, weights and both hashes stay."""
    record = dataclasses.replace(bundle.manifest, evaluation=evaluation)
    path = bundle.path / MANIFEST
    partial = path.with_name(f'.{MANIFEST}.{os.getpid()}.partial')
    try:
        partial.write_text(_manifest_text(record), encoding='utf-8')
        partial.replace(path)
    except OSError as error:
        raise UserError(f'{path}: cannot be written ({error.strerror})') from None
    finally:
        partial.unlink(missing_ok=True)
    return load_bundle(bundle.path)


def _manifest_text(record: BundleManifest) -> str:
    return json.dumps(dataclasses.asdict(record), indent=2) + '\n'


def _load_weights(path: Path, contract: Contract) -> dict[str, NDArray[np.float32]]:
    where = str(path / WEIGHTS)
    if contract.weights_sha256 is None:
        raise UserError(f'{path / CONTRACT}: weights_sha256 is null; a bundle needs it')
    raw = read_small_file(path / WEIGHTS, MAX_WEIGHTS_BYTES)
    if (found := _sha256(raw)) != contract.weights_sha256:
        raise UserError(
            f'{where}: weights_sha256 is {found} ({len(raw)} bytes), '
            f'{CONTRACT} says {contract.weights_sha256}'
        )
    weights = parse_weights(raw, where)
    check_weights(contract, weights, where)
    return weights


def _check_terms(contract: Contract, path: Path) -> None:
    """Refuse a contract whose observation terms this package does not have."""
    try:
        ObservationBuilder(contract)
    except UserError as error:
        raise UserError(f'{path}: {error}') from None


def _load_manifest(path: Path, contract: Contract) -> BundleManifest:
    manifest: BundleManifest = build(BundleManifest, read_json(path), str(path))
    for name, actual in (
        ('weights_sha256', contract.weights_sha256),
        ('contract_sha256', contract.sha256),
    ):
        if (stated := getattr(manifest, name)) != actual:
            raise UserError(f'{path}: {name} is {stated}, the bundle has {actual}')
    return manifest


def _check_replaceable(path: Path, overwrite: bool) -> None:
    if not path.exists() and not path.is_symlink():
        return
    if not overwrite:
        raise UserError(f'{path}: exists already')
    if path.is_symlink() or not path.is_dir() or not {p.name for p in path.iterdir()} <= {*FILES}:
        raise UserError(f'{path}: not a policy bundle, so not replaced')


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
