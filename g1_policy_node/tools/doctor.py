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
    from g1_policy_node.tools import doctor_host as host
    from g1_policy_node.tools import doctor_network as network

    contract = load_contract(resolve_bundle(policy) / CONTRACT)
    os.environ.setdefault('AMENT_PREFIX_PATH', ros_environment().get('AMENT_PREFIX_PATH', ''))
    checks: list[tuple[str, Check]] = [
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
        ('topics', network.check_topics),
    ]
    if interface:
        checks.append(('robot', lambda: network.check_robot(domain, interface, contract)))
    return report(run_checks(checks), as_json, out, Console())


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
    failed = sum(finding.level is Level.FAIL for finding in findings)
    warned = sum(finding.level is Level.WARN for finding in findings)
    document = {
        'findings': [{**f._asdict(), 'level': f.level.value} for f in findings],
        'failed': failed,
        'warned': warned,
    }
    if out:
        write_json(Path(out, 'doctor.json'), document)
    if as_json:
        print(json.dumps(document, indent=2))
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
