"""The tests that need Isaac Lab ran on the sources as they are now."""

import json

import pytest
from training_smoke.covered import COVERED, EVIDENCE, ROOT, source_hashes, total


@pytest.mark.parametrize('pattern', COVERED)
def test_every_pattern_finds_a_source(pattern: str) -> None:
    assert list(ROOT.glob(pattern))


def test_the_evidence_covers_the_sources_as_they_are() -> None:
    written, now = json.loads(EVIDENCE.read_text())['sources'], source_hashes()
    stale = sorted(name for name in written.keys() | now if written.get(name) != now.get(name))
    assert not stale, (
        f'{EVIDENCE.relative_to(ROOT)} is stale: {", ".join(stale)} changed since the tests that '
        'need Isaac Lab ran. Run `make test-train` and commit that file.'
    )


def test_the_evidence_is_of_a_whole_run_that_passed_and_claims_no_gpu() -> None:
    written = json.loads(EVIDENCE.read_text())
    assert {row['outcome'] for row in written['tests'].values()} == {'passed'}
    suites = {name.split('::')[0] for name in written['tests']}
    wanted = {
        f'training_smoke/{p.name}'
        for p in (EVIDENCE.parents[2]).glob('test/training_smoke/test_*.py')
    }
    assert wanted <= suites
    assert 'no evidence for the GPU path' in written['limits']
    assert total(written['sources']) == written['sources_sha256']
