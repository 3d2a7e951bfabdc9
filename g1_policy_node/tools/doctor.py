"""`g1-policy doctor`: is this machine, and what is on its network, fit to walk a robot?"""

import json
import os
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from g1_policy_node.bundle import CONTRACT, resolve_bundle
from g1_policy_node.contract import load_contract
from g1_policy_node.run_folder import write_json
from g1_policy_node.tools.ros_environment import ros_environment


class Level(Enum):
    """How a check came out."""

    PASS = 'pass'
    WARN = 'warn'
    FAIL = 'fail'


class Finding(NamedTuple):
    """One check: what was found, and what to do about it (empty where nothing is)."""

    check: str
    level: Level
    found: str
    remedy: str = ''


Check = Callable[[], list[Finding]]
_COLOURS = {Level.PASS: 'green', Level.WARN: 'yellow', Level.FAIL: 'red'}


def doctor(policy: str, interface: str, domain: int, as_json: bool, out: str) -> int:
    """Run every check; 0 if none failed. `interface` leads to the robot, '' leaves it out."""
    from g1_policy_node.tools import doctor_network as network

    contract = load_contract(resolve_bundle(policy) / CONTRACT)
    os.environ.setdefault('AMENT_PREFIX_PATH', ros_environment().get('AMENT_PREFIX_PATH', ''))
    checks = [*host_checks(policy, interface), ('topics', network.check_topics)]
    if interface:
        checks.append(('robot', lambda: network.check_robot(domain, interface, contract)))
    return report(run_checks(checks), as_json, out, Console())


def host_checks(policy: str, interface: str) -> list[tuple[str, Check]]:
    """Return what is asked of the machine alone, before anything runs on it."""
    from g1_policy_node.tools import doctor_host as host

    return [
        ('versions', host.check_versions),
        ('ros', lambda: host.ros(os.environ)),
        ('interface', lambda: host.interface(interface)),
        ('governor', host.governor),
        ('real_time', host.check_real_time),
        ('clock', host.clock_source),
        ('load', host.check_cores),
        ('gpu', host.check_gpu),
        ('disk', host.check_disk),
        ('bundle', lambda: host.check_bundle(policy)),
    ]


def run_checks(checks: Sequence[tuple[str, Check]]) -> list[Finding]:
    """Run each check; one that breaks is a finding of its own, and the rest go on."""
    findings: list[Finding] = []
    for name, check in checks:
        try:
            findings += check()
        except Exception as error:
            reason = f'{type(error).__name__}: {error}'
            findings.append(Finding(name, Level.WARN, f'could not be checked: {reason}'))
    return findings


def report(findings: Sequence[Finding], as_json: bool, out: str, console: Console) -> int:
    """Show the findings, or print them as JSON; 0 if none failed, else 1.

    `out` is a run's folder, or empty: doctor.json goes there.
    """
    failed, warned = _count(findings, Level.FAIL), _count(findings, Level.WARN)
    if out:
        write(findings, Path(out))
    if as_json:
        print(json.dumps(_document(findings), indent=2))
        return 1 if failed else 0
    width = max(len(finding.check) for finding in findings)
    for finding in findings:
        colour = _COLOURS[finding.level]
        console.print(
            f'[{colour}]{finding.level.value}[/{colour}]  {finding.check:<{width}}  ', end=''
        )
        console.print(finding.found, markup=False, highlight=False, soft_wrap=True)
        if finding.remedy:
            indent = ' ' * (width + 8)
            console.print(f'{indent}{finding.remedy}', markup=False, style='dim', soft_wrap=True)
    passed = len(findings) - failed - warned
    console.print(f'{passed} passed, {warned} to look at, {failed} failed', highlight=False)
    return 1 if failed else 0


def write(findings: Sequence[Finding], folder: Path) -> None:
    """Write doctor.json into a run's folder."""
    write_json(folder / 'doctor.json', _document(findings))


def _document(findings: Sequence[Finding]) -> dict[str, object]:
    return {
        'findings': [{**f._asdict(), 'level': f.level.value} for f in findings],
        'failed': _count(findings, Level.FAIL),
        'warned': _count(findings, Level.WARN),
    }


def _count(findings: Sequence[Finding], level: Level) -> int:
    return sum(finding.level is level for finding in findings)
