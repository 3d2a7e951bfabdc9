"""The weights file: which tensors a contract needs, and that exactly those are there.

`layers.{i}.weight` (out, in) and `layers.{i}.bias` (out,) for each layer; `normalizer.mean` and
`normalizer.divisor` (n,) where the contract requires a normalizer. All float32, all finite.
"""

import itertools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from g1_policy_node.contract import Contract
from g1_policy_node.types import UserError

MAX_WEIGHTS_BYTES = 500_000_000

Tensors = Mapping[str, NDArray[np.float32]]


def tensor_shapes(contract: Contract) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every tensor that the contract's actor is made of."""
    sizes = contract.network.sizes
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        shapes[f'layers.{i}.weight'] = (outputs, inputs)
        shapes[f'layers.{i}.bias'] = (outputs,)
    if contract.normalizer == 'required':
        shapes['normalizer.mean'] = shapes['normalizer.divisor'] = (sizes[0],)
    return shapes


def parse_weights(raw: bytes, where: str) -> dict[str, NDArray[np.float32]]:
    """Return the tensors in the bytes of a safetensors file; UserError where it is none."""
    try:
        return load(raw)
    except Exception as error:  # whatever the parser raises, the file is what is wrong
        raise UserError(f'{where}: not a safetensors file of numpy types ({error})') from None


def weights_bytes(weights: Tensors) -> bytes:
    """Return the weights as the bytes of a safetensors file; equal weights, equal bytes."""
    return save({name: np.ascontiguousarray(tensor) for name, tensor in weights.items()})


def check_weights(contract: Contract, weights: Tensors, where: str) -> None:
    """Check names, shapes, types and values; UserError lists every difference."""
    wanted = tensor_shapes(contract)
    problems = []
    if missing := [name for name in wanted if name not in weights]:
        problems.append(f'missing {", ".join(missing)}')
    if unexpected := [name for name in weights if name not in wanted]:
        problems.append(f'unexpected {", ".join(unexpected)}')
    if any(name.startswith('normalizer.') for name in (*missing, *unexpected)):
        problems.append(f'the contract says normalizer: {contract.normalizer}')
    for name in wanted:
        if name in weights:
            problems += _tensor_problems(name, weights[name], wanted[name])
    first = weights.get('layers.0.weight')
    if first is not None and first.ndim == 2 and first.shape[1] != contract.network.sizes[0]:
        problems.append(
            f'the observation terms sum to {contract.observation_size}, the weights take '
            f'{first.shape[1]}:\n{contract.table()}'
        )
    if problems:
        raise UserError(f'{where}: ' + '; '.join(problems))


def _tensor_problems(name: str, tensor: NDArray[np.float32], shape: tuple[int, ...]) -> list[str]:
    if tensor.dtype != np.float32:
        return [f'{name} is {tensor.dtype}, not float32']
    if tensor.shape != shape:
        return [f'{name} is {tensor.shape}, the contract needs {shape}']
    if bad := int(np.count_nonzero(~np.isfinite(tensor))):
        return [f'{name} has {bad} of {tensor.size} values that are not finite']
    if name == 'normalizer.divisor' and not (tensor > 0).all():
        return [f'{name} has values that are not positive']
    return []
