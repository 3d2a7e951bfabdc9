"""The panels beside the robot: one to drive with, and one to read, with plots and figures."""

import queue
from collections import deque
from enum import Enum

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


_ESTOP_HINT = 'Damp the motors at once; stays so until reset'
_HINT = (
    'Run: follow the command. Stand: whatever the command. Push: the simulated robot, in a random '
    'direction. Reset: leave DAMP; the simulated robot is put back on its feet first'
)
_BEYOND = 0.3
"""What a plot shows beyond the range of the command."""


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
        gui.main_panel.dock_right()
        self.pressed: queue.SimpleQueue[Button] = queue.SimpleQueue()
        self._add_estop()
        self._status = gui.add_markdown('')
        self._add_buttons()
        self._answer = gui.add_markdown('')
        self._sliders = self._add_sliders(limits, command) if drives else []
        self._history: deque[tuple[float, ...]] = deque()
        # A panel of its own is folded away on a phone, which leaves room for the robot.
        reading = gui.add_panel()
        reading.dock_below(gui.main_panel)
        with reading.add_tab('Plots'):
            self._plots = [
                self._add_plot('vx, m/s', '#1c7ed6', limits.lin_vel_x),
                self._add_plot('wz, rad/s', '#e8590c', limits.ang_vel_z),
            ]
        with reading.add_tab('Figures'):
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
        rate, missed = (snapshot.figures.get(n, _UNHEARD) for n in ('rate_hz', 'deadline_misses'))
        told = ', '.join(filter(None, (f'{rate} Hz', f'{missed} missed', snapshot.reason)))
        self._status.content = f'## <span style="color:{colour}">{mode}</span>\n{told}'
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

    def _add_estop(self) -> None:
        estop = self._gui.add_button(Button.ESTOP.value, hint=_ESTOP_HINT, color='red')
        estop.on_click(lambda _: self.pressed.put(Button.ESTOP))

    def _add_buttons(self) -> None:
        others = tuple(button.value for button in Button if button is not Button.ESTOP)
        group = self._gui.add_button_group('', others, hint=_HINT)
        group.on_click(lambda event: self.pressed.put(Button(event.target.value)))

    def _add_sliders(
        self, limits: CommandContract, command: Velocity
    ) -> list[viser.GuiSliderHandle[float]]:
        names = ('vx, m/s', 'vy, m/s', 'wz, rad/s')
        ranges = (limits.lin_vel_x, limits.lin_vel_y, limits.ang_vel_z)
        rows = zip(names, ranges, command, strict=True)
        return [
            self._gui.add_slider(name, low, high, 0.05, float(np.clip(start, low, high)))
            for name, (low, high), start in rows
        ]

    def _add_plot(
        self, title: str, colour: str, limits: tuple[float, float]
    ) -> viser.GuiUplotHandle:
        y_range = (limits[0] - _BEYOND, limits[1] + _BEYOND)
        return self._gui.add_uplot(
            _series(*np.zeros((3, 2))),
            series=(
                {'label': 's'},
                {'label': 'command', 'stroke': '#868e96', 'width': 2, 'dash': (6, 4)},
                {'label': 'measured', 'stroke': colour, 'width': 2},
            ),
            scales={'x': {'time': False, 'range': (-PLOT_SECONDS, 0.0)}, 'y': {'range': y_range}},
            title=f'{title} (dashed: command)',
            legend={'show': False},
            height=100,
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
        'missed slots': f'{get("deadline_misses")} of {get("slots")}',
        'missed by the floor': f'{floor[1]} of {floor[0]}' if floor else _UNHEARD,
        'lateness p99': f'{get("lateness_ms.p99")} ms',
        'sensor to command p99': f'{get("sensor_to_command_ms.p99")} ms',
        'safety': counted or (_UNHEARD if not figures else 'nothing to report'),
        'device': get('device'),
        'weights': get('weights_sha256')[:16],
        'contract': get('contract_sha256')[:16],
    }
    return '\n'.join(['| | |', '|---|---|', *(f'| {k} | {v} |' for k, v in rows.items())])
