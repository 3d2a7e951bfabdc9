"""Where the package's own files are: config, policies, launch files."""

import os
import sys
from pathlib import Path

from g1_policy_node.types import UserError

PACKAGE = 'g1_policy_node'


def data_root() -> Path:
    """Return the folder that holds config/, policies/ and launch/.

    Code in a source tree (an editable or symlinked install too) uses that tree, so that the two
    always match. Installed code uses the share folder that ROS finds: the first prefix of
    AMENT_PREFIX_PATH with the package's marker in its index, else the Python prefix.
    """
    tree = Path(__file__).resolve().parents[1]
    if (tree / 'package.xml').is_file():
        return tree
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        marker = Path(prefix, 'share', 'ament_index', 'resource_index', 'packages', PACKAGE)
        if prefix and marker.is_file():
            return Path(prefix, 'share', PACKAGE)
    return Path(sys.prefix, 'share', PACKAGE)


def find_data(relative: str) -> Path:
    """Return a file or folder of the package, such as 'policies/g1_walk'; UserError if absent."""
    path = data_root() / relative
    if not path.exists():
        raise UserError(f'{relative}: not among the files of {PACKAGE} in {data_root()}')
    return path
