"""Finds the MLP in a graph of tensor operations, or says what else is in it.

A graph is taken apart along one line: blocks of input (each perhaps shifted, clipped, scaled),
joined; perhaps a normalizer (minus mean, over divisor); linear layers with one activation between
them; perhaps a scale and an offset behind. Anything else is refused by its name.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.types import UserError

Constant = NDArray[Any]
ACTIVATIONS = ('elu', 'relu', 'tanh')
ARITHMETIC = {'add': np.add, 'sub': np.subtract, 'mul': np.multiply, 'div': np.divide}


class Op(NamedTuple):
    """One operation: its kind, the names it reads, the name it makes, clip's bounds."""

    kind: str
    args: tuple[str, ...]
    output: str
    bounds: tuple[float, float] | None = None


class Graph(NamedTuple):
    """Operations in the order they run. `inputs` are widths by name, `constants` arrays."""

    inputs: Mapping[str, int]
    outputs: tuple[str, ...]
    ops: tuple[Op, ...]
    constants: dict[str, Constant]


@dataclass(frozen=True)
class Block:
    """An input of the graph: clip((input - minus) / over) * times; None is not there."""

    name: str
    minus: Constant | None = None
    over: Constant | None = None
    clip: tuple[float, float] | None = None
    times: Constant | None = None

    @property
    def plain(self) -> bool:
        """Tell whether the input enters the network as it is."""
        return all(x is None for x in (self.minus, self.over, self.clip, self.times))


@dataclass(frozen=True)
class Mlp:
    """The network: blocks, then a normalizer, then layers; behind it clip, `times` and `plus`."""

    blocks: tuple[Block, ...]
    weights: Mapping[str, Constant]
    activations: tuple[str, ...] = ()
    clip: tuple[float, float] | None = None
    times: Constant | None = None
    plus: Constant | None = None

    @property
    def changed(self) -> bool:
        """Tell whether the last layer's output is clipped, scaled or shifted."""
        return any(x is not None for x in (self.clip, self.times, self.plus))

    @property
    def depth(self) -> int:
        """The number of layers."""
        return sum(name.endswith('.weight') for name in self.weights)

    @property
    def sizes(self) -> list[int]:
        """Layer sizes from observation to action."""
        shapes = [self.weights[f'layers.{i}.weight'].shape for i in range(self.depth)]
        return [shapes[0][1], *(shape[0] for shape in shapes)]


Value = Block | Mlp | Constant


def read_outputs(graph: Graph, where: str) -> dict[str, Value]:
    """Return what each output of the graph is; UserError names the first operation that is else.

    `where` names the file.
    """
    values: dict[str, Value] = {**graph.constants, **{n: Block(n) for n in graph.inputs}}
    for op in graph.ops:
        unknown = [name for name in op.args if name not in values]
        try:
            if unknown:
                raise UserError(f'reads {", ".join(unknown)}, which nothing makes')
            values[op.output] = _apply(op, [values[name] for name in op.args])
        except (UserError, ValueError) as error:
            raise UserError(
                f'{where}: not a plain MLP: operation {op.kind} making {op.output!r:.60} {error}'
            ) from None
    return {name: values[name] for name in graph.outputs if name in values}


def plain_mlp(values: Mapping[str, Value], where: str) -> Mlp:
    """Return the one network from one unchanged input to one output; UserError otherwise."""
    if len(values) != 1:
        raise UserError(f'{where}: not a plain MLP: outputs {", ".join(values) or "none"}')
    found = next(iter(values.values()))
    if not isinstance(found, Mlp):
        raise UserError(f'{where}: not a plain MLP: it has no layers')
    if found.changed:
        raise UserError(f'{where}: not a plain MLP: its last layer is clipped, scaled or shifted')
    if len(found.blocks) != 1 or not found.blocks[0].plain:
        names = ', '.join(block.name for block in found.blocks)
        raise UserError(f'{where}: not a plain MLP: inputs {names}, shifted, scaled or joined')
    return found


def network_of(mlp: Mlp, where: str) -> dict[str, Any]:
    """Return the contract's `network` and, where the graph has one, its `normalizer`."""
    kinds = set(mlp.activations)
    if len(mlp.activations) != mlp.depth - 1 or len(kinds) != 1:
        shown = ', '.join(mlp.activations) or 'none'
        raise UserError(f'{where}: not a plain MLP: {mlp.depth} layers, activations {shown}')
    found: dict[str, Any] = {'network': {'sizes': mlp.sizes, 'activation': kinds.pop()}}
    if 'normalizer.mean' in mlp.weights:
        found['normalizer'] = 'required'
    return found


def _apply(op: Op, args: list[Value]) -> Value:
    if op.kind == 'identity':
        return args[0]
    if op.kind == 'concat':
        return _concat(args)
    if op.kind == 'linear':
        return _linear(args)
    if op.kind in ACTIVATIONS:
        return _activation(op.kind, args[0])
    if op.kind == 'clip':
        return _clip(args[0], op.bounds)
    if op.kind in ARITHMETIC:
        return _arithmetic(op.kind, *args)
    raise UserError('is no part of one')


def _clip(x: Value, bounds: tuple[float, float] | None) -> Value:
    if isinstance(x, Block) and x.clip is None and x.times is None:
        return dataclasses.replace(x, clip=bounds)
    if isinstance(x, Mlp) and len(x.activations) == x.depth - 1 and not x.changed:
        return dataclasses.replace(x, clip=bounds)
    raise UserError('is no clip of an observation term or of the action')


def _concat(args: list[Value]) -> Value:
    blocks = []
    for arg in args:
        if not isinstance(arg, Block):
            raise UserError('joins what is no input')
        blocks.append(arg)
    return Mlp(tuple(blocks), {})


def _linear(args: list[Value]) -> Value:
    x, weight, *bias = args
    if isinstance(x, Block):
        x = _normalized(x)
    if not isinstance(x, Mlp) or x.changed:
        raise UserError('is no layer of the network')
    if len(x.activations) != x.depth:
        raise UserError('follows a layer without an activation')
    added: dict[str, Any] = {}
    for name, value, dimensions in zip(('weight', 'bias'), (weight, *bias), (2, 1), strict=False):
        if isinstance(value, Block | Mlp):
            raise UserError(f'has a {name} that is not constant')
        added[f'layers.{x.depth}.{name}'] = _float32(value, dimensions)
    return dataclasses.replace(x, weights={**x.weights, **added})


def _normalized(block: Block) -> Mlp:
    """A single input that is shifted and divided has been normalized."""
    if block.minus is None and block.over is None:
        return Mlp((block,), {})
    if block.minus is None or block.over is None or block.clip or block.times is not None:
        raise UserError('follows an input that is changed, but not by a known normalizer')
    weights = {
        'normalizer.mean': _float32(block.minus, 1),
        'normalizer.divisor': _float32(block.over, 1),
    }
    return Mlp((Block(block.name),), weights)


def _activation(kind: str, x: Value) -> Value:
    if not isinstance(x, Mlp) or len(x.activations) != x.depth - 1 or x.changed:
        raise UserError('does not follow a layer')
    if f'layers.{x.depth - 1}.bias' not in x.weights:
        raise UserError('follows a layer without a bias')
    return dataclasses.replace(x, activations=(*x.activations, kind))


def _arithmetic(kind: str, a: Value, b: Value) -> Value:
    if not isinstance(a, Block | Mlp) and not isinstance(b, Block | Mlp):
        folded: Constant = ARITHMETIC[kind](a, b)
        return folded
    if isinstance(b, Block | Mlp) and kind in ('add', 'mul'):
        a, b = b, a
    if not isinstance(a, Block | Mlp) or isinstance(b, Block | Mlp):
        raise UserError('does not act on one tensor and one constant')
    b = np.asarray(b).reshape(-1)
    return _on_block(kind, a, b) if isinstance(a, Block) else _on_mlp(kind, a, b)


def _on_block(kind: str, x: Block, c: Constant) -> Block:
    if kind == 'sub' and x.plain:
        return dataclasses.replace(x, minus=c)
    if kind == 'div' and all(c is None for c in (x.over, x.clip, x.times)):
        return dataclasses.replace(x, over=c)
    if kind == 'mul' and x.times is None:
        return dataclasses.replace(x, times=c)
    raise UserError('changes an input in a way no observation term has')


def _on_mlp(kind: str, x: Mlp, c: Constant) -> Mlp:
    if x.depth == 0:
        name = {'sub': 'normalizer.mean', 'div': 'normalizer.divisor'}.get(kind)
        if name is None or name in x.weights or 'normalizer.divisor' in x.weights:
            raise UserError('stands between the observation and the first layer')
        return dataclasses.replace(x, weights={**x.weights, name: _float32(c, 1)})
    bias = f'layers.{x.depth - 1}.bias'
    if kind == 'add' and bias not in x.weights and not x.changed:
        return dataclasses.replace(x, weights={**x.weights, bias: _float32(c, 1)})
    if len(x.activations) != x.depth - 1:
        raise UserError('follows an activation')
    if kind == 'mul' and x.times is None and x.plus is None:
        return dataclasses.replace(x, times=c)
    if kind == 'add' and x.plus is None:
        return dataclasses.replace(x, plus=c)
    raise UserError('is no part of one')


def _float32(array: Constant, dimensions: int) -> Constant:
    array = np.asarray(array)
    if array.dtype != np.float32:
        raise UserError(f'has a constant of {array.dtype}, not float32')
    array = array.reshape(-1) if dimensions == 1 else array
    if array.ndim != dimensions:
        raise UserError(f'has a constant of shape {array.shape}')
    return np.array(array, order='C')
