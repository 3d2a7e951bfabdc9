import dataclasses
from pathlib import Path

import pytest
import yaml

from g1_policy_node.paths import find_data
from g1_policy_node.tools.evaluation.figures import figures_of
from g1_policy_node.tools.evaluation.plan import COMMANDS, UNCHANGED, cases, load_plan, quick
from g1_policy_node.types import UserError

SHIPPED = find_data('config/evaluation.yaml')
PLAN = load_plan(SHIPPED)
KICKS = yaml.safe_load(SHIPPED.read_text())['kicks']


def changed(tmp_path: Path, **changes) -> Path:
    path = tmp_path / 'plan.yaml'
    path.write_text(yaml.safe_dump({**yaml.safe_load(SHIPPED.read_text()), **changes}))
    return path


def test_every_case_is_there_once() -> None:
    all_cases = list(cases(PLAN))
    assert len(set(all_cases)) == len(all_cases)
    kicked = [c for c in all_cases if c.kick == 1.0 and c.condition == UNCHANGED]
    assert sorted(c.seed for c in kicked) == list(range(40))


def test_every_condition_gets_the_straight_and_turning_commands_and_the_seeds() -> None:
    for name in PLAN.conditions:
        mine = [c for c in cases(PLAN) if c.condition == name]
        assert [c.command for c in mine if c.group in COMMANDS] == [*PLAN.straight, *PLAN.turning]
        assert len([c for c in mine if c.kick == PLAN.condition_kick]) == PLAN.kicks.seeds


def test_bars_limit_figures_that_are_measured() -> None:
    assert PLAN.bars
    for bar in PLAN.bars.values():
        assert set(bar) <= set(figures_of(PLAN))


def test_a_bar_is_no_part_of_what_is_run() -> None:
    assert dataclasses.replace(PLAN, bars={}).sha256 == PLAN.sha256
    assert dataclasses.replace(PLAN, settling=2.0).sha256 != PLAN.sha256


def test_a_quick_plan_is_a_part_of_the_plan_and_judges_nothing() -> None:
    part = quick(PLAN)
    for group in COMMANDS:
        assert set(getattr(part, group)) <= set(getattr(PLAN, group))
    assert part.gait in part.straight
    assert set(part.conditions) < set(PLAN.conditions)
    assert len(list(cases(part))) < 20
    assert not part.bars


@pytest.mark.parametrize(
    ('changes', 'said'),
    [
        ({'settling': 20.0}, 'settling 20.0 s is not within 15.0 s'),
        ({'gait': [0.7, 0.0, 0.0]}, 'none of the straight commands'),
        ({'kicks': {**KICKS, 'seeds': 0}}, 'kicks need seeds'),
        ({'conditions': {'none': {}}}, 'must not be named none'),
        ({'conditions': {'ice': {'slip': 1.0}}}, 'slip'),
    ],
)
def test_a_plan_that_means_nothing_is_refused(tmp_path: Path, changes, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_plan(changed(tmp_path, **changes))
