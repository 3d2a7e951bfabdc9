"""Reads npz files of plain arrays, refusing whatever else their bytes may be."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.schema import read_small_file
from g1_policy_node.types import UserError

Arrays = dict[str, NDArray[Any]]


def read_arrays(path: Path, limit: int) -> Arrays:
    """Return the arrays of an npz file of at most `limit` bytes, packed and unpacked.

    Nothing is unpickled. UserError says what is wrong, whatever the bytes are.
    """
    return parse_arrays(read_small_file(path, limit), limit, str(path))


def parse_arrays(raw: bytes, limit: int, where: str) -> Arrays:
    """Return the arrays in the bytes of an npz file; UserError names `where` if it is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > limit:
            raise ValueError(f'{unpacked} bytes unpacked, more than {limit} allowed')
        with np.load(io.BytesIO(raw), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        # numpy returns the bytes of a member that is no array.
        if wrong := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
            raise ValueError(f'{", ".join(wrong)}: no array')
        return arrays
    except Exception as error:  # whatever zip and numpy raise, the file is what is wrong
        reason = ' '.join(str(error).split()) or type(error).__name__
        raise UserError(f'{where}: not an npz file of plain arrays ({reason:.200})') from None
