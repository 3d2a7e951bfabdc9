"""Claims and their evidence: configured, executed, observed, accepted; never a guess.

Evidence counts only if it is of this version, this policy and this host.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from g1_policy_node import __version__
from g1_policy_node.paths import find_data
from g1_policy_node.schema import build, read_yaml
from g1_policy_node.types import UserError

NOT_MEASURED = 'not measured'


@dataclass(frozen=True)
class Configured:
    """A value in one of the package's files: its path of keys, and what it should be."""

    file: str
    key: tuple[str, ...]
    equals: Any


@dataclass(frozen=True)
class Observed:
    """A figure of runs of one kind, and its limit: exactly one of `equals` and `at_most`."""

    kind: str
    where: Mapping[str, Any]
    figure: str
    equals: Any = None
    at_most: float | None = None


@dataclass(frozen=True)
class Claim:
    """A claim, and what would show it."""

    claim: str
    observed: Observed
    configured: Configured | None = None


class Run(NamedTuple):
    """A run's folder name, its summary and its manifest."""

    name: str
    summary: Mapping[str, Any]
    manifest: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """What the run was: a walk where the summary does not say."""
        return str(self.summary.get('kind', 'walk'))

    @property
    def host(self) -> str:
        """The machine: name, processor and GPUs, as far as they are known."""
        cpu = (self.manifest.get('cpu') or {}).get('model')
        return ', '.join(str(x) for x in (self.manifest.get('host'), cpu, *self.gpus) if x)

    @property
    def gpus(self) -> Sequence[str]:
        """The names of its GPUs."""
        return self.manifest.get('gpu') or ()


class Identity(NamedTuple):
    """What evidence must be of: None counts any."""

    host: str | None
    weights_sha256: str
    contract_sha256: str
    version: str = __version__


class Row(NamedTuple):
    """One claim's four levels as text, and the run that shows it."""

    claim: str
    configured: str
    executed: str
    observed: str
    accepted: str
    run: str
    refused: tuple[str, ...]


def load_claims() -> tuple[Claim, ...]:
    """Read config/claims.yaml; UserError for a claim that is not one."""
    path = find_data('config/claims.yaml')
    claims: tuple[Claim, ...] = build(tuple[Claim, ...], read_yaml(path), str(path))
    return claims


def read_runs(folders: Iterable[Path]) -> list[Run]:
    """Read the runs in these folders, oldest name first; one without both files is none."""
    runs = []
    for folder in folders:
        for path in sorted(folder.glob('*/summary.json')):
            try:
                manifest = json.loads(path.with_name('manifest.json').read_text())
                runs.append(Run(path.parent.name, json.loads(path.read_text()), manifest))
            except (OSError, ValueError):
                continue
    return runs


def judge(claim: Claim, runs: Sequence[Run], identity: Identity) -> Row:
    """Return a claim's row from the newest run that counts; `refused` says why others do not."""
    wanted = claim.observed
    fitting = [r for r in runs if r.kind == wanted.kind and _fits(r, wanted.where)]
    refused = tuple(f'{run.name}: {why}' for run in fitting if (why := _why_not(run, identity)))
    counting = [run for run in fitting if not _why_not(run, identity)]
    configured = '-' if claim.configured is None else _configured(claim.configured)
    if not counting:
        return Row(claim.claim, configured, 'no', NOT_MEASURED, 'no', '', refused)
    run = counting[-1]
    value = _figure(run, wanted.figure)
    if value is None:
        return Row(claim.claim, configured, 'yes', NOT_MEASURED, 'no', run.name, refused)
    met = value <= wanted.at_most if wanted.at_most is not None else value == wanted.equals
    limit = (
        f'limit {wanted.at_most:g}' if wanted.at_most is not None else f'wanted {wanted.equals}'
    )
    shown = f'{value:.3g}' if isinstance(value, float) else str(value)
    accepted = 'yes' if met else 'no'
    return Row(claim.claim, configured, 'yes', f'{shown} ({limit})', accepted, run.name, refused)


def _fits(run: Run, where: Mapping[str, Any]) -> bool:
    return all(_figure(run, name) == value for name, value in where.items())


def _figure(run: Run, dotted: str) -> Any:
    """Return a figure of the summary, else of the manifest; None where it is not there."""
    if dotted == 'missed_share':
        slots, misses = run.summary.get('slots'), run.summary.get('deadline_misses')
        return misses / slots if slots and misses is not None else None
    for source in (run.summary, run.manifest):
        found: Any = source
        for key in dotted.split('.'):
            found = found.get(key) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return None


def _why_not(run: Run, identity: Identity) -> str | None:
    """Return why a run is no evidence here, None if it is."""
    version = (run.manifest.get('versions') or {}).get('g1_policy_node')
    if version != identity.version:
        return f'of version {version}'
    if identity.host is not None and run.host != identity.host:
        return f'from another host ({run.host})'
    for name in ('weights_sha256', 'contract_sha256'):
        held = run.summary.get(name) or run.manifest.get(name)
        if run.kind != 'train' and held != getattr(identity, name):
            return f'another {name}'
    return None


def _configured(configured: Configured) -> str:
    try:
        found: Any = yaml.safe_load(find_data(configured.file).read_text())
        for key in configured.key:
            found = found[key]
    except (UserError, KeyError, TypeError):
        return 'not found'
    return str(found) if found == configured.equals else f'{found}, not {configured.equals}'
