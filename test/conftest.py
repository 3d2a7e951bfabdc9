"""Keeps every test to this host, and each to a ROS domain of its own."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from g1_policy_node.fast_dds import DISCOVERY_RANGE, FAST_DDS, PROFILES, RMW, use_sockets
from g1_policy_node.tools.ros_environment import bound_udp_ports, free_domain

# Set before anything imports rclpy, which reads them once; inherited by every process started.
os.environ.pop(PROFILES, None)
os.environ[DISCOVERY_RANGE] = 'LOCALHOST'
os.environ['ROS_LOG_DIR'] = tempfile.mkdtemp(prefix='g1-test-log-')
if Path(sys.prefix, 'share', 'ament_index').is_dir():  # ROS came as wheels.
    os.environ['AMENT_PREFIX_PATH'] = sys.prefix
    os.environ[RMW] = FAST_DDS
use_sockets(os.environ)


@pytest.fixture(autouse=True)
def ros_domain(monkeypatch: pytest.MonkeyPatch) -> int:
    """A domain for one test: what another test leaves on the wire is not heard in this one."""
    domain = free_domain(bound_udp_ports())
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    return domain
