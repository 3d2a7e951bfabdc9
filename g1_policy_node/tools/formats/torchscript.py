"""TorchScript: reads an exported module into a graph. Its forward is looked at, never called."""

import io
import math
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from g1_policy_node.schema import read_small_file
from g1_policy_node.tools.formats.graph import Constant, Graph, Op
from g1_policy_node.tools.formats.onnx_file import MAX_MODEL_BYTES
from g1_policy_node.types import UserError

_SIMPLE = {
    'aten::elu': 'elu', 'aten::elu_': 'elu', 'aten::relu': 'relu', 'aten::relu_': 'relu',
    'aten::tanh': 'tanh', 'aten::linear': 'linear', 'aten::add': 'add', 'aten::sub': 'sub',
    'aten::mul': 'mul', 'aten::div': 'div',
}  # fmt: skip
_TENSORS = {'aten::linear': 3, 'aten::add': 2, 'aten::sub': 2, 'aten::mul': 2, 'aten::div': 2}
"""How many arguments are tensors; of the others it is one. The rest must be 1 (or True)."""


def is_torchscript(path: Path) -> bool:
    """Tell a TorchScript archive from other files by the code in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any('/code/' in name for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def read_torchscript(path: Path) -> Graph:
    """Read an archive; UserError where it is none, would run code, or has other operations."""
    raw = read_small_file(path, MAX_MODEL_BYTES)
    _refuse_code_at_load(raw, path)
    try:
        import torch.jit
    except ImportError as error:
        raise UserError(f'reading TorchScript needs torch ({error})') from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # TorchScript is deprecated, its files are not gone
            load: Any = torch.jit.load
            module = load(io.BytesIO(raw), map_location='cpu').eval()
            graph = torch.jit.freeze(module).graph
    except Exception as error:  # whatever the reader raises, the file is what is wrong
        raise UserError(f'{path}: not a readable TorchScript file ({error!s:.120})') from None
    try:
        return _lower(torch, graph)
    except UserError as error:
        raise UserError(f'{path}: not a plain MLP: {error}') from None


def _refuse_code_at_load(raw: bytes, path: Path) -> None:
    """Loading runs only __setstate__, and freezing only what is constant: refuse both."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            code = [
                archive.read(n) for n in archive.namelist() if '/code/' in n and n[-3:] == '.py'
            ]
    except (zipfile.BadZipFile, OSError) as error:
        raise UserError(f'{path}: truncated or damaged ({error})') from None
    for word in (b'__setstate__', b'from_file', b'torch.save', b'torch.load', b'ops.'):
        if any(word in text for text in code):
            raise UserError(f'{path}: its code uses {word.decode()}; nothing was run')


def _lower(torch: Any, graph: Any) -> Graph:
    constants: dict[str, Constant] = {}
    scalars: dict[str, Any] = {}
    lists: dict[str, tuple[str, ...]] = {}
    ops: list[Op] = []
    _, *inputs = [value.debugName() for value in graph.inputs()]
    for node in graph.nodes():
        args = tuple(value.debugName() for value in node.inputs())
        output = node.output().debugName() if node.outputsSize() == 1 else ''
        if node.kind() == 'prim::Constant':
            value = node.output().toIValue()
            scalars[output] = value
            if isinstance(value, torch.Tensor):
                constants[output] = value.detach().numpy()
            elif type(value) in (int, float):
                constants[output] = np.array(value, dtype=np.float32)
        elif node.kind() in ('prim::ListConstruct', 'prim::TupleConstruct'):
            lists[output] = args
        else:
            ops.append(_op(node, args, output, scalars, lists))
    outputs = tuple(value.debugName() for value in graph.outputs())
    outputs = lists.get(outputs[0], outputs)  # several outputs are returned as one tuple
    return Graph(dict.fromkeys(inputs, 0), outputs, tuple(ops), constants)


def _op(
    node: Any, args: tuple[str, ...], output: str, scalars: dict[str, Any], lists: dict[str, Any]
) -> Op:
    kind = node.kind()
    if kind in _SIMPLE:
        tensors = _TENSORS.get(kind, 1)
        if all(scalars.get(name) == 1 for name in args[tensors:]):
            used = [n for n in args[:tensors] if scalars.get(n, 0) is not None]
            return Op(_SIMPLE[kind], tuple(used), output)
    if kind == 'aten::cat' and args[0] in lists and scalars.get(args[1]) in (-1, 1):
        return Op('concat', lists[args[0]], output)
    if kind == 'aten::clamp':
        low, high = (scalars.get(name) for name in args[1:])
        bounds = (-math.inf if low is None else low, math.inf if high is None else high)
        return Op('clip', args[:1], output, bounds)
    if kind == 'prim::If':
        raise UserError('it branches')
    shown = ', '.join(repr(scalars[name])[:30] for name in args if name in scalars)
    raise UserError(f'operation {kind}({shown})')
