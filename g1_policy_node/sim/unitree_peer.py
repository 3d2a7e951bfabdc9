"""A stand-in for the real robot: MuJoCo behind Unitree's LowState and LowCmd at 500 Hz.

It holds the last command for ever, the worst that a robot's own timeout could be. SIGUSR1 lets
it down from its hoist, SIGUSR2 lifts it. What happens goes, a JSON object a line, to a file.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from g1_policy_node.bridge.dds import LOW_CMD_TOPIC, LOW_STATE_TOPIC, Network
from g1_policy_node.bridge.messages import LOW_CMD, LOW_STATE, Message
from g1_policy_node.bridge.priority import make_urgent
from g1_policy_node.bundle import CONTRACT, resolve_bundle
from g1_policy_node.contract import load_contract
from g1_policy_node.joints import G1_JOINT_NAMES
from g1_policy_node.pacing import RealTimePace
from g1_policy_node.sim.robot import MujocoRobot
from g1_policy_node.types import UserError

RATE_HZ = 500
SILENT_NS = 50_000_000
_DEBUG_DAMPING = 2.0
_GYRO_NOISE = 1e-3
"""Rad/s: an IMU is never quite still, and the router takes one that is for frozen."""

_EVERY = 50
"""Steps between two lines of where it is."""


class Peer:
    """One robot on the network. `step` is 2 ms of its life."""

    def __init__(self, robot: MujocoRobot, network: Network, mode_machine: int) -> None:
        self.robot = robot
        self._states = network.writer(LOW_STATE_TOPIC)
        self._commands = network.reader(LOW_CMD_TOPIC)
        self._state, self._command = Message(LOW_STATE), Message(LOW_CMD)
        self._candidate = Message(LOW_CMD)
        self._mode_machine = mode_machine
        self._noise = np.random.default_rng(0)
        names = list(robot.joint_names)
        self._order = np.array([G1_JOINT_NAMES.index(name) for name in names])
        self._heard = 0
        self.refused = 0
        self.steps = 0
        # In debug mode the robot damps by itself until somebody commands.
        self._command.fields['motor_cmd']['mode'] = 1
        self._command.fields['motor_cmd']['kd'] = _DEBUG_DAMPING
        robot.set_hoist(True)
        self._fill(robot.snapshot())

    def step(self, now: int) -> str:
        """Obey, move, tell. Return what the motors do: silent, damping or following."""
        data = self._commands.newest()
        if data is not None:
            self._obey(data, now)
        motors = self._command.fields['motor_cmd'][self._order]
        on = motors['mode'] == 1
        kp = np.where(on, motors['kp'], 0.0)
        self.robot.drive(motors['q'].astype(float), kp, np.where(on, motors['kd'], 0.0))
        self.steps += 1
        self._fill(self.robot.snapshot())
        self._states.write(self._state.data)
        if now - self._heard > SILENT_NS:
            return 'silent'
        return 'following' if kp.any() else 'damping'

    def _obey(self, data: bytes, now: int) -> None:
        """Take a LowCmd; one that a robot would not execute is left out and counted."""
        candidate = self._candidate
        candidate.load(data)
        f = candidate.fields
        right = f['mode_pr'] == 0 and f['mode_machine'] == self._mode_machine
        if not candidate.intact() or not right:
            self.refused += 1
            return
        self._command, self._candidate = candidate, self._command
        self._heard = now

    def _fill(self, snapshot: Any) -> None:
        f = self._state.fields
        f['mode_machine'] = self._mode_machine
        f['tick'] = time.monotonic_ns() // 1_000_000 % 2**32
        imu, motors = f['imu_state'], f['motor_state']
        tremble = _GYRO_NOISE * self._noise.standard_normal((2, 3))
        quaternion = snapshot.quat_xyzw[[3, 0, 1, 2]]
        # Its last digits alone: nothing that a controller could feel.
        quaternion[1:] += tremble[0] * 1e-2
        imu['quaternion'] = quaternion
        imu['gyroscope'] = snapshot.ang_vel + tremble[1]
        imu['accelerometer'] = snapshot.lin_acc
        motors['mode'][self._order] = 1
        motors['q'][self._order] = snapshot.joint_pos
        motors['dq'][self._order] = snapshot.joint_vel
        motors['tau_est'][self._order] = snapshot.joint_effort
        motors['temperature'][:] = 35
        self._state.seal()


def live(peer: Peer, events: Path) -> None:
    """Live in real time until SIGTERM or SIGINT."""
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda n, _frame: asked.append(n))
    pace = RealTimePace(10**9 // RATE_HZ)
    doing, fell = '', False
    with events.open('w', buffering=1) as file:

        def tell(event: str, **more: Any) -> None:
            file.write(json.dumps({'mono_ns': now, 'event': event, **more}) + '\n')

        while True:
            now = time.monotonic_ns()
            does = peer.step(now)
            if does != doing:
                doing = does
                tell(does, rebases=pace.rebases)
            while asked:
                told = asked.pop(0)
                if told in (signal.SIGTERM, signal.SIGINT):
                    tell('end', refused=peer.refused, rebases=pace.rebases)
                    return
                peer.robot.set_hoist(told == signal.SIGUSR2)
            if peer.steps % _EVERY == 0:
                at = peer.robot.snapshot()
                tell('at', position=at.position.tolist(), lin_vel=at.lin_vel.tolist())
                if not fell and peer.robot.fallen:
                    fell = True
                    tell('fell')
            pace.wait()


def main() -> int:
    """Run the peer: `unitree_peer --domain N --interface lo --events FILE`."""
    parser = argparse.ArgumentParser('unitree_peer', description=__doc__)
    parser.add_argument('--policy', default='g1_walk')
    parser.add_argument('--domain', type=int, required=True)
    parser.add_argument('--interface', default='lo')
    parser.add_argument('--events', type=Path, required=True)
    parser.add_argument('--mode-machine', type=int, default=5)
    a = parser.parse_args()
    make_urgent()  # Before the network is made: its threads inherit it.
    try:
        contract = load_contract(resolve_bundle(a.policy) / CONTRACT)
        robot = MujocoRobot(contract, 1.0 / RATE_HZ)
        live(Peer(robot, Network(a.domain, a.interface), a.mode_machine), a.events)
    except UserError as error:
        print(f'unitree_peer: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
