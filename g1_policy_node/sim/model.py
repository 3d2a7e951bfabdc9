"""The G1-29 for MuJoCo: the MJCF of the mjlab package plus floor, motors and armature."""

import hashlib
import importlib.util
from pathlib import Path

import mujoco

from g1_policy_node.contract import Contract
from g1_policy_node.joints import describe_mismatch
from g1_policy_node.types import UserError

MJCF_SHA256 = 'febdcbeffbbf84051556ae41a5ac1b43fb479a5d76bdb3f54824dbc2721c20aa'
"""Of asset_zoo/robots/unitree_g1/xmls/g1.xml in mjlab 1.6.0 (Apache-2.0)."""

PELVIS = 'pelvis'
IMU_ACCELEROMETER = 'imu_lin_acc'
"""The MJCF's sensor at the site imu_in_pelvis, whose axes are the pelvis's (no rotation)."""

_INSTALL = 'pip install --no-deps mjlab==1.6.0'


def find_mjcf() -> Path:
    """Return the robot's model file, checked by its hash; UserError says what to install."""
    spec = importlib.util.find_spec('mjlab')
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f'the G1 model is not installed: {_INSTALL}')
    folder = Path(spec.submodule_search_locations[0])
    path = folder / 'asset_zoo/robots/unitree_g1/xmls/g1.xml'
    if not path.is_file():
        raise UserError(f'{path}: no such file; install the version that has it: {_INSTALL}')
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != MJCF_SHA256:
        raise UserError(f'{path}: sha256 {found[:16]}, not {MJCF_SHA256[:16]}; {_INSTALL}')
    return path


def build_model(
    contract: Contract, physics_dt: float, floor_friction: float = 1.0
) -> mujoco.MjModel:
    """Compile the robot on a floor, actuator i being the contract's joint i, by name.

    Gains, armature and effort limits are those the policy was trained with. `physics_dt` in s;
    `floor_friction` is the sliding coefficient of the floor (contact takes the larger of two).
    """
    spec = mujoco.MjSpec.from_file(str(find_mjcf()))
    hinges = [j.name for j in spec.joints if j.type == mujoco.mjtJoint.mjJNT_HINGE]
    wrong = describe_mismatch(contract.joint_names, hinges)
    if wrong:
        raise UserError(f'{contract.name}: its joints are not those of the G1 model: {wrong}')
    spec.worldbody.add_geom(
        name='floor',
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 1],
        friction=[floor_friction, 0.005, 0.0001],
    )
    # The meshes are for the eye alone; without them this takes 5 ms rather than 0.7 s, and 390 MB
    # less. Inertia is given in the MJCF, and only capsules touch.
    spec.compiler.discardvisual = True
    spec.option.timestep = physics_dt
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for name in contract.joint_names:
        joint = contract.joints[name]
        motor = spec.add_actuator(
            name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, forcelimited=True
        )
        motor.set_to_position(kp=joint.stiffness, kv=joint.damping)
        motor.forcerange = [-joint.effort_limit_training, joint.effort_limit_training]
        spec.joint(name).armature = joint.armature
    return spec.compile()
