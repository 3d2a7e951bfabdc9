"""The arm `ours`: the router as it is, with its collections noted from outside.

With BENCH_STAND_IN=1 the device cuda:0 is a second actor on the cpu, so that a change of device
can be measured on a machine without a GPU: the node's own way of changing, less the GPU.
"""

import os
import sys
from pathlib import Path

from bench.record import CollectionLog
from g1_policy_node import prepared
from g1_policy_node.actor import Actor, Weights, load_actor
from g1_policy_node.contract import NetworkContract
from g1_policy_node.node import _run
from g1_policy_node.ros_process import run_ros_process


def _stand_in(network: NetworkContract, weights: Weights, device: str) -> Actor:
    actor = load_actor(network, weights, 'cpu')
    actor.device = device
    return actor


def main() -> None:
    """Run the node, then write what was noted to $BENCH_FOLDER."""
    if os.environ.get('BENCH_STAND_IN') == '1':
        prepared.load_actor = _stand_in
    collections = CollectionLog()
    code = run_ros_process('g1_policy', _run)
    collections.save(Path(os.environ['BENCH_FOLDER']))
    sys.exit(code)


if __name__ == '__main__':
    main()
