"""`g1-policy report --claims`: what the runs on this host prove, and what not."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from g1_policy_node import __version__
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.paths import data_root
from g1_policy_node.run_folder import RUNS
from g1_policy_node.tools.claims import Identity, Run, judge, load_claims, read_runs
from g1_policy_node.tools.manifest import manifest
from g1_policy_node.tools.parts import NO_PARTS


def show_claims(folders: Sequence[Path], console: Console) -> int:
    """Print the claims table of this host from `folders` of runs; 1 if one is not accepted."""
    committed = data_root() / 'docs' / 'evidence'
    runs = read_runs(folders or [committed, RUNS])
    bundle = load_bundle(resolve_bundle('g1_walk'))
    host = Run('', {}, manifest(NO_PARTS)).host
    identity = Identity(host, bundle.weights_sha256, bundle.contract_sha256)
    rows = [judge(claim, runs, identity) for claim in load_claims()]
    table = Table('claim', 'configured', 'executed', 'observed', 'accepted', 'run', box=SIMPLE)
    for row in rows:
        table.add_row(*row[:6])
    console.print(f'evidence of {host}, version {__version__}', highlight=False)
    console.print(table)
    for text in sorted({text for row in rows for text in row.refused}):
        console.print(f'does not count: {text}', highlight=False, soft_wrap=True)
    return 0 if all(row.accepted == 'yes' for row in rows) else 1
