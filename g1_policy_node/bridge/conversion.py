"""LowState to measured joints and IMU; targets to LowCmd. Joints in SDK order throughout."""

from typing import Any

import numpy as np

from g1_policy_node.bridge.guard import JOINTS, Measured
from g1_policy_node.bridge.hardware import locked_joints
from g1_policy_node.bridge.messages import LOW_CMD, LOW_STATE, Message
from g1_policy_node.contract import Contract
from g1_policy_node.joints import G1_JOINT_NAMES
from g1_policy_node.types import Array

_ENABLE = 1
_PITCH_ROLL = 0
"""`mode_pr`: ankles and waist as pitch and roll, the joints of every policy."""

_INDEX = {name: i for i, name in enumerate(G1_JOINT_NAMES)}
_L2, _B = 1 << 5, 1 << 9


class StateReader:
    """The newest LowState, checked and in parts."""

    def __init__(self) -> None:
        self._message = Message(LOW_STATE)

    def load(self, data: bytes) -> bool:
        """Take a LowState's bytes; False if its checksum is wrong."""
        self._message.load(data)
        return self._message.intact()

    @property
    def tick(self) -> int:
        """Milliseconds on the robot's clock."""
        return int(self._message.fields['tick'])

    @property
    def estop_pressed(self) -> bool:
        """Whether L2 and B are held on the gamepad.

        Bits as in unitreerobotics/unitree_rl_gym, deploy/deploy_real/common/remote_controller.py.
        """
        low, high = self._message.fields['wireless_remote'][2:4]
        pressed = int(low) | int(high) << 8
        return pressed & _L2 > 0 and pressed & _B > 0

    def measured(self) -> Measured:
        """Return what the guard looks at, in arrays of its own."""
        motors = self._motors
        return Measured(
            self._joint('q'),
            motors['temperature'].astype(float),
            motors['motorstate'].copy(),
            int(self._message.fields['mode_machine']),
            self.tick,
        )

    def joints(self) -> tuple[Array, Array, Array]:
        """Return positions (29,) rad, velocities rad/s and torques N m; a locked joint's are 0."""
        return self._joint('q'), self._joint('dq'), self._joint('tau_est')

    def imu(self) -> tuple[Array, Array, Array]:
        """Return the pelvis IMU: quaternion (4,) x, y, z, w; rad/s (3,); m/s^2 (3,)."""
        imu = self._message.fields['imu_state']
        quaternion = imu['quaternion'].astype(float)[[1, 2, 3, 0]]
        return quaternion, imu['gyroscope'].astype(float), imu['accelerometer'].astype(float)

    @property
    def _motors(self) -> Any:
        return self._message.fields['motor_state'][:JOINTS]

    def _joint(self, name: str) -> Array:
        values: Array = self._motors[name].astype(float)
        for joint in locked_joints(int(self._message.fields['mode_machine'])):
            values[_INDEX[joint]] = 0.0
        return values


class CommandBuilder:
    """LowCmd for a target or for damping, with the contract's gains."""

    def __init__(self, contract: Contract) -> None:
        self._message = Message(LOW_CMD)
        joints = [contract.joints[name] for name in G1_JOINT_NAMES]
        self._kp = np.array([joint.stiffness for joint in joints])
        self._kd = np.array([joint.damping for joint in joints])
        self._message.fields['mode_pr'] = _PITCH_ROLL

    def build(self, target: Array | None, measured: Measured) -> bytearray:
        """Return the bytes that follow `target` (29,) rad, or damp where it is None.

        The buffer is the builder's own, overwritten by the next call. A locked joint's motor is
        not enabled.
        """
        fields = self._message.fields
        motors = fields['motor_cmd'][:JOINTS]
        fields['mode_machine'] = measured.mode_machine
        motors['mode'] = _ENABLE
        # Zero gain times a position that is not finite would be no zero.
        motors['q'] = np.nan_to_num(measured.position) if target is None else target
        motors['kp'] = 0.0 if target is None else self._kp
        motors['kd'] = self._kd
        for joint in locked_joints(measured.mode_machine):
            motors[_INDEX[joint]] = 0
        self._message.seal()
        return self._message.data
