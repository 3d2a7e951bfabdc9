"""How Fast DDS carries messages: by sockets, not by shared memory, where a send may sleep 0.33 s.

docs/decisions/013-sockets-not-shared-memory.md says why.
"""

from collections.abc import MutableMapping

from g1_policy_node.paths import find_data

RMW = 'RMW_IMPLEMENTATION'
FAST_DDS = 'rmw_fastrtps_cpp'
DISCOVERY_RANGE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
PROFILES = 'FASTRTPS_DEFAULT_PROFILES_FILE'
TRANSPORTS = 'FASTDDS_BUILTIN_TRANSPORTS'


def use_sockets(environment: MutableMapping[str, str]) -> None:
    """Set what keeps Fast DDS off shared memory; a profile or transports of the user's own stay.

    LOCALHOST would add shared memory whatever else is set, so that our profile takes its place.
    """
    environment.setdefault(TRANSPORTS, 'UDPv4')
    fast_dds = environment.get(RMW, FAST_DDS) == FAST_DDS
    if (
        fast_dds
        and environment.get(DISCOVERY_RANGE) == 'LOCALHOST'
        and PROFILES not in environment
    ):
        environment[DISCOVERY_RANGE] = 'SYSTEM_DEFAULT'
        environment[PROFILES] = str(find_data('config/fastdds.xml'))
