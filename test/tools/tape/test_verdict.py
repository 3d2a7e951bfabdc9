"""A conclusion is drawn where the measurement allows one, and refused where it does not."""

import numpy as np
import pytest

from g1_policy_node.tools.tape.verdict import crossover, one_robot, paired, sentence

CPU, CUDA = 'cpu numpy', 'cuda:0 graph'


def figures(p99: float, p999: float | None = None):
    return {'p99': p99, 'p99.9': p999}


def spent(gap_us: float, noise_us: float):
    rng = np.random.default_rng(1)
    base = 300 + rng.normal(0, noise_us, 500)
    return {CPU: base * 1e-6, CUDA: (base + gap_us + rng.normal(0, noise_us, 500)) * 1e-6}


def test_a_clear_difference_is_resolved_with_its_size() -> None:
    pair = paired(CPU, CUDA, spent(50, 5), 25)
    assert pair.resolved
    assert pair.low_us < pair.median_us < pair.high_us
    assert pair.median_us == pytest.approx(50, abs=2)


def test_a_difference_below_the_spread_gives_no_conclusion() -> None:
    pair = paired(CPU, CUDA, spent(0.1, 50), 25)
    device, reason = one_robot([pair], {CPU: figures(400), CUDA: figures(401)}, 10_000)
    assert device is None
    assert 'less than the spread' in reason


def test_the_tail_and_not_the_median_decides_and_both_have_to_agree() -> None:
    pair = paired(CPU, CUDA, spent(-50, 5), 25)  # cuda is faster at the median
    assert one_robot([pair], {CPU: figures(900), CUDA: figures(400)}, 10_000)[0] == 'cuda:0'
    device, reason = one_robot([pair], {CPU: figures(400), CUDA: figures(900)}, 10_000)
    assert device is None
    assert reason == f'{CPU} has the shorter tail, {CUDA} the shorter median'


def test_p999_decides_where_it_is_resolved() -> None:
    pair = paired(CPU, CUDA, spent(50, 5), 25)
    table = {CPU: figures(400, 500), CUDA: figures(300, 9000)}
    assert one_robot([pair], table, 10_000)[0] == 'cpu'


def test_a_device_that_misses_the_budget_is_not_recommended() -> None:
    device, reason = one_robot([], {CPU: figures(12_000)}, 10_000)
    assert device is None
    assert 'none meets 10 ms' in reason


def cell(device: str, batch: int, p50: float, p95: float):
    return {'device': device, 'batch': batch, 'total_us': {'p50': p50, 'p95': p95}}


def test_the_gpu_wins_from_the_first_size_after_which_it_always_does() -> None:
    cells = [
        *(cell('cpu', b, t, 2 * t) for b, t in ((1, 80), (4, 90), (16, 140), (64, 300))),
        *(cell('cuda:0', b, t, 1.1 * t) for b, t in ((1, 40), (4, 100), (16, 101), (64, 110))),
    ]
    assert crossover(cells) == (16, 'cuda:0')
    assert crossover([c for c in cells if c['device'] == 'cpu']) == (None, None)


def test_the_sentence_says_what_to_do_and_what_was_not_measured() -> None:
    assert sentence(['cpu', 'cuda:0'], 'cpu', 'why', (16, 'cuda:0')) == (
        'on this host, for one robot at 50 Hz: cpu (why); from 16 robots per batch: cuda:0'
    )
    assert sentence(['cpu'], 'cpu', 'why', (None, None)).endswith('only cpu was measured')
    assert 'no conclusion, as why' in sentence(['cpu', 'cuda:0'], None, 'why', (None, None))
