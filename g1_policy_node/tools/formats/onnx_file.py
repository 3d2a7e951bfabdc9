"""ONNX: reads a file into a graph and its metadata, and writes graphs. No operator is run."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from g1_policy_node.schema import read_small_file
from g1_policy_node.tools.formats.graph import Constant, Graph, Op
from g1_policy_node.types import UserError

MAX_MODEL_BYTES = 500_000_000
OPSET = 17

_SIMPLE = {
    'Elu': 'elu', 'Relu': 'relu', 'Tanh': 'tanh', 'Identity': 'identity', 'Add': 'add',
    'Sub': 'sub', 'Mul': 'mul', 'Div': 'div',
}  # fmt: skip


class OnnxFile(NamedTuple):
    """A graph, and the metadata strings beside it."""

    graph: Graph
    metadata: dict[str, str]


def import_onnx() -> Any:
    """Return the onnx module; UserError says what to install."""
    try:
        import onnx
    except ImportError as error:
        raise UserError(f'ONNX files need the onnx package ({error}): pip install onnx') from None
    return onnx


def read_onnx(path: Path) -> OnnxFile:
    """Read a file with its weights inside; UserError where it is none, or has other operators."""
    onnx = import_onnx()
    raw = read_small_file(path, MAX_MODEL_BYTES)
    try:
        model = onnx.load_model_from_string(raw)
        if not model.graph.node:
            raise ValueError('no operators')
    except Exception as error:  # whatever the parser raises, the file is what is wrong
        raise UserError(f'{path}: not an ONNX file ({error!s:.120})') from None
    try:
        constants = {t.name: _array(onnx, t) for t in model.graph.initializer}
        ops = [_op(onnx, node, constants) for node in model.graph.node]
        graph = Graph(
            {i.name: _width(i) for i in model.graph.input if i.name not in constants},
            tuple(o.name for o in model.graph.output),
            tuple(op for op in ops if op is not None),
            constants,
        )
    except (UserError, ValueError, TypeError) as error:
        raise UserError(f'{path}: not a plain MLP: {error!s:.300}') from None
    return OnnxFile(graph, {p.key: p.value for p in model.metadata_props})


def _array(onnx: Any, tensor: Any) -> Constant:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise UserError(f'the weights {tensor.name} are in another file; save it as one file')
    array: Constant = onnx.numpy_helper.to_array(tensor)
    return array


def _width(value: Any) -> int:
    dimensions = value.type.tensor_type.shape.dim
    if not dimensions or not dimensions[-1].dim_value:
        raise UserError(f'input {value.name} has no fixed width')
    return int(dimensions[-1].dim_value)


def _op(onnx: Any, node: Any, constants: dict[str, Constant]) -> Op | None:
    """Return the operation of a node; None for a constant, which is put with the others."""
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    args, output = tuple(node.input), node.output[0]
    if node.domain not in ('', 'ai.onnx') or len(node.output) != 1:
        raise UserError(f'operator {node.domain}.{node.op_type}')
    if node.op_type == 'Constant' and set(given) == {'value'}:
        constants[output] = _array(onnx, given['value'])
        return None
    if node.op_type == 'Gemm':
        return _gemm(given, args, output, constants)
    if node.op_type == 'MatMul' and args[1] in constants:
        return _linear((*args, ''), output, constants, transposed=True)
    if node.op_type == 'Clip' and len(args) == 3:
        low, high = (_scalar(constants, name, default) for name, default in
                     ((args[1], -math.inf), (args[2], math.inf)))  # fmt: skip
        return Op('clip', args[:1], output, (low, high))
    if node.op_type == 'Concat' and given.get('axis') in (-1, 1):
        return Op('concat', args, output)
    if node.op_type in _SIMPLE and given in ({}, {'alpha': 1.0}):
        return Op(_SIMPLE[node.op_type], args, output)
    shown = ', '.join(f'{key}={value!r:.30}' for key, value in given.items())
    raise UserError(f'operator {node.op_type}({shown})')


def _scalar(constants: dict[str, Constant], name: str, default: float) -> float:
    return float(constants[name].reshape(())) if name else default


def _gemm(
    given: dict[str, Any], args: tuple[str, ...], output: str, constants: dict[str, Constant]
) -> Op:
    usual = {'alpha': 1.0, 'beta': 1.0, 'transA': 0}
    if any(given.get(key, value) != value for key, value in usual.items()):
        raise UserError(f'operator Gemm with {given}')
    padded = (*args, '')[:3]
    return _linear(padded, output, constants, transposed=not given.get('transB', 0))


def _linear(
    args: tuple[str, ...], output: str, constants: dict[str, Constant], transposed: bool
) -> Op:
    x, weight, bias = args
    if weight not in constants:
        raise UserError(f'a layer whose weights {weight} are not constant')
    if transposed:
        constants[f'{weight} transposed'] = constants[weight].T
        weight = f'{weight} transposed'
    return Op('linear', (x, weight, bias) if bias else (x, weight), output)


class OnnxWriter:
    """Collects operators and constants of a graph of float32 rows (1, n), and writes a file."""

    def __init__(self) -> None:
        self._onnx = import_onnx()
        self._nodes: list[Any] = []
        self._constants: dict[str, Constant] = {}

    def constant(self, name: str, value: Any) -> str:
        """Add a float32 constant and return its name."""
        self._constants[name] = np.asarray(value, dtype=np.float32)
        return name

    def add(self, kind: str, args: list[str], output: str, **attributes: Any) -> str:
        """Add an operator and return the name of its output."""
        self._nodes.append(self._onnx.helper.make_node(kind, args, [output], **attributes))
        return output

    def write(
        self, path: Path, inputs: dict[str, int], outputs: dict[str, int], metadata: dict[str, str]
    ) -> None:
        """Write the file; `inputs` and `outputs` are widths by name."""
        helper, float32 = self._onnx.helper, self._onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            'policy',
            *(
                [helper.make_tensor_value_info(name, float32, [1, n]) for name, n in io.items()]
                for io in (inputs, outputs)
            ),
            [self._onnx.numpy_helper.from_array(a, name) for name, a in self._constants.items()],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid('', OPSET)], producer_name='g1_policy_node'
        )
        model.ir_version = 8
        helper.set_model_props(model, metadata)
        self._onnx.checker.check_model(model)
        self._onnx.save_model(model, str(path))
