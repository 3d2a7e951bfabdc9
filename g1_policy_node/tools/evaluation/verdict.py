"""Holds an evaluation's figures against a written bar."""

from collections.abc import Mapping
from typing import NamedTuple

from g1_policy_node.tools.evaluation.plan import Plan
from g1_policy_node.types import UserError


class Criterion(NamedTuple):
    """One line of a bar: the figure must not be above the limit; None was not measured."""

    name: str
    value: float | None
    limit: float

    @property
    def met(self) -> bool:
        """Whether it was measured and is within the limit."""
        return self.value is not None and self.value <= self.limit


def bar_of(plan: Plan, name: str, figures: Mapping[str, object]) -> Mapping[str, float]:
    """Return a bar by name; UserError where it is not there, or limits what is no figure."""
    if name not in plan.bars:
        raise UserError(f'bar {name!r} is none of {", ".join(plan.bars)}')
    if unknown := sorted(set(plan.bars[name]) - set(figures)):
        raise UserError(f'bar {name}: {", ".join(unknown)} is no figure of the evaluation')
    return plan.bars[name]


def judge(figures: Mapping[str, float | None], bar: Mapping[str, float]) -> list[Criterion]:
    """Return every line of the bar with what was measured."""
    return [Criterion(name, figures[name], limit) for name, limit in bar.items()]
