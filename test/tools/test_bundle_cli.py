"""`g1-policy bundle`: what it prints, and its exit codes."""

import argparse
import shutil
from pathlib import Path

import pytest

from g1_policy_node.bundle import load_bundle
from g1_policy_node.contract import dump_contract, load_contract
from g1_policy_node.paths import find_data
from g1_policy_node.tools import bundle_cli
from g1_policy_node.types import UserError


def run(*words: object) -> int:
    parser = argparse.ArgumentParser()
    bundle_cli.add_parser(parser.add_subparsers(required=True))
    args = parser.parse_args(['bundle', *map(str, words)])
    return int(args.run(args))


def test_show_prints_the_table_the_joints_and_the_origin_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('COLUMNS', '80')
    assert run('show', 'g1_walk') == 0
    out = capsys.readouterr().out
    bundle = load_bundle(find_data('policies/g1_walk'))
    assert bundle.contract.table() in out
    assert bundle.weights_sha256 in out
    assert bundle.contract_sha256 in out
    for name in bundle.contract.joint_names:
        assert f' {name.removesuffix("_joint")} ' in out
    for fact in ('NVIDIA H200', 'g1_walk_reference.pt', '1920', 'unknown', 'period 40 ticks'):
        assert fact in out
    first, *rest = out.splitlines()
    assert str(bundle.path) in first
    assert max(map(len, rest)) <= 80


def test_check_prints_the_largest_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert run('check') == 0
    out = capsys.readouterr().out
    assert 'cpu: largest action difference' in out
    assert '504 golden rows' in out


def test_check_refuses_a_device_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match='gpu'):
        run('check', 'g1_walk', '--device', 'gpu')
    with pytest.raises(UserError, match='no such folder'):
        run('check', './no_bundle_here')


def test_import_makes_a_bundle_that_check_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip('torch')
    shipped = load_bundle(find_data('policies/g1_walk'))
    state = {
        f'mlp.{2 * i}.{kind}': torch.tensor(shipped.weights[f'layers.{i}.{kind}'])
        for i in range(4)
        for kind in ('weight', 'bias')
    }
    torch.save({'actor_state_dict': state}, tmp_path / 'model.pt')
    contract = find_data('config/g1_walk_contract.yaml')
    words = (tmp_path / 'model.pt', '--contract', contract, '--out', tmp_path / 'out')
    assert run('import', *words) == 0
    captured = capsys.readouterr()
    assert '8 tensors mapped, 0 left over' in captured.err
    assert shipped.weights_sha256 in captured.out
    assert run('check', tmp_path / 'out') == 0
    assert run('diff', 'g1_walk', tmp_path / 'out') == 0


def test_diff_lists_every_field_that_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    default = find_data('config/g1_walk_contract.yaml')
    contract = load_contract(default)
    contract.joints['left_knee_joint'].__dict__['damping'] = 4.5
    contract.action.scale['left_knee_joint'] = 0.3  # type: ignore[index]
    dump_contract(contract, tmp_path / 'other.yaml')
    assert run('diff', default, tmp_path / 'other.yaml') == 1
    assert capsys.readouterr().out.splitlines() == [
        'joints.left_knee_joint.damping: 4.0 | 4.5',
        'action.scale.left_knee_joint: 0.25 | 0.3',
        'fields that differ: 2',
    ]


def test_diff_of_a_bundle_and_its_contract_is_the_weights_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run('diff', find_data('config/g1_walk_contract.yaml'), 'g1_walk') == 1
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith('weights_sha256: null | "')
    assert last == 'fields that differ: 1'


def test_equal_contracts_do_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = shutil.copytree(find_data('policies/g1_walk'), tmp_path / 'copy')
    assert run('diff', 'g1_walk', copy) == 0
    assert capsys.readouterr().out == 'the contracts are equal\n'
