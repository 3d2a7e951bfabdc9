"""An npz file is plain arrays of a bounded size, or refused in one line; nothing is run."""

import io
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from g1_policy_node.arrays import read_arrays
from g1_policy_node.types import UserError


class Code:
    def __reduce__(self):
        return (Path.touch, (Path('run'),))


def npy(shape: str) -> bytes:
    """Return an array's header alone, which may promise what does not follow."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', 118) + text.ljust(117).encode() + b'\n'


def packed(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f'{name}.npy', data)
    return stream.getvalue()


def objects() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, x=np.array([Code()], dtype=object))
    return stream.getvalue()


def with_a_flipped_bit() -> bytes:
    raw = bytearray(packed(x=npy('(1000,)') + bytes(range(250)) * 32))
    raw[len(raw) // 2] ^= 1
    return bytes(raw)


def test_arrays_come_back_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / 'x.npz', a=np.arange(3), b=np.array('text'))
    arrays = read_arrays(tmp_path / 'x.npz', 10_000)
    assert arrays['a'].tolist() == [0, 1, 2]
    assert str(arrays['b']) == 'text'


@pytest.mark.parametrize(
    'raw',
    [
        b'',
        b'PK',
        b'nonsense' * 100,
        pickle.dumps(Code()),
        objects(),
        packed(x=b'no array'),
        packed(x=npy('(10**13,)')),
        packed(x=npy('(10000000000000,)')),
        packed(x=npy('(-5,)')),
        packed(x=npy('(3,)') + bytes(5)),
        packed(x=npy('(10000,)') + bytes(80_000)),
        with_a_flipped_bit(),
    ],
)
def test_what_is_no_file_of_plain_arrays_is_one_line(tmp_path, monkeypatch, raw: bytes) -> None:
    monkeypatch.chdir(tmp_path)
    Path('x.npz').write_bytes(raw)
    with pytest.raises(UserError, match=r'x\.npz: ') as refused:
        read_arrays(Path('x.npz'), 50_000)
    assert '\n' not in str(refused.value)
    assert len(str(refused.value)) < 300
    assert not Path('run').exists()


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / 'x.npz').open('wb') as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match='more than the 1000 bytes allowed'):
        read_arrays(tmp_path / 'x.npz', 1000)
