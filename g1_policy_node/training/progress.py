"""How training goes: statistics on the device, a line for people, a curve and TensorBoard."""

import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

PLAIN_PERIOD = 5.0
"""Seconds between progress lines where there is no terminal."""


class EpisodeStatistics:
    """Rewards and lengths of the episodes that ended; kept on the device until asked for."""

    def __init__(self, num_envs: int, device: str) -> None:
        self._reward, self._length = torch.zeros(2, num_envs, device=device)
        self._sums = torch.zeros(3, device=device)
        self._log: dict[str, Tensor] = {}
        self._mean = (float('nan'), float('nan'))

    def add(self, rewards: Tensor, dones: Tensor, extras: dict[str, Any]) -> None:
        """Take one step of every robot: rewards and dones (N,)."""
        ended = dones > 0
        self._reward += rewards
        self._length += 1
        self._sums += torch.stack(
            [(self._reward * ended).sum(), (self._length * ended).sum(), ended.sum()]
        )
        self._reward.masked_fill_(ended, 0.0)
        self._length.masked_fill_(ended, 0.0)
        self._log = extras.get('log', {})

    def read(self) -> tuple[float, float, dict[str, float]]:
        """Return mean reward and length (steps) of the episodes ended since the last reading.

        Where none has ended, the last means. And the last reset's reward terms by name.
        """
        reward, length, count = self._sums.tolist()
        self._sums.zero_()
        if count:
            self._mean = (reward / count, length / count)
        names = list(self._log)
        values = torch.stack([self._log[name] for name in names]).tolist() if names else []
        return (*self._mean, dict(zip(names, values, strict=True)))


class Curve:
    """The learning curve: one row per iteration, also sent to TensorBoard."""

    def __init__(self, folder: Path | None) -> None:
        self.columns: dict[str, list[float]] = defaultdict(list)
        self._writer: Any = None
        if folder is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder), flush_secs=10)

    def add(self, iteration: int, row: dict[str, float], terms: dict[str, float]) -> None:
        """Add the figures of an iteration; `terms` go to TensorBoard alone.

        A column that this row, or an earlier one, has no figure for holds a NaN there.
        """
        rows, row_of_all = len(self.columns['iteration']), {'iteration': iteration, **row}
        for name in row_of_all.keys() - self.columns.keys():
            self.columns[name] = [float('nan')] * rows
        for name, values in self.columns.items():
            values.append(row_of_all.get(name, float('nan')))
        if self._writer:
            for name, value in {**row, **terms}.items():
                tag = name if '/' in name else f'Train/{name}'
                self._writer.add_scalar(tag, value, iteration)

    def close(self) -> None:
        """Write out what TensorBoard has not seen yet."""
        if self._writer:
            self._writer.close()


class Countdown:
    """How much of a run is left: by iterations, and by the clock where it has a limit."""

    def __init__(self, iterations: int, limit_s: float, began: float) -> None:
        self._iterations, self._limit, self._began = iterations, limit_s, began
        self._first = time.monotonic()
        self.done = 0
        self._longest = 0.0
        self._last = self._first

    def tick(self) -> float:
        """Count one iteration and return how long it took, s."""
        now = time.monotonic()
        took, self._last = now - self._last, now
        self.done += 1
        self._longest = took if self.done == 1 else max(took, 0.9 * self._longest)
        return took

    @property
    def over(self) -> str:
        """Why to stop, or '' where there is time for another iteration."""
        if self.done >= self._iterations:
            return 'all iterations done'
        if self._limit and self._last + self._longest - self._began > self._limit:
            return 'time limit'
        return ''

    @property
    def left_s(self) -> float:
        """Seconds left, by the mean iteration so far."""
        mean = (self._last - self._first) / max(self.done, 1)
        by_count = (self._iterations - self.done) * mean
        by_clock = self._limit - (self._last - self._began) if self._limit else by_count
        return max(0.0, min(by_count, by_clock))


class Status:
    """Shows the progress: in place on a terminal, else a line now and then."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status = console.status('first iteration: kernels are compiled')
        self._shown = 0.0

    def __enter__(self) -> 'Status':
        """Begin."""
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, and leave the last line where it is."""
        self._status.stop()

    def show(self, line: str, last: bool) -> None:
        """Show `line`; the last one is always shown, and stays."""
        now = time.monotonic()
        if self._console.is_terminal and not last:
            self._status.update(line)
        elif last or now - self._shown >= PLAIN_PERIOD:
            self._console.print(line, markup=False, soft_wrap=True)
            self._shown = now
