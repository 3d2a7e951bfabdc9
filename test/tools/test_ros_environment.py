import sys
from pathlib import Path

from g1_policy_node.tools.ros_environment import DOMAINS, free_domain, ros_environment


def test_a_users_own_settings_stay() -> None:
    own = {
        'ROS_DOMAIN_ID': '7',
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET',
        'AMENT_PREFIX_PATH': '/opt/ros/jazzy',
        'FASTRTPS_DEFAULT_PROFILES_FILE': '/etc/mine.xml',
        'FASTDDS_BUILTIN_TRANSPORTS': 'DEFAULT',
    }
    assert ros_environment(own) == own


def test_what_is_unset_keeps_the_run_to_this_host_and_to_itself() -> None:
    chosen = ros_environment({})
    assert Path(chosen['FASTRTPS_DEFAULT_PROFILES_FILE']).name == 'fastdds.xml'
    assert int(chosen['ROS_DOMAIN_ID']) in DOMAINS
    wheels = Path(sys.prefix, 'share', 'ament_index').is_dir()
    assert chosen.get('AMENT_PREFIX_PATH') == (sys.prefix if wheels else None)


def test_a_domain_in_use_is_avoided() -> None:
    taken = {7400 + 250 * domain for domain in DOMAINS if domain != 42}
    assert free_domain(taken) == 42
    assert free_domain({7400 + 250 * domain for domain in DOMAINS}) in DOMAINS
