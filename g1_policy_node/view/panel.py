"""The panel beside the robot: figures, buttons, sliders for the command, small plots."""

import queue
from collections import deque
from enum import Enum
from typing import Literal

import numpy as np
import viser
from numpy.typing import NDArray

from g1_policy_node.contract import CommandContract
from g1_policy_node.tools.monitor import Snapshot, Velocity

PLOT_SECONDS = 10.0
_UNHEARD = '-'
_COLOURS = {'RUN': 'green', 'WAITING': 'orange', 'HOLD': 'orange', 'DAMP': 'red'}


class Button(Enum):
    """What a person can ask for."""

    ESTOP = 'E-STOP'
    RUN = 'Run'
    STAND = 'Stand'
    PUSH = 'Push'
    RESET = 'Reset'


_HINTS = {
    Button.ESTOP: 'Damp the motors at once; stays so until reset',
    Button.RUN: 'Follow the command',
    Button.STAND: 'Stand, whatever the command',
    Button.PUSH: 'Push the simulated robot in a random direction',
    Button.RESET: 'Leave DAMP; the simulated robot is put back on its feet first',
}
_BUTTON_COLOURS: dict[Button, Literal['red', 'green']] = {
    Button.ESTOP: 'red',
    Button.RUN: 'green',
}


class Panel:
    """The controls of `server`; `pressed` is what was asked for, oldest first.

    viser calls back on threads of its own, so buttons are only noted here. `drives` says whether
    the sliders are there: they start at `command`.
    """

    def __init__(
        self, server: viser.ViserServer, limits: CommandContract, command: Velocity, drives: bool
    ) -> None:
        self._gui = gui = server.gui
        gui.configure_theme(control_width='medium', show_logo=False, show_share_button=False)
        self.pressed: queue.SimpleQueue[Button] = queue.SimpleQueue()
        self._status = gui.add_markdown('')
        for button in Button:
            self._add_button(button)
        self._answer = gui.add_markdown('')
        self._sliders = self._add_sliders(limits, command) if drives else []
        self._history: deque[tuple[float, ...]] = deque()
        self._plots = [
            self._add_plot(title, colour)
            for title, colour in (('vx, m/s', '#1c7ed6'), ('wz, rad/s', '#e8590c'))
        ]
        self._figures = gui.add_markdown('')

    def command(self) -> Velocity | None:
        """Return the velocity that the sliders ask for; None where there are none."""
        if not self._sliders:
            return None
        vx, vy, wz = (float(slider.value) for slider in self._sliders)
        return vx, vy, wz

    def zero(self) -> None:
        """Set the sliders to zero."""
        for slider in self._sliders:
            slider.value = 0.0  # type: ignore[misc]  # viser gives the setter no type

    def answer(self, text: str) -> None:
        """Show the answer to the last button."""
        self._answer.content = text

    def show(self, snapshot: Snapshot, floor: tuple[int, int] | None) -> None:
        """Show the newest mode and figures."""
        colour = _COLOURS.get(snapshot.mode, 'gray')
        mode = snapshot.mode or 'no mode heard yet'
        self._status.content = f'## <span style="color:{colour}">{mode}</span>\n{snapshot.reason}'
        self._figures.content = _figures(snapshot, floor)

    def plot(self, now: float, snapshot: Snapshot) -> None:
        """Add the newest command and velocity to the plots; `now` in s."""
        unknown = (np.nan,) * 3
        row = (now, *(snapshot.command or unknown), *(snapshot.velocity or unknown))
        self._history.append(row)
        while self._history[0][0] < now - PLOT_SECONDS:
            self._history.popleft()
        rows = np.array(self._history)
        for plot, axis in zip(self._plots, (0, 2), strict=True):
            plot.data = _series(rows[:, 0] - now, rows[:, 1 + axis], rows[:, 4 + axis])

    def _add_button(self, button: Button) -> None:
        handle = self._gui.add_button(
            button.value, hint=_HINTS[button], color=_BUTTON_COLOURS.get(button, 'gray')
        )
        handle.on_click(lambda _: self.pressed.put(button))

    def _add_sliders(
        self, limits: CommandContract, command: Velocity
    ) -> list[viser.GuiSliderHandle[float]]:
        names = ('vx, m/s', 'vy, m/s', 'wz, rad/s')
        ranges = (limits.lin_vel_x, limits.lin_vel_y, limits.ang_vel_z)
        rows = zip(names, ranges, command, strict=True)
        sliders = [
            self._gui.add_slider(name, low, high, 0.05, float(np.clip(start, low, high)))
            for name, (low, high), start in rows
        ]
        self._gui.add_button('Zero command', color='gray').on_click(lambda _: self.zero())
        return sliders

    def _add_plot(self, title: str, colour: str) -> viser.GuiUplotHandle:
        return self._gui.add_uplot(
            _series(*np.zeros((3, 2))),
            series=(
                {'label': 's'},
                {'label': 'command', 'stroke': '#868e96', 'width': 2, 'dash': (6, 4)},
                {'label': 'measured', 'stroke': colour, 'width': 2},
            ),
            scales={'x': {'time': False, 'range': (-PLOT_SECONDS, 0.0)}},
            title=title,
            height=150,
        )


def _series(*columns: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    return tuple(np.ascontiguousarray(column) for column in columns)


def _figures(snapshot: Snapshot, floor: tuple[int, int] | None) -> str:
    figures = snapshot.figures

    def get(name: str) -> str:
        return figures.get(name, _UNHEARD)

    counts = {k.removeprefix('count.'): v for k, v in figures.items() if k.startswith('count.')}
    counted = ', '.join(f'{name} {count}' for name, count in counts.items() if count != '0')
    rows = {
        'rate': f'{get("rate_hz")} Hz',
        'missed': f'{get("deadline_misses")} of {get("slots")}',
        'floor': f'{floor[1]} of {floor[0]}' if floor else _UNHEARD,
        'lateness p99': f'{get("lateness_ms.p99")} ms',
        'sensor to command p99': f'{get("sensor_to_command_ms.p99")} ms',
        'safety': counted or (_UNHEARD if not figures else 'nothing to report'),
        'device': get('device'),
        'weights': get('weights_sha256')[:16],
        'contract': get('contract_sha256')[:16],
    }
    return '\n'.join(['| | |', '|---|---|', *(f'| {k} | {v} |' for k, v in rows.items())])
