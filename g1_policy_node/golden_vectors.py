"""Golden vectors: observations and the actions that any device must give for them."""

import io
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.arrays import parse_arrays
from g1_policy_node.contract import Contract
from g1_policy_node.types import Array, UserError

MAX_GOLDEN_BYTES = 64_000_000
"""Of the file, and of what is in it once unpacked."""


class Golden(NamedTuple):
    """`observations` (T, n) float32 and `actions` (T, N) float64, raw network output."""

    observations: NDArray[np.float32]
    actions: Array


def parse_golden(raw: bytes, contract: Contract, where: str) -> Golden:
    """Return the golden vectors of a contract from the bytes of an npz file.

    Raises UserError where they are of another contract, another shape, or not finite.
    """
    arrays = parse_arrays(raw, MAX_GOLDEN_BYTES, where)
    for name in ('observations', 'actions'):
        if name not in arrays:
            raise UserError(f'{where}: no array {name}, only {", ".join(arrays) or "nothing"}')
    stored = arrays.get('contract_sha256')
    if stored is not None and str(stored) != contract.sha256:
        raise UserError(
            f'{where}: made for contract_sha256 {stored!s:.80}, this one is {contract.sha256}'
        )
    golden = Golden(arrays['observations'], arrays['actions'])
    check_golden(golden, contract, where)
    return golden


def golden_bytes(golden: Golden, contract: Contract) -> bytes:
    """Return the golden vectors as the bytes of an npz file that names its contract."""
    stream = io.BytesIO()
    np.savez_compressed(
        stream,
        observations=golden.observations,
        actions=golden.actions,
        contract_sha256=np.array(contract.sha256),
    )
    return stream.getvalue()


def check_golden(golden: Golden, contract: Contract, where: str) -> None:
    """Check shapes, types and values; UserError names the first that is wrong."""
    rows = golden.observations.shape[0] if golden.observations.ndim else 0
    if rows < 1:
        raise UserError(f'{where}: no rows')
    for name, array, width, dtype in (
        ('observations', golden.observations, contract.network.sizes[0], np.float32),
        ('actions', golden.actions, contract.network.sizes[-1], np.float64),
    ):
        if array.dtype != dtype:
            raise UserError(f'{where}: {name} are {array.dtype}, not {np.dtype(dtype)}')
        if array.shape != (rows, width):
            raise UserError(f'{where}: {name} are {array.shape}, not {(rows, width)}')
        if not np.isfinite(array).all():
            raise UserError(f'{where}: {name} have values that are not finite')
