"""How a measurement is spread: the percentiles every table of this package shows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def spread(values: NDArray[Any]) -> dict[str, float] | None:
    """Return p50, p95, p99 and max of `values` (n,), in their unit; None of no values."""
    if not len(values):
        return None
    p50, p95, p99 = (float(p) for p in np.percentile(values, (50, 95, 99)))
    return {'p50': p50, 'p95': p95, 'p99': p99, 'max': float(np.max(values))}
