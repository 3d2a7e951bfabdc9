"""Listens to the robot for two seconds and says what it heard, as JSON: for the doctor.

A process of its own, as cyclonedds and rclpy do not share one. It sends nothing.
"""

import json
import sys
import time

from g1_policy_node.bridge.conversion import StateReader
from g1_policy_node.bridge.dds import LOW_CMD_TOPIC, LOW_STATE_TOPIC, Network
from g1_policy_node.bridge.tick_clock_fit import TickClockFit
from g1_policy_node.types import UserError

LISTEN_S = 2.0


def listen(domain: int, interface: str) -> dict[str, object]:
    """Return what is on the robot's topics: rates in Hz, ages in ms."""
    network = Network(domain, interface)
    states = network.reader(LOW_STATE_TOPIC)
    state, fit = StateReader(), TickClockFit()
    ages: list[float] = []
    bad = 0
    machine: int | None = None
    started = time.monotonic()
    while time.monotonic() - started < LISTEN_S:
        data = states.newest()
        if data is None:
            time.sleep(0.0005)
        elif state.load(data):
            ages.append(fit.age(state.tick, time.monotonic_ns()) * 1e-6)
            machine = state.measured().mode_machine
        else:
            bad += 1
    return {
        'state_hz': len(ages) / LISTEN_S,
        'state_age_ms': max(ages, default=None),
        'bad_crcs': bad,
        'mode_machine': machine,
        'senders': network.senders(LOW_CMD_TOPIC, ''),
    }


def main() -> int:
    """Run the probe: `probe DOMAIN INTERFACE`."""
    try:
        print(json.dumps(listen(int(sys.argv[1]), sys.argv[2])))
    except UserError as error:
        print(str(error), file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
