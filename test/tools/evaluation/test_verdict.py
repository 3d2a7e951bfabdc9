import dataclasses

import pytest

from g1_policy_node.paths import find_data
from g1_policy_node.tools.evaluation.plan import load_plan
from g1_policy_node.tools.evaluation.verdict import bar_of, judge
from g1_policy_node.types import UserError

PLAN = dataclasses.replace(
    load_plan(find_data('config/evaluation.yaml')),
    bars={'low': {'vx_error': 0.1}, 'odd': {'x': 1}},
)


def test_what_is_above_its_limit_or_was_not_measured_is_not_met() -> None:
    figures = {'a': 0.1, 'b': 0.100001, 'c': None, 'd': 0}
    met = {c.name: c.met for c in judge(figures, {'a': 0.1, 'b': 0.1, 'c': 9.0, 'd': 0.0})}
    assert met == {'a': True, 'b': False, 'c': False, 'd': True}


def test_a_bar_must_be_there_and_limit_figures() -> None:
    figures = {'vx_error': None}
    assert bar_of(PLAN, 'low', figures) == {'vx_error': 0.1}
    with pytest.raises(UserError, match="bar 'high' is none of low, odd"):
        bar_of(PLAN, 'high', figures)
    with pytest.raises(UserError, match='bar odd: x is no figure'):
        bar_of(PLAN, 'odd', figures)
