"""A healthy walk at every trained command trips no layer: the router, the gates and MuJoCo."""

import itertools

import numpy as np
import pytest
from samples import CONTRACT, GOLDEN, LIMITS, MS

from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.command import CommandFollower
from g1_policy_node.inputs import InputGate
from g1_policy_node.modes import ModeLatch
from g1_policy_node.policy import Policy
from g1_policy_node.router import Router
from g1_policy_node.safety import SafetyGate
from g1_policy_node.sim.robot import MujocoRobot
from g1_policy_node.types import CommandSample, ImuSample, Inputs, JointSample, Mode, Stamps

BUNDLE = load_bundle(resolve_bundle('g1_walk'))
TICK = 20 * MS
COMMANDS = list(itertools.product((-0.5, 0.0, 0.5, 1.0), (-0.4, 0.0, 0.4), (-0.8, 0.0, 0.8)))
TICKS = 150


@pytest.fixture(scope='module')
def robot() -> MujocoRobot:
    return MujocoRobot(CONTRACT)


def sense(robot: MujocoRobot, now: int, velocity: tuple[float, ...]) -> Inputs:
    """Return what the simulator's node would publish at `now`, ns."""
    truth = robot.snapshot()
    stamps = Stamps(now, now, now, 0, now // TICK)
    return Inputs(
        JointSample(robot.joint_names, truth.joint_pos, truth.joint_vel, stamps),
        ImuSample('pelvis', truth.quat_xyzw, truth.ang_vel, truth.lin_acc, '', stamps),
        CommandSample(np.array(velocity), stamps),
        None,
    )


@pytest.mark.parametrize('velocity', COMMANDS)
def test_no_layer_speaks(robot: MujocoRobot, velocity: tuple[float, ...]) -> None:
    robot.reset()
    robot.set_hoist(True)
    changes: list[tuple[Mode, str]] = []
    router = Router(
        CONTRACT,
        Policy(CONTRACT, load_actor(CONTRACT.network, BUNDLE.weights, 'cpu')),
        InputGate(CONTRACT, LIMITS, 60 * MS),
        SafetyGate(CONTRACT, LIMITS, GOLDEN),
        CommandFollower(CONTRACT.command_limits, 500 * MS),
        ModeLatch(lambda *change: changes.append(change)),
        hold_timeout_ns=250 * MS,
        auto_run=True,
        stopwatch=lambda: 0,
    )
    router.activate()
    running, now = 0, 0
    while running < TICKS:
        now += TICK
        tick = router.tick(now, 1, sense(robot, now, velocity))
        assert tick.mode not in (Mode.WAITING, Mode.HOLD, Mode.DAMP), changes
        if tick.mode is Mode.RUN:
            robot.set_hoist(False)
            running += 1
        for _ in range(4):
            robot.step(tick.target)
    assert not robot.fallen
    assert [mode for mode, _ in changes] == [Mode.WAITING, Mode.RAMP, Mode.READY, Mode.RUN]
    assert not any(router.safety.counters.values()), router.safety.counters
    assert not router.inputs.counters
    assert not router.held_for
    assert not any(router.command.counters.values())
