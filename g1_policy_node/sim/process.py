"""Runs a simulator as a process: parameters in, signals handled, evidence out."""

import gc
import threading
from collections.abc import Callable, Sequence

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from g1_policy_node.bundle import CONTRACT, resolve_bundle
from g1_policy_node.contract import Contract, load_contract
from g1_policy_node.ros_process import run_ros_process
from g1_policy_node.sim.protocol import Robot
from g1_policy_node.sim.settings import read_settings
from g1_policy_node.sim.sim_node import SimNode

NODE_NAME = 'g1_sim'
_SIGNAL_PERIOD_S = 0.1


def run_simulator(
    make_robot: Callable[[Contract, float], Robot], args: Sequence[str] | None = None
) -> int:
    """Simulate until SIGINT or SIGTERM and return the exit code.

    `make_robot(contract, physics_dt)` builds the robot. 0: stopped as asked; 1: the physics
    failed; 2: bad input, told in one line.
    """
    return run_ros_process(
        NODE_NAME, lambda stop: _simulate(rclpy.create_node(NODE_NAME), make_robot, stop), args
    )


def _simulate(
    node: Node, make_robot: Callable[[Contract, float], Robot], stop: threading.Event
) -> int:
    settings = read_settings(node)
    contract = load_contract(resolve_bundle(settings.policy) / CONTRACT)
    robot = make_robot(contract, 1.0 / settings.physics_hz)
    sim = SimNode(node, robot, contract, settings)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    finished = threading.Event()

    def simulate() -> None:
        # Nothing made so far will go, and the loop makes no cycles: a collection only stalls it.
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            sim.run()
            finished.set()
        finally:
            stop.set()

    spinning = threading.Thread(target=executor.spin, daemon=True)
    physics = threading.Thread(target=simulate, daemon=True)
    spinning.start()
    physics.start()
    # Handlers run in this thread, and beside CUDA's threads a signal alone does not wake it.
    while not stop.wait(_SIGNAL_PERIOD_S):
        pass
    sim.stop()
    physics.join()
    executor.shutdown()
    spinning.join()
    sim.save()
    node.destroy_node()
    return 0 if finished.is_set() else 1
