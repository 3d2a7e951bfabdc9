"""Makes small tapes: a robot at its default pose, and the policy's own rows on `~/step`."""

from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from samples import CONTRACT, DEFAULT, LIMITS

from g1_policy_node.action import JointPositionAction
from g1_policy_node.actor import load_actor
from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.safety import SafetyGate
from g1_policy_node.tools.tape.offline import joint_state as joint_state_of
from g1_policy_node.tools.tape.tape import STEP_TIMES

BUNDLE = load_bundle(resolve_bundle('g1_walk'))
T0 = 1_700_000_000 * 10**9
TICK, MS = 20_000_000, 1_000_000
STORE = get_typestore(Stores.ROS2_JAZZY)
TYPES = STORE.types


def actor():
    return load_actor(CONTRACT.network, BUNDLE.weights, 'cpu')


def header(time: int, frame: str = ''):
    stamp = TYPES['builtin_interfaces/msg/Time'](sec=time // 10**9, nanosec=time % 10**9)
    return TYPES['std_msgs/msg/Header'](stamp=stamp, frame_id=frame)


def joint_state(time: int, position=DEFAULT):
    return TYPES['sensor_msgs/msg/JointState'](
        header(time), list(CONTRACT.joint_names), np.array(position), np.zeros(29), np.zeros(0)
    )


def imu(time: int):
    vector, quaternion = (TYPES[f'geometry_msgs/msg/{n}'] for n in ('Vector3', 'Quaternion'))
    return TYPES['sensor_msgs/msg/Imu'](
        header(time, 'pelvis'),
        quaternion(0.0, 0.0, 0.0, 1.0),
        np.zeros(9),
        vector(0.0, 0.0, 0.0),
        np.zeros(9),
        vector(0.0, 0.0, 9.81),
        np.zeros(9),
    )


def step(slot: int, observation, action, verdict: int):
    blocks = {
        'tick': [slot, slot],
        'times': [0.0] * len(STEP_TIMES),
        'sensor_stamps': [0.0, 0.0],
        'command': [0.5, 0.0, 0.0],
        'observation': observation,
        'action': action,
        'verdict': [verdict],
    }
    dimension = TYPES['std_msgs/msg/MultiArrayDimension']
    layout = TYPES['std_msgs/msg/MultiArrayLayout'](
        [dimension(label, len(values), len(values)) for label, values in blocks.items()], 0
    )
    data = np.concatenate([np.asarray(v, dtype=np.float64) for v in blocks.values()])
    return TYPES['std_msgs/msg/Float64MultiArray'](layout, data)


def messages(ticks: int = 60, steps: bool = True):
    """Yield (receive time, topic, message) of `ticks` ticks; sensors at 200 Hz."""
    network, gate, scaling = (
        actor(),
        SafetyGate(CONTRACT, LIMITS, BUNDLE.golden_observations),
        JointPositionAction(CONTRACT),
    )
    last = DEFAULT
    for slot in range(ticks):
        for part in range(4):
            time = T0 + slot * TICK + part * 5 * MS
            yield time, '/joint_states', joint_state(time)
            yield time, '/imu/data', imu(time)
        time = T0 + slot * TICK + 16 * MS
        row = BUNDLE.golden_observations[slot % len(BUNDLE.golden_observations)]
        action = network(row).astype(np.float64)
        checked = gate.check(scaling.target(action), last, joint_state_of(CONTRACT, row))
        last = checked.target
        yield time, '/joint_command', joint_state(time, last)
        if steps:
            yield time + MS, '/g1_policy/step', step(slot, row, action, checked.verdict.value)


def write_tape(path: Path, content=None, storage=StoragePlugin.MCAP) -> Path:
    """Write a bag of (receive time, topic, message) and return its folder."""
    with Writer(path, version=9, storage_plugin=storage) as writer:
        for name in ('weights_sha256', 'contract_sha256'):
            writer.set_custom_data(name, getattr(BUNDLE, name))
        connections: dict = {}
        for time, topic, message in content if content is not None else messages():
            kind = message.__msgtype__
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=STORE)
            writer.write(connections[topic], time, STORE.serialize_cdr(message, kind))
    return path
