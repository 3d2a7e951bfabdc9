"""The robot and the ground as USD files, made once from the MuJoCo model and kept in a cache."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from g1_policy_node.sim.model import MJCF_SHA256, find_mjcf
from g1_policy_node.types import UserError

CONVERTER = 'mujoco-usd-converter'


def robot_usd() -> Path:
    """Return the robot's USD file; converted from the G1's MJCF where the cache has none."""
    try:
        version = metadata.version(CONVERTER)
    except metadata.PackageNotFoundError:
        version = ''
    kept = sorted(_cache().glob(f'g1-{MJCF_SHA256[:12]}-*/*.usd*'))
    if version:
        kept = [path for path in kept if path.parent.name.endswith(f'-{version}')]
    if kept:
        return kept[0]
    if not version:
        raise UserError(f'{CONVERTER} is not installed, and {_cache()} has no converted robot')
    return _convert(find_mjcf(), _cache() / f'g1-{MJCF_SHA256[:12]}-{version}')


def ground_usd() -> Path:
    """Return a USD file with one plane to collide with; Isaac Lab's own would be downloaded."""
    path = _cache() / f'ground-{hashlib.sha256(_GROUND.encode()).hexdigest()[:12]}.usda'
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f'{os.getpid()}-{path.name}')
        partial.write_text(_GROUND)
        partial.replace(path)
    return path


def _cache() -> Path:
    base = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    return Path(base, 'g1_policy_node')


def _convert(mjcf: Path, out: Path) -> Path:
    """Run the converter in a process of its own; the folder appears whole or not at all."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        command = [sys.executable, '-m', 'mujoco_usd_converter', str(mjcf), f'{scratch}/usd']
        done = subprocess.run(
            [*command, '--no-layer-structure'], capture_output=True, text=True, check=False
        )
        made = sorted(Path(scratch, 'usd').glob('*.usd*'))
        if done.returncode != 0 or len(made) != 1:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise UserError(f'{CONVERTER} failed on {mjcf}: {"".join(last)}')
        if not out.exists():
            shutil.move(f'{scratch}/usd', out)
    return out / made[0].name


_GROUND = """#usda 1.0
(
    defaultPrim = "Ground"
    metersPerUnit = 1
    upAxis = "Z"
)

def Xform "Ground"
{
    def Plane "CollisionPlane" (
        prepend apiSchemas = ["PhysicsCollisionAPI"]
    )
    {
        uniform token axis = "Z"
    }
}
"""
