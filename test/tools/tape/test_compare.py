"""A comparison leaves its figures and a page, and says what it could not measure."""

import json

import numpy as np
import pytest
from tapes import BUNDLE, messages, write_tape

from g1_policy_node import cli
from g1_policy_node.tools.tape import compare, measure
from g1_policy_node.tools.tape.measure import Variant, figures, paced


def test_on_a_cpu_alone_it_works_and_says_what_is_missing(
    tmp_path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measure, 'has_torch', lambda: False)
    tape, run = write_tape(tmp_path / 'a'), tmp_path / 'run'
    assert cli.run(['tape', 'compare', str(tape), '--ticks', '50', '--run-dir', str(run)]) == 0
    said = capsys.readouterr().out
    assert 'only cpu was measured' in said
    assert 'not measured: cuda' in said
    summary = json.loads((run / 'summary.json').read_text())
    assert summary['ticks'] == 50
    assert summary['actions']['within'] is True
    assert summary['at_period_us']['cpu numpy']['p99.9'] is None
    assert summary['weights_sha256'] == BUNDLE.weights_sha256
    page = (run / 'report.html').read_text()
    assert summary['sentence'] in page
    assert '<svg' in page and 'http://' not in page and 'https://' not in page
    assert json.loads((run / 'manifest.json').read_text())['dtype'] == 'float32'


@pytest.mark.parametrize('command', ['compare', 'replay'])
def test_cuda_where_there_is_none_is_refused_and_leaves_nothing(
    tmp_path, monkeypatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    torch = pytest.importorskip('torch', reason='torch is not installed')
    if torch.cuda.is_available():
        pytest.skip('this machine has a CUDA device')
    tape = write_tape(tmp_path / 'a')
    monkeypatch.chdir(tmp_path)
    options = {
        'compare': ['--devices', 'cpu,cuda:0'],
        'replay': ['--offline', '--device', 'cuda:0'],
    }
    assert cli.run(['tape', command, str(tape), *options[command]]) == 2
    assert capsys.readouterr().err.startswith('g1-policy: cuda:0 cannot be used')
    assert [item.name for item in tmp_path.iterdir()] == ['a']


def test_what_is_wrong_with_a_bag_is_one_line_and_two(
    tmp_path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(['tape', 'info', str(tmp_path)]) == 2
    assert capsys.readouterr().err.count('\n') == 1


def test_too_short_a_tape_is_not_compared(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    tape = write_tape(tmp_path / 'a', messages(ticks=20))
    assert cli.run(['tape', 'compare', str(tape)]) == 2
    assert '20 observations; a comparison needs 50' in capsys.readouterr().err


def test_every_variant_sees_every_row_and_they_take_turns() -> None:
    order = []

    def actor(name):
        return lambda row: order.append((name, int(row[0])))

    rows = np.arange(40, dtype=np.float32)[:, None]
    variants = [Variant('cpu', name, actor(name)) for name in ('a', 'b')]
    spent = paced(variants, rows, period=1e-5, block=10)
    assert set(spent) == {'cpu a', 'cpu b'}
    for name in ('a', 'b'):
        assert {row for who, row in order if who == name} == set(range(40))
    firsts = [who for i, (who, _) in enumerate(order) if not i or order[i - 1][0] != who]
    assert firsts == ['a', 'b', 'a', 'b', 'a'] or firsts == ['a', 'b', 'a', 'b', 'a', 'b']


def test_a_p999_of_few_calls_is_not_claimed() -> None:
    assert figures(np.linspace(1e-4, 2e-4, 999))['p99.9'] is None
    assert figures(np.linspace(1e-4, 2e-4, 1000))['p99.9'] == pytest.approx(199.9, abs=0.2)


def test_a_batch_gives_each_rows_own_action() -> None:
    pytest.importorskip('torch', reason='torch is not installed')
    rows = BUNDLE.golden_observations[:8]
    batch = measure.torch_actor(BUNDLE, 'cpu', 'eager', batch=8)(rows)
    assert batch.shape == (8, 29)
    np.testing.assert_allclose(batch, BUNDLE.golden_actions[:8], rtol=0, atol=1e-5)


def test_parts_that_do_not_add_up_to_the_whole_are_named_and_others_are_not() -> None:
    def pass_of_100_us(**wall: float) -> dict:
        return {'total': 100.0, 'wall_us': wall, 'device_us': None}

    parts = {
        'adds up': pass_of_100_us(write=1.0, start=60.0, wait=36.0),
        'asynchronous': pass_of_100_us(
            write=1.0, start=30.0, wait=0.0
        ),  # stopped before the action came
        'counted twice': pass_of_100_us(write=1.0, start=60.0, wait=60.0),
    }
    assert compare._uneven(parts) == {'asynchronous': 0.31, 'counted twice': 1.21}
    said = compare._not_measured(['cpu', 'cuda:0'], compare._uneven(parts))
    assert any('asynchronous' in line and '31%' in line for line in said)
