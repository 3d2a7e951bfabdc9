"""`make test-train`: runs the tests that need Isaac Lab and writes down what they covered."""

import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from training_smoke.covered import EVIDENCE, ROOT, source_hashes, total

from g1_policy_node.run_folder import write_json
from g1_policy_node.tools.manifest import cpu_model, git_state, usable_cores, version
from g1_policy_node.training.record import PACKAGES

SUITES = ('test/training_smoke', 'test/sim')
CHOSEN = 'training_smoke or isaac'
LIMITS = (
    'Two robots, one iteration, on a CPU. It shows that the parts fit together. '
    'It is no evidence for the GPU path.'
)


class Outcomes:
    """Collects the outcome of every test; a plugin of pytest."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.removeprefix('test/')
        row = self.tests.setdefault(name, {'outcome': 'passed', 'seconds': 0.0})
        row['seconds'] = round(row['seconds'] + report.duration, 1)
        row.update(report.user_properties)
        if report.outcome != 'passed':
            row['outcome'] = report.outcome


def main(arguments: Sequence[str]) -> int:
    """Run everything, or what `arguments` choose; only a whole run is written down."""
    before, outcomes, began = source_hashes(), Outcomes(), time.monotonic()
    suites = [str(ROOT / suite) for suite in SUITES]
    chosen = arguments or ('-k', CHOSEN)
    code = int(pytest.main([*suites, '-p', 'no:warnings', *chosen], plugins=[outcomes]))
    print(LIMITS)
    names = {row['outcome'] for row in outcomes.tests.values()}
    if arguments or code or names != {'passed'}:
        print(f'not written down, as this was not all of it, all passed: {_shown(EVIDENCE)}')
        return code or 1 - bool(arguments)
    if source_hashes() != before:
        print('not written down: sources changed while the tests ran')
        return 1
    write_json(EVIDENCE, _report(before, outcomes, time.monotonic() - began))
    print(f'written: {_shown(EVIDENCE)}')
    return 0


def _report(hashes: dict[str, str], outcomes: Outcomes, seconds: float) -> dict[str, Any]:
    return {
        'limits': LIMITS,
        'finished_utc': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
        'seconds': round(seconds),
        'git': git_state(Path(__file__).resolve()),
        'system': platform.platform(),
        'cpu': {'model': cpu_model(), 'usable': usable_cores()},
        'cuda_available': torch.cuda.is_available(),
        'versions': {
            'python': platform.python_version(),
            **{name: version(name) for name in (*PACKAGES, 'ros-jazzy-rclpy')},
        },
        'tests': outcomes.tests,
        'sources_sha256': total(hashes),
        'sources': hashes,
    }


def _shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
