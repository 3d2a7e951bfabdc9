"""The environment of the ROS processes we start: their own domain, this host, quick discovery."""

import os
import random
import sys
from collections.abc import Container, Mapping, MutableMapping
from pathlib import Path

from g1_policy_node.fast_dds import DISCOVERY_RANGE, use_sockets

DOMAINS = range(1, 102)
"""Domains whose ports stay below Linux's ephemeral range."""


def ros_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return `environment` with what is unset filled in; the user's own settings stay."""
    chosen = dict(environment)
    chosen.setdefault(DISCOVERY_RANGE, 'LOCALHOST')
    use_sockets(chosen)
    if 'ROS_DOMAIN_ID' not in chosen:
        chosen['ROS_DOMAIN_ID'] = str(free_domain(bound_udp_ports()))
    find_wheels(chosen)
    return chosen


def find_wheels(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set where ROS wheels are: they put their index under the Python prefix, and tell nobody.

    Nothing else: what joins a robot or a run keeps to the user's domain and range.
    """
    if Path(sys.prefix, 'share', 'ament_index').is_dir():
        environment.setdefault('AMENT_PREFIX_PATH', sys.prefix)


def free_domain(ports: Container[int]) -> int:
    """Return a random domain whose discovery port is not among `ports`, if there is one."""
    domains = random.sample(DOMAINS, len(DOMAINS))
    return next((d for d in domains if 7400 + 250 * d not in ports), domains[0])


def bound_udp_ports() -> set[int]:
    """Return the UDP ports in use on this host; empty where the kernel does not say."""
    table = Path('/proc/net/udp')
    lines = table.read_text().splitlines()[1:] if table.exists() else []
    return {int(line.split()[1].rpartition(':')[2], 16) for line in lines}
