import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from g1_policy_node.tools import manifest as manifest_module
from g1_policy_node.tools.manifest import git_state, manifest
from g1_policy_node.tools.parts import Parts

NOTHING = Parts(None, None, None, None, None, None, None, ())


def repository(folder: Path) -> Path:
    """A repository with one committed file, which is returned."""
    file = folder / 'code.py'
    file.write_text('a = 1\n')
    identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.org']
    for command in (['init', '-q'], ['add', '.'], [*identity, 'commit', '-q', '-m', 'one']):
        subprocess.run(['git', '-C', str(folder), *command], check=True)
    return file


def test_what_no_part_says_is_null() -> None:
    made = manifest(NOTHING)
    unknown = ('command_line', 'device', 'dtype', 'threads', 'cuda', 'background_load', 'policy')
    assert {made[name] for name in (*unknown, 'weights_sha256', 'contract_sha256')} == {None}
    json.dumps(made)


def test_the_parts_say_what_ran() -> None:
    node: dict[str, Any] = {
        'device': 'cuda:0',
        'weights_sha256': 'w',
        'contract_sha256': 'c',
        'versions': {'torch': '2.13.0+cu130', 'cuda': '13.0'},
        'threads': 1,
    }
    plan = {'command_line': ['g1-policy', 'walk'], 'load_before': [0.5, 0.4, 0.3]}
    made = manifest(NOTHING._replace(node=node, plan=plan))
    assert (made['device'], made['cuda'], made['threads']) == ('cuda:0', '13.0', 1)
    assert (made['weights_sha256'], made['contract_sha256']) == ('w', 'c')
    assert made['versions']['torch'] == '2.13.0+cu130'
    assert made['background_load'] == [0.5, 0.4, 0.3]


def test_git_tells_the_commit_and_whether_the_code_differs_from_it(tmp_path: Path) -> None:
    file = repository(tmp_path)
    clean = git_state(file)
    assert clean is not None
    assert len(clean['commit']) == 40
    assert clean['dirty'] is False
    file.write_text('a = 2\n')
    assert git_state(file) == {**clean, 'dirty': True}


def test_a_copy_inside_another_repository_claims_none_of_its_commits(tmp_path: Path) -> None:
    repository(tmp_path)
    installed = tmp_path / 'install' / 'manifest.py'
    installed.parent.mkdir()
    installed.write_text('')
    assert git_state(installed) is None


@pytest.mark.parametrize(
    ('answer', 'expected'),
    [
        ('NVIDIA H200, 580.95.05', (['NVIDIA H200'], '580.95.05')),
        ('NVIDIA A, 1.2\nNVIDIA B, 1.2', (['NVIDIA A', 'NVIDIA B'], '1.2')),
        ('No devices were found', (None, None)),
        (None, (None, None)),
    ],
)
def test_the_gpus_are_those_that_the_driver_names(
    monkeypatch: pytest.MonkeyPatch, answer: str | None, expected: object
) -> None:
    monkeypatch.setattr(manifest_module.shutil, 'which', lambda _: '/usr/bin/nvidia-smi')
    monkeypatch.setattr(manifest_module, '_output', lambda _: answer)
    assert manifest_module.gpu_and_driver() == expected


def test_no_driver_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_module.shutil, 'which', lambda _: None)
    assert manifest_module.gpu_and_driver() == (None, None)
    assert manifest_module.gpu_link() is None


@pytest.mark.parametrize(
    ('answer', 'expected'),
    [
        ('\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-31\nGPU1\tNV18\t X \t0-31', 'NV18'),
        ('\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tSYS\t0-31\nGPU1\tSYS\t X \t0-31', 'SYS'),
        ('\tGPU0\tCPU Affinity\nGPU0\t X \t0-15', None),
        (None, None),
    ],
)
def test_the_link_is_that_of_the_first_two_gpus(
    monkeypatch: pytest.MonkeyPatch, answer: str | None, expected: str | None
) -> None:
    monkeypatch.setattr(manifest_module.shutil, 'which', lambda _: '/usr/bin/nvidia-smi')
    monkeypatch.setattr(manifest_module, '_output', lambda _: answer)
    assert manifest_module.gpu_link() == expected
