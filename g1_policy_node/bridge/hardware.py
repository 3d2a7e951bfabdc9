"""Which G1 this is, by `mode_machine`, and whether a policy's contract fits it.

Types 1 to 9 after the table in unitreerobotics/unitree_rl_gym,
resources/robots/g1_description/README.md; that types 10, 11, 12, 15 and 16 have the stronger
hip-pitch motor is from owners' reports. None of it was checked on a robot.
"""

from collections.abc import Mapping
from typing import NamedTuple

from g1_policy_node.contract import Contract
from g1_policy_node.joints import G1_JOINT_NAMES, G1_JOINTS, describe_mismatch
from g1_policy_node.types import Fault

WAIST_LOCK = ('waist_roll_joint', 'waist_pitch_joint')

# The leg motor N7520 by its gear ratio: effort [N m] and armature [kg m^2] (mjlab's constants).
_WEAK = (88.0, 0.01017752)
_STRONG = (139.0, 0.025101925)
_SIDES = ('left', 'right')


class Revision(NamedTuple):
    """One hardware revision: what `mode_machine` stands for.

    `strong` names the joints beyond the knees with the motor of 139 N m.
    """

    name: str
    locked: tuple[str, ...] = ()
    strong: tuple[str, ...] = ()


REVISIONS: Mapping[int, Revision] = {
    2: Revision('29 joints'),
    3: Revision('29 joints, waist locked', WAIST_LOCK),
    5: Revision('29 joints, rev 1.0', (), ('hip_roll',)),
    6: Revision('29 joints, rev 1.0, waist locked', WAIST_LOCK, ('hip_roll',)),
    **{
        number: Revision(f'29 joints, type {number}', (), ('hip_roll', 'hip_pitch'))
        for number in (10, 11, 12, 15, 16)
    },
}

ACCEPTABLE = ('effort_limits', 'gain_family', 'locked_waist')
"""What an operator may accept by name; everything else stops the robot from being armed."""


def revision_faults(contract: Contract, mode_machine: int) -> list[Fault]:
    """Return everything that keeps this contract off this robot."""
    revision = REVISIONS.get(mode_machine)
    if revision is None:
        known = ', '.join(str(number) for number in REVISIONS)
        reason = f'mode_machine {mode_machine} is no G1 with 29 joints known here (those: {known})'
        return [Fault('mode_machine', reason)]
    wrong = describe_mismatch(contract.joint_names, G1_JOINT_NAMES)
    if wrong:
        return [Fault('joints', f"the contract's joints are not the robot's: {wrong}")]
    checks = (_locked(revision), _effort(contract, revision), _family(contract, revision))
    return [fault for fault in checks if fault is not None]


def locked_joints(mode_machine: int) -> tuple[str, ...]:
    """Return the joints this revision has no motor for."""
    revision = REVISIONS.get(mode_machine)
    return revision.locked if revision else ()


def _locked(revision: Revision) -> Fault | None:
    if not revision.locked:
        return None
    names = ', '.join(revision.locked)
    return Fault('locked_waist', f'{names}: locked on this robot ({revision.name})')


def _effort(contract: Contract, revision: Revision) -> Fault | None:
    """Compare what the contract believes the motors can do with what they can."""
    real = {joint.name: joint.effort for joint in G1_JOINTS}
    real |= {
        f'{side}_{part}_joint': _motor(part, revision)[0]
        for side in _SIDES
        for part in ('hip_pitch', 'hip_roll')
    }
    beyond = [
        f'{name} {contract.joints[name].effort_limit_hardware:g} N m (has {limit:g})'
        for name, limit in real.items()
        if contract.joints[name].effort_limit_hardware > limit * 1.01
    ]
    if not beyond:
        return None
    return Fault('effort_limits', f'the contract counts on more torque: {", ".join(beyond)}')


def _family(contract: Contract, revision: Revision) -> Fault | None:
    """Compare by its armature which motor each hip was trained with."""
    other = []
    for side in _SIDES:
        for part in ('hip_pitch', 'hip_roll'):
            name = f'{side}_{part}_joint'
            here = _motor(part, revision)[1]
            there = (_STRONG if here == _WEAK[1] else _WEAK)[1]
            trained = contract.joints[name].armature
            if abs(trained - there) < abs(trained - here):
                other.append(f'{name} (armature {trained:g}, here {here:g})')
    if not other:
        return None
    return Fault('gain_family', f'trained with the other motor: {", ".join(other)}')


def _motor(part: str, revision: Revision) -> tuple[float, float]:
    return _STRONG if part in revision.strong else _WEAK
