"""The recorder's rows on disk, once a second: a kill loses the last second and no more."""

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from g1_policy_node.timing import INT_COLUMNS, Recorder

EVERY_S = 1.0
CLOSE_S = 2.0
SUFFIX = '.rows'
RECORD = np.dtype([*((name, '<i8') for name in INT_COLUMNS), ('command', '<f8', (3,))])
"""One row on disk; before the rows comes a line that names the columns."""
HEADER = ' '.join(RECORD.names or ()).encode() + b'\n'


class Journal(threading.Thread):
    """Appends the recorder's rows, from now on, to `path`; `save` makes timing.npz of them.

    A file that cannot be written is told to `log` once, and tried again every second: the
    recorder keeps what is not on disk yet.
    """

    def __init__(self, recorder: Recorder, path: Path, log: Callable[[str], None]) -> None:
        super().__init__(name='journal', daemon=True)
        self._recorder, self._path, self._log = recorder, path, log
        self._next = recorder.rows
        self._kept = 0  # rows on disk
        self._saved = -1  # rows there were at the last save
        self._failed = False
        self._appending = threading.Lock()
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        """Append every second until closed."""
        while not self._stopping.wait(EVERY_S):
            try:
                self._append()
            except OSError as error:
                if not self._failed:
                    self._log(f'{self._path} cannot be written: {error.strerror}')
                self._failed = True

    def save(self, path: Path) -> None:
        """Write timing.npz, whole or not at all; OSError where that cannot be done."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._appending:
            count = self._recorder.rows
            old = read_rows(self._path)[: self._kept] if self._kept else np.empty(0, RECORD)
            rows = np.concatenate((old, _records(self._recorder.columns(self._next))))
        partial = path.with_suffix('.partial.npz')
        np.savez(partial, allow_pickle=False, **{n: rows[n] for n in RECORD.names or ()})
        partial.replace(path)
        self._saved = count

    def close(self) -> None:
        """End the thread, and remove the file if every row of it was saved."""
        self._stopping.set()
        self.join(CLOSE_S)  # a disk that hangs must not hang us
        if self._saved == self._recorder.rows:
            self._path.unlink(missing_ok=True)

    def _append(self) -> None:
        with self._appending:
            new = _records(self._recorder.columns(self._next))
            if not len(new):
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open('r+b' if self._kept else 'wb', buffering=0) as file:
                # Not at the end of the file: a full disk may have left half a row there.
                begin = file.seek(len(HEADER) + self._kept * RECORD.itemsize) if self._kept else 0
                data = new.tobytes() if begin else HEADER + new.tobytes()
                if file.write(data) < len(data):
                    raise OSError(errno.ENOSPC, 'no space left for all of it')
            self._next += len(new)
            self._kept += len(new)
        self._failed = False


def read_rows(path: Path) -> NDArray[Any]:
    """Return the whole rows (T,) of RECORD in a journal; ValueError if it is none."""
    raw = path.read_bytes()
    if not raw.startswith(HEADER):
        raise ValueError('not a journal of ticks')
    whole = (len(raw) - len(HEADER)) // RECORD.itemsize
    return np.frombuffer(raw, RECORD, whole, len(HEADER)) if whole else np.empty(0, RECORD)


def _records(columns: dict[str, NDArray[Any]]) -> NDArray[Any]:
    rows = np.empty(len(columns['slot']), RECORD)
    for name, values in columns.items():
        rows[name] = values
    return rows
