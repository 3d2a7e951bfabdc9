"""What is compared, under which condition, and the goals, as ratios."""

from collections.abc import Sequence
from typing import NamedTuple

from bench.arms import FLOOR, HONEST, NODES, OPTIONS, OURS, STOCK, Condition


class Figure(NamedTuple):
    """A figure: what it is, its unit, and `goal`, how many times better than `against`."""

    title: str
    unit: str
    goal: float | None = None
    against: str = STOCK
    higher_is_better: bool = False
    digits: int = 1


FIGURES = {
    'cpu': Figure('CPU, 1 kHz sensors, with the actor', '% of a core', 6.0),
    'no_actor.cpu': Figure('CPU, 1 kHz sensors, without the actor', '% of a core', 10.0),
    'sensor_to_action.p50': Figure('sensor to action, p50', 'us', 2.5, digits=0),
    'sensor_to_action.p95': Figure('sensor to action, p95', 'us', digits=0),
    'sensor_to_action.p99': Figure('sensor to action, p99', 'us', 1.3, digits=0),
    'in_node.p50': Figure('tick in the node, p50', 'us', digits=0),
    'in_node.p99': Figure('tick in the node, p99', 'us', digits=0),
    'lateness.p50': Figure('tick lateness, p50', 'us', 2.5, digits=0),
    'lateness.p99.9': Figure('tick lateness, p99.9', 'us', digits=0),
    'lost_slots': Figure('slots lost', 'of all', digits=0),
    'ready': Figure('exec to waiting for sensors', 's', 4.0, digits=2),
    'first_action': Figure('exec to first action, discovery included', 's', digits=2),
    'rss': Figure('peak resident memory', 'MB', 2.5, digits=0),
    'collections': Figure('garbage collections while armed', 'count', digits=0),
    'full_collections': Figure('full collections while armed', 'count', digits=0),
    'longest_collection': Figure('longest collection while armed', 'us', digits=0),
    'swap.swap_gap': Figure('longest gap over 20 ms while the device changes', 'ms'),
    'swap.lost_slots': Figure('slots lost while the device changes', 'of all', digits=0),
    'replay': Figure('offline replay', 'rows/s', 15.0, higher_is_better=True, digits=0),
    'options.cpu': Figure('CPU', '% of a core'),
    'options.sensor_to_action.p50': Figure('sensor to action, p50', 'us', digits=0),
    'options.sensor_to_action.p99': Figure('sensor to action, p99', 'us', digits=0),
    'options.in_node.p50': Figure('tick in the node, p50', 'us', digits=0),
    'options.lateness.p50': Figure('tick lateness, p50', 'us', digits=0),
    'slope.rss_slope': Figure('slope of resident memory', 'kB/min'),
}
LATENESS_OVER_FLOOR = 1.2
"""At most so many times the floor's tick lateness, p50."""

TICK_FIGURES = tuple(
    name
    for name in FIGURES
    if name != 'replay' and name.partition('.')[0] not in ('no_actor', 'swap', 'slope', 'options')
)


class Experiment(NamedTuple):
    """Arms compared in turn. `points` are the conditions, more than one for a growth.

    `share` of --seconds is how long a session lasts; `passes` caps --pairs. With `together`
    the arms run at the same time: for what load does not change.
    """

    name: str
    arms: tuple[str, ...]
    points: tuple[Condition | int, ...]
    share: float
    passes: int | None = None
    x: tuple[float, ...] = ()
    x_title: str = ''
    growing: tuple[tuple[str, str], ...] = ()
    together: bool = False

    def figures(self) -> tuple[str, ...]:
        """Return the names in FIGURES that this gives."""
        if self.name == 'tick':
            return TICK_FIGURES
        prefix = f'{self.name}.'
        return tuple(n for n in FIGURES if n == self.name or n.startswith(prefix))

    def session_s(self, seconds: float) -> float:
        """Return roughly how long a session of it takes on two cores, its start included."""
        with_ros = isinstance(self.points[0], Condition)
        return self.share * seconds + (5.0 if with_ros else 3.0)

    def is_wanted(self, only: Sequence[str]) -> bool:
        """Whether `only`, names of experiments or beginnings of figures', asks for this."""
        mine = (self.name, *self.figures())
        return not only or any(name.startswith(tuple(only)) for name in mine)


RATES = (100, 500, 1000, 2000)
ROBOTS = (1, 2, 4, 8)
FRAMES = (1, 5, 25)


def experiments(rss_minutes: float, seconds: float) -> tuple[Experiment, ...]:
    """Return all of them, in the order they run; the slope only if minutes are given to it."""
    all_of_them = (
        Experiment('tick', (OURS, STOCK, HONEST, FLOOR), (Condition(),), 1.0),
        Experiment('no_actor', NODES, (Condition(actor=False),), 0.3),
        Experiment('swap', NODES, (Condition(rate=200.0, swaps=True),), 0.3),
        Experiment('replay', NODES, (1,), 0.2),
        Experiment('options', (OURS, *OPTIONS), (Condition(),), 0.3),
        Experiment(
            'rates',
            NODES,
            tuple(Condition(rate=float(rate)) for rate in RATES),
            0.3,
            2,
            RATES,
            'sensor messages per second',
            (('cpu', 'CPU, % of a core'), ('sensor_to_action.p50', 'sensor to action p50, us')),
        ),
        Experiment(
            'robots',
            (OURS, STOCK),
            tuple(Condition(rate=200.0, robots=robots) for robots in ROBOTS),
            0.3,
            2,
            ROBOTS,
            'robots on this host, 200 Hz sensors',
            (('cpu', 'CPU of all, % of a core'), ('lateness.p50', 'tick lateness p50, us')),
        ),
        Experiment(
            'history',
            (OURS, STOCK),
            FRAMES,
            0.2,
            2,
            FRAMES,
            'frames of history of the joint and IMU terms',
            (('history', 'state to action p50, us'),),
        ),
    )
    if not rss_minutes:
        return all_of_them
    slope = rss_minutes * 60 / seconds
    together = Experiment('slope', NODES, (Condition(rate=200.0),), slope, 1, together=True)
    return (*all_of_them, together)
