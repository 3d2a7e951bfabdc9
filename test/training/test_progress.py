import math

import torch

from g1_policy_node.training.progress import Countdown, EpisodeStatistics


def test_only_episodes_that_ended_count_and_each_once() -> None:
    statistics = EpisodeStatistics(2, 'cpu')
    for dones in ([0, 0], [1, 0], [0, 0]):
        statistics.add(torch.tensor([1.0, 5.0]), torch.tensor(dones), {})
    assert statistics.read()[:2] == (2.0, 2.0)
    statistics.add(torch.tensor([1.0, 5.0]), torch.tensor([0, 1]), {})
    assert statistics.read()[:2] == (20.0, 4.0)


def test_before_an_episode_has_ended_there_is_no_mean() -> None:
    assert math.isnan(EpisodeStatistics(2, 'cpu').read()[0])


def test_a_run_is_over_after_its_iterations_or_its_time() -> None:
    countdown = Countdown(2, 0.0, 0.0)
    countdown.tick()
    assert countdown.over == ''
    countdown.tick()
    assert countdown.over == 'all iterations done'
    late = Countdown(100, 1e-6, 0.0)
    late.tick()
    assert late.over == 'time limit'
