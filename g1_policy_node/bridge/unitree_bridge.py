"""The executable unitree_bridge: node and writer processes, from parameters to exit code."""

import importlib.util
import sys
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from g1_policy_node.bridge.bridge_node import BridgeNode
from g1_policy_node.bridge.hardware import ACCEPTABLE
from g1_policy_node.bridge.link import Link
from g1_policy_node.bridge.writer_settings import WriterSettings
from g1_policy_node.bridge.writers import Writers
from g1_policy_node.bundle import CONTRACT, resolve_bundle
from g1_policy_node.contract import load_contract
from g1_policy_node.joints import G1_JOINT_NAMES, describe_mismatch
from g1_policy_node.parameters import Spec, declare
from g1_policy_node.ros_process import run_ros_process
from g1_policy_node.run_folder import write_json
from g1_policy_node.types import UserError

NODE_NAME = 'g1_bridge'
_ACCEPT = ', '.join(ACCEPTABLE)
PARAMETERS = {
    'policy': Spec('g1_walk', 'policy bundle: a folder, or a name under policies/'),
    'interface': Spec('', 'network interface that the robot is wired to, such as eth0'),
    'domain': Spec(0, "DDS domain of the robot's own topics"),
    'rate': Spec(200.0, 'sensor messages per second', range=(50.0, 500.0)),
    'command_timeout': Spec(0.1, 's; silence after which the motors damp', range=(0.02, 1.0)),
    'linger': Spec(1.0, 's; how long damping is sent on leaving', range=(0.1, 10.0)),
    'run_dir': Spec('', 'folder for bridge.json; empty: none is written'),
    'accept': Spec([''], f'findings about the hardware to accept: {_ACCEPT}'),
}


class Settings(NamedTuple):
    """The parameters, checked."""

    policy: Path
    interface: str
    domain: int
    rate: float
    command_timeout: float
    linger: float
    accept: tuple[str, ...]
    run_dir: Path | None


def read_settings(node: Node) -> Settings:
    """Declare every parameter and return the values; UserError for a wrong one."""
    declare(node, PARAMETERS)

    def value(name: str) -> Any:
        return node.get_parameter(name).value

    if not value('interface'):
        raise UserError('parameter interface: name the network interface to the robot')
    if not 0 <= value('domain') <= 232:
        raise UserError(f'parameter domain: {value("domain")} is outside 0 to 232')
    accept = tuple(name for name in value('accept') if name)
    for name in accept:
        if name not in ACCEPTABLE:
            raise UserError(f'parameter accept: {name!r} is none of {_ACCEPT}')
    return Settings(
        resolve_bundle(value('policy')),
        value('interface'),
        value('domain'),
        value('rate'),
        value('command_timeout'),
        value('linger'),
        accept,
        Path(value('run_dir')) if value('run_dir') else None,
    )


def main(args: Sequence[str] | None = None) -> int:
    """Run the bridge until it is stopped; see the README for its parameters."""
    return run_ros_process(NODE_NAME, _bridge, args)


def _bridge(stop: threading.Event) -> int:
    if importlib.util.find_spec('cyclonedds') is None:
        raise UserError('cyclonedds is not installed: pip install cyclonedds==11.0.1')
    node = rclpy.create_node(NODE_NAME)
    s = read_settings(node)
    contract = load_contract(s.policy / CONTRACT)
    if wrong := describe_mismatch(contract.joint_names, G1_JOINT_NAMES):
        raise UserError(f"{contract.name}: its joints are not the robot's: {wrong}")
    link = Link()
    writers = Writers(
        WriterSettings(
            link.descriptors,
            f'g1_bridge {uuid.uuid4()}',
            str(s.policy),
            s.domain,
            s.interface,
            s.command_timeout,
            s.linger,
            s.accept,
        )
    )
    bridge = BridgeNode(node, contract, link, writers, s.rate)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    spinning = threading.Thread(target=executor.spin, daemon=True)
    spinning.start()
    try:
        bridge.run(stop)
    finally:
        left = writers.stop()
        executor.shutdown()
        spinning.join()
        if s.run_dir:
            write_json(s.run_dir / 'bridge.json', bridge.facts())
        node.destroy_node()
    return 0 if left else 1


if __name__ == '__main__':
    sys.exit(main())
