"""One figure from a sensor's reading to a leg's motion, with its parts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from g1_policy_node.types import UserError

PARTS = ('sensor_age', 'observe', 'act', 'check', 'publish', 'transport')


def end_to_end(tape: Path, stages: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the medians in ms from a sensor's reading to a leg's motion; None without a tape.

    The sum of medians is a figure to compare robots and devices by, no percentile of anything.
    """
    if not tape.is_dir():
        return None
    from g1_policy_node.tools.tape.actuator import response
    from g1_policy_node.tools.tape.tape import open_tape

    try:
        moved = response(open_tape(tape))
    except UserError as error:
        return {'missing': str(error)}
    parts: dict[str, float | None] = {name: (stages[name] or {}).get('p50') for name in PARTS}
    parts['actuator'] = moved['legs_ms']
    known = [value for value in parts.values() if value is not None]
    total = sum(known) if len(known) == len(parts) else None
    return {'parts_ms': parts, 'total_ms': total, 'actuator_groups': moved['groups']}
