"""Which sources these tests cover, and their hashes, the same on every platform."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / 'docs' / 'evidence' / 'train-smoke.json'
COVERED = (
    'config/g1_walk_contract.yaml',
    'config/rsl_rl_ppo_cfg.yaml',
    'constraints/train.txt',
    'g1_policy_node/action.py',
    'g1_policy_node/contract.py',
    'g1_policy_node/gait.py',
    'g1_policy_node/joints.py',
    'g1_policy_node/observation.py',
    'g1_policy_node/sim/isaac_*.py',
    'g1_policy_node/training/*.py',
    'test/training_smoke/*.py',
)


def source_hashes() -> dict[str, str]:
    """The first 16 digits of the SHA-256 of every covered file, line ends as on Linux."""
    paths = sorted({path for pattern in COVERED for path in ROOT.glob(pattern)})
    return {
        path.relative_to(ROOT).as_posix(): hashlib.sha256(
            path.read_bytes().replace(b'\r\n', b'\n')
        ).hexdigest()[:16]
        for path in paths
    }


def total(hashes: dict[str, str]) -> str:
    """One hash for all of them."""
    lines = ''.join(f'{digest}  {name}\n' for name, digest in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
