import os
import subprocess
import sys

import pytest

from g1_policy_node.fast_dds import (
    DISCOVERY_RANGE,
    FAST_DDS,
    PROFILES,
    RMW,
    TRANSPORTS,
    use_sockets,
)

NODE = """
import rclpy
from g1_policy_node.ros_process import run_ros_process

def body(stop):
    rclpy.create_node('anybody')
    print(open('/proc/self/maps').read().count('/dev/shm/fastrtps'))
    return 0

run_ros_process('anybody', body, [])
"""


def settings(**own: str) -> dict[str, str]:
    kept = {
        k: v for k, v in os.environ.items() if k not in (DISCOVERY_RANGE, PROFILES, TRANSPORTS)
    }
    return kept | own


@pytest.mark.ros
@pytest.mark.parametrize('where', ['LOCALHOST', 'SUBNET'])
def test_no_node_of_ours_opens_shared_memory_and_fast_dds_has_no_complaint(where: str) -> None:
    environment = settings(ROS_AUTOMATIC_DISCOVERY_RANGE=where, RMW_IMPLEMENTATION=FAST_DDS)
    done = subprocess.run(
        [sys.executable, '-c', NODE], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, '0', '')


def test_localhost_becomes_our_profile_and_stays_on_this_host() -> None:
    chosen = {DISCOVERY_RANGE: 'LOCALHOST'}
    use_sockets(chosen)
    assert chosen[DISCOVERY_RANGE] == 'SYSTEM_DEFAULT'
    with open(chosen[PROFILES]) as profile:
        assert '<address>127.0.0.1</address>' in profile.read()


@pytest.mark.parametrize(
    'own',
    [
        {DISCOVERY_RANGE: 'SUBNET', TRANSPORTS: 'DEFAULT'},
        {DISCOVERY_RANGE: 'LOCALHOST', TRANSPORTS: 'DEFAULT', PROFILES: '/etc/mine.xml'},
        {DISCOVERY_RANGE: 'LOCALHOST', TRANSPORTS: 'DEFAULT', RMW: 'rmw_cyclonedds_cpp'},
    ],
)
def test_a_users_own_settings_stay(own: dict[str, str]) -> None:
    chosen = dict(own)
    use_sockets(chosen)
    assert chosen == own
