"""What the doctor hears: the ROS topics in this process, the robot's in another."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import rclpy
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, String

from g1_policy_node.bridge.hardware import revision_faults
from g1_policy_node.contract import Contract
from g1_policy_node.newest import LATCHED_QOS, SENSOR_QOS, NewestMessage
from g1_policy_node.tools.doctor import Finding, Level

LISTEN_S = 2.0
STATE_HZ = 400.0
"""LowState comes at 500 Hz; fewer than this means that some are lost."""

TOPICS: Mapping[str, type] = {
    'joint_states': JointState,
    'imu/data': Imu,
    'joint_command': JointState,
    'cmd_vel': Twist,
    'odom': Odometry,
    'g1_policy/mode': String,
    'g1_policy/step': Float64MultiArray,
}
STREAMS = frozenset({'joint_states', 'imu/data', 'odom', 'g1_policy/step'})
"""What comes as long as its sender lives; the others come when there is something to say."""

POLICY_HZ = 50.0
OLD_MS = 60.0
"""The router's own limits: its rate, and the default of state_timeout."""


class Heard(NamedTuple):
    """A ROS topic: who publishes it, its rate, Hz, and the age of its newest message, ms."""

    senders: tuple[str, ...]
    hz: float
    age_ms: float | None


def check_topics() -> list[Finding]:
    """Listen to the ROS topics for two seconds."""
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node(
        'g1_doctor', context=context, use_global_arguments=False, enable_rosout=False
    )
    try:
        readers = {
            name: NewestMessage[Any](
                node, kind, name, LATCHED_QOS if kind is String else SENSOR_QOS
            )
            for name, kind in TOPICS.items()
        }
        counts, last = dict.fromkeys(TOPICS, 0), dict[str, Any]()
        started = time.monotonic()
        while time.monotonic() - started < LISTEN_S:
            for name, reader in readers.items():
                if taken := reader.take():
                    counts[name] += 1
                    last[name] = taken
            time.sleep(0.001)
        heard = {
            name: Heard(
                tuple(
                    f'{i.node_namespace.rstrip("/")}/{i.node_name}'
                    for i in node.get_publishers_info_by_topic(reader.topic)
                ),
                counts[name] / LISTEN_S,
                (time.time_ns() - last[name].source) * 1e-6 if name in last else None,
            )
            for name, reader in readers.items()
        }
        clocks = len(node.get_publishers_info_by_topic('/clock'))
    finally:
        node.destroy_node()
        rclpy.shutdown(context=context)
    return [*topics(heard), *ros_clock(clocks)]


def topics(heard: Mapping[str, Heard]) -> list[Finding]:
    """Judge what was heard: rivals fail, what is published and silent fails."""
    findings = []
    silent = [name for name, (senders, _, _) in heard.items() if not senders]
    if silent:
        found = f'nobody publishes {", ".join(silent)}: no rate, no age'
        findings.append(Finding('topics', Level.WARN, found, 'run this again beside the nodes'))
    for name, (senders, hz, age) in heard.items():
        if name in silent:
            continue
        if len(senders) > 1:
            remedy = 'one of them must go: two senders fight over the robot'
            found = f'{name} has {len(senders)} senders: {", ".join(senders)}'
            findings.append(Finding('topics', Level.FAIL, found, remedy))
        elif age is None:
            level = Level.FAIL if name in STREAMS else Level.WARN
            remedy = 'see its log; a router commands from RAMP on, a teleop while it is held'
            found = f'{name}: {senders[0]} publishes nothing'
            findings.append(Finding('topics', level, found, remedy))
        else:
            findings.append(_flow(name, senders[0], hz, age))
    return findings


def _flow(name: str, sender: str, hz: float, age: float) -> Finding:
    """Judge the rate and the age of a topic whose one sender was heard."""
    found = f'{name}: {hz:.0f} Hz from {sender}, newest {age:.1f} ms old'
    slow = hz < 0.98 * POLICY_HZ or age > OLD_MS
    if name in STREAMS and slow:
        remedy = f'the router needs {POLICY_HZ:g} Hz, and nothing older than {OLD_MS:g} ms'
        return Finding('topics', Level.WARN, found, remedy)
    return Finding('topics', Level.PASS, found)


def ros_clock(publishers: int) -> list[Finding]:
    """Judge the ROS clock by how many publish /clock."""
    if not publishers:
        return [Finding('ros_clock', Level.PASS, 'nobody publishes /clock: system time')]
    remedy = 'end the simulator or the bag player before a robot is started'
    return [Finding('ros_clock', Level.WARN, f'{publishers} publish /clock', remedy)]


def check_robot(domain: int, interface: str, contract: Contract) -> list[Finding]:
    """Listen to the robot."""
    done = subprocess.run(
        [sys.executable, '-m', 'g1_policy_node.bridge.probe', str(domain), interface],
        capture_output=True,
        text=True,
        timeout=30,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ['no reason given'])[-1]
        return [Finding('robot', Level.FAIL, reason, f'check interface {interface}')]
    return robot(json.loads(done.stdout), contract)


def robot(heard: Mapping[str, Any], contract: Contract) -> list[Finding]:
    """Judge what the probe heard."""
    if not heard['state_hz']:
        remedy = 'robot on? wired? this host 192.168.123.x? the right interface and domain?'
        return [Finding('robot', Level.FAIL, 'no LowState', remedy)]
    slow = heard['state_hz'] < STATE_HZ
    found = f'LowState {heard["state_hz"]:.0f} Hz, at most {heard["state_age_ms"]:.1f} ms late'
    remedy = 'frames are lost: check cable, switch and load' if slow else ''
    findings = [Finding('robot', Level.WARN if slow else Level.PASS, found, remedy)]
    if heard['bad_crcs']:
        found = f'{heard["bad_crcs"]} LowState with a wrong CRC'
        findings.append(Finding('robot', Level.FAIL, found, 'firmware and layout do not agree'))
    if heard['senders']:
        found = f'LowCmd is sent by {", ".join(heard["senders"])}'
        remedy = 'debug mode (L2+R2), and end other programs; a bridge of yours is one, too'
        findings.append(Finding('robot', Level.FAIL, found, remedy))
    findings += [
        Finding(
            'hardware', Level.FAIL, fault.reason, f'only at your own risk: accept {fault.name}'
        )
        for fault in revision_faults(contract, heard['mode_machine'])
    ] or [Finding('hardware', Level.PASS, f'mode_machine {heard["mode_machine"]} fits')]
    return findings
