"""Reads the actor of an rsl_rl checkpoint of any known layout.

Nothing is unpickled but by torch's weights-only reader, which runs no code of the file's.
"""

import hashlib
import io
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.schema import read_small_file
from g1_policy_node.types import UserError

NORMALIZER_EPSILON = np.float32(0.01)
"""rsl_rl's EmpiricalNormalization divides by its standard deviation plus this default `eps`."""

MAX_CHECKPOINT_BYTES = 2_000_000_000
FIRST_SAFE_TORCH = (2, 6)
"""Before 2.6 a crafted file could run code even with weights_only (CVE-2025-32434)."""


class Layout(NamedTuple):
    """Where a family of rsl_rl versions keeps its actor."""

    format: str
    state: str
    layers: str
    normalizer: str
    not_acting: tuple[str, ...]


LAYOUTS = (
    Layout(
        'rsl_rl actor_state_dict (5.x)', 'actor_state_dict', 'mlp.', 'obs_normalizer.',
        ('distribution.',),
    ),
    Layout(
        'rsl_rl model_state_dict (3.x and older)', 'model_state_dict', 'actor.',
        'actor_obs_normalizer.', ('critic.', 'critic_obs_normalizer.', 'std', 'log_std'),
    ),
)  # fmt: skip
OLD_NORMALIZER = 'obs_norm_state_dict'
"""Where rsl_rl 2.x kept the actor's normalizer: at the top level of the checkpoint."""


class Checkpoint(NamedTuple):
    """An actor read from a checkpoint: tensors by the names of weights.py, all float32."""

    format: str
    weights: dict[str, NDArray[np.float32]]
    iteration: int | None
    mapped: int
    sha256: str


def read_checkpoint(path: Path) -> Checkpoint:
    """Read the actor of an rsl_rl checkpoint of any known layout; UserError otherwise.

    Strict: every tensor of the actor is mapped or named in the refusal.
    """
    raw = read_small_file(path, MAX_CHECKPOINT_BYTES)
    _refuse_other_kinds(raw, path)
    data = _load(raw, path)
    if not isinstance(data, dict):
        raise UserError(f'{path}: holds a {type(data).__name__}, not a checkpoint')
    layouts = [layout for layout in LAYOUTS if layout.state in data]
    if len(layouts) != 1:
        found = ', '.join(map(str, list(data)[:20])) or 'none'
        known = ' or '.join(layout.state for layout in LAYOUTS)
        raise UserError(f'{path}: not exactly one of {known} among its top-level keys: {found}')
    weights, mapped = _map_actor(data, layouts[0], path)
    iteration = data.get('iter')
    return Checkpoint(
        format=layouts[0].format,
        weights=weights,
        iteration=iteration if type(iteration) is int else None,
        mapped=mapped,
        sha256=hashlib.sha256(raw).hexdigest(),
    )


def _refuse_other_kinds(raw: bytes, path: Path) -> None:
    """Tell by the first bytes what is no checkpoint, before torch sees it."""
    if not raw:
        raise UserError(f'{path}: the file is empty')
    if raw.startswith(b'PK\x03\x04'):
        try:
            names = zipfile.ZipFile(io.BytesIO(raw)).namelist()
        except zipfile.BadZipFile as error:
            raise UserError(f'{path}: truncated or damaged ({error})') from None
        if any('/code/' in name or name.endswith('/constants.pkl') for name in names):
            raise UserError(f'{path}: a TorchScript export; give the training checkpoint')
        if not any(name.endswith('/data.pkl') for name in names):
            raise UserError(f'{path}: a zip archive, but not one of torch.save')
    elif not raw.startswith(b'\x80\x02'):  # the older format is a pickle of protocol 2
        raise UserError(f'{path}: not a file of torch.save (ONNX, safetensors, pickle or other)')


def _load(raw: bytes, path: Path) -> object:
    try:
        import torch
    except ImportError as error:
        raise UserError(f'reading a checkpoint needs torch ({error})') from None
    if tuple(map(int, re.findall(r'\d+', torch.__version__)[:2])) < FIRST_SAFE_TORCH:
        raise UserError(f'torch {torch.__version__} reads no untrusted files; use 2.6 or later')
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # on pickle protocols; what matters raises
            return torch.load(io.BytesIO(raw), map_location='cpu', weights_only=True)
    except Exception as error:  # whatever the reader raises, the file is what is wrong
        raise UserError(f'{path}: {_why_refused(error)}') from None


def _why_refused(error: Exception) -> str:
    """Say why torch read nothing, without its advice to switch the safety off."""
    text = str(error)
    if blocked := re.search(r'GLOBAL (\S+)', text):
        return f'it asks for {blocked[1]}, which is no part of a checkpoint; nothing was run'
    if refused := re.search(r'WeightsUnpickler error:\s*(.+)', text):
        return f"torch's weights-only reader refuses it ({refused[1]:.120}); nothing was run"
    return f'truncated, damaged or no checkpoint ({" ".join(text.split()) or type(error):.120})'


def _map_actor(
    data: Mapping[Any, Any], layout: Layout, path: Path
) -> tuple[dict[str, NDArray[np.float32]], int]:
    """Return the actor's tensors by our names, and how many of the checkpoint's were used."""
    state = _state_dict(data, layout.state, path)
    layer_name = re.compile(re.escape(layout.layers) + r'(0|[1-9][0-9]*)\.(weight|bias)')
    weights, normalizer, left_over = {}, {}, []
    for name, tensor in state.items():
        match = layer_name.fullmatch(name)
        if match and int(match[1]) % 2 == 0:  # a linear layer, then its activation, and so on
            where = f'{path}: {layout.state}.{name}'
            weights[f'layers.{int(match[1]) // 2}.{match[2]}'] = _float32(tensor, where)
        elif name.startswith(layout.normalizer):
            normalizer[name.removeprefix(layout.normalizer)] = tensor
        elif not _is_not_acting(name, layout):
            left_over.append(name)
    if left_over:
        raise UserError(f'{path}: {layout.format}, tensors left over: {", ".join(left_over)}')
    if OLD_NORMALIZER in data:
        if normalizer:
            raise UserError(f'{path}: a normalizer in {layout.state} and in {OLD_NORMALIZER}')
        normalizer = dict(_state_dict(data, OLD_NORMALIZER, path))
    mapped = len(weights) + len(normalizer)
    return {**weights, **_normalizer(normalizer, path)}, mapped


def _is_not_acting(name: str, layout: Layout) -> bool:
    return any(
        name.startswith(known) if known.endswith('.') else name == known
        for known in layout.not_acting
    )


def _normalizer(state: Mapping[str, Any], path: Path) -> dict[str, NDArray[np.float32]]:
    """Turn rsl_rl's running statistics, (1, n) each, into mean and divisor (n,)."""
    if not state:
        return {}
    unknown = set(state) - {'_mean', '_std', '_var', 'count'}
    if unknown or not {'_mean', '_std'} <= set(state):
        raise UserError(f'{path}: not a known normalizer: {", ".join(sorted(state))}')
    mean, std = (
        _float32(state[name], f'{path}: normalizer {name}').reshape(-1)
        for name in ('_mean', '_std')
    )
    return {'normalizer.mean': mean, 'normalizer.divisor': std + NORMALIZER_EPSILON}


def _state_dict(data: Mapping[Any, Any], key: str, path: Path) -> Mapping[str, Any]:
    state = data[key]
    if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
        raise UserError(f'{path}: {key} is a {type(state).__name__}, not a map of tensors')
    return state


def _float32(tensor: object, where: str) -> NDArray[np.float32]:
    """Return a copy of a dense float32 torch tensor, every value finite."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise UserError(f'{where} is a {type(tensor).__name__}, not a tensor')
    if tensor.dtype != torch.float32 or tensor.layout != torch.strided:
        raise UserError(f'{where} is {tensor.dtype}, {tensor.layout}; only dense float32 is read')
    if tensor.is_meta or tensor.numel() * 4 > tensor.untyped_storage().nbytes():
        raise UserError(f'{where} has {tensor.numel()} values, not all of them in the file')
    array: NDArray[np.float32] = tensor.detach().numpy().copy()
    if bad := int(np.count_nonzero(~np.isfinite(array))):
        raise UserError(f'{where} has {bad} of {array.size} values that are not finite')
    return array
