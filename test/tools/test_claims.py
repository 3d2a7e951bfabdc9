"""Evidence counts where it belongs; without any, nothing is claimed."""

import copy

import pytest

from g1_policy_node import __version__
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.tools import evidence
from g1_policy_node.tools.claims import (
    NOT_MEASURED,
    Claim,
    Configured,
    Identity,
    Observed,
    Run,
    judge,
    load_claims,
    read_runs,
)

SUMMARY = {
    'device': 'cpu',
    'slots': 1000,
    'deadline_misses': 2,
    'weights_sha256': 'w',
    'contract_sha256': 'c',
}
MANIFEST = {
    'host': 'lab',
    'cpu': {'model': 'EPYC'},
    'gpu': None,
    'versions': {'g1_policy_node': __version__},
}
RUN = Run('a-walk', SUMMARY, MANIFEST)
HERE = Identity(RUN.host, 'w', 'c')
MEETS = Claim('meets 50 Hz', Observed('walk', {'device': 'cpu'}, 'missed_share', at_most=0.005))


def changed(part: str, name: str, value) -> Run:
    run = copy.deepcopy(RUN)
    getattr(run, part)[name] = value
    return run


def test_a_measurement_within_its_limit_is_accepted_with_the_run() -> None:
    row = judge(MEETS, [RUN], HERE)
    assert (row.executed, row.observed, row.accepted, row.run) == (
        'yes',
        '0.002 (limit 0.005)',
        'yes',
        'a-walk',
    )


def test_a_measurement_beyond_its_limit_is_observed_and_not_accepted() -> None:
    row = judge(MEETS, [changed('summary', 'deadline_misses', 20)], HERE)
    assert (row.executed, row.observed, row.accepted) == ('yes', '0.02 (limit 0.005)', 'no')


def test_without_a_run_nothing_is_measured_whatever_a_file_says() -> None:
    configured = Configured(
        'config/rl_g1_walk.yaml', ('/**/g1_policy', 'ros__parameters', 'device'), 'cpu'
    )
    row = judge(Claim('default', MEETS.observed, configured), [], HERE)
    assert (row.configured, row.executed, row.observed, row.accepted) == (
        'cpu',
        'no',
        NOT_MEASURED,
        'no',
    )


@pytest.mark.parametrize(
    ('run', 'why'),
    [
        (changed('manifest', 'host', 'elsewhere'), 'from another host'),
        (changed('manifest', 'versions', {'g1_policy_node': '0.0.1'}), 'of version 0.0.1'),
        (changed('summary', 'weights_sha256', 'x'), 'another weights_sha256'),
        (changed('summary', 'contract_sha256', 'x'), 'another contract_sha256'),
    ],
)
def test_foreign_evidence_does_not_count_and_says_so(run: Run, why: str) -> None:
    row = judge(MEETS, [run], HERE)
    assert row.observed == NOT_MEASURED
    assert why in row.refused[0]


def test_a_run_of_another_kind_or_device_is_no_evidence() -> None:
    assert judge(MEETS, [changed('summary', 'device', 'cuda:0')], HERE).executed == 'no'
    assert judge(MEETS, [changed('summary', 'kind', 'compare')], HERE).executed == 'no'


def test_every_claim_has_one_limit_and_no_two_are_the_same() -> None:
    claims = load_claims()
    assert len({c.claim for c in claims}) == len(claims) >= 9
    for claim in claims:
        assert (claim.observed.equals is None) != (claim.observed.at_most is None)


def test_the_evidence_page_is_what_the_committed_runs_give() -> None:
    page = evidence.page(read_runs([evidence.RUNS]), load_bundle(resolve_bundle('g1_walk')))
    assert evidence.PAGE.read_text() == page, 'run python -m g1_policy_node.tools.evidence'
