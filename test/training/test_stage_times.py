from g1_policy_node.training.stage_times import STAGES, WARM_UP, StageTimes


def iterate(times: StageTimes, count: int) -> None:
    for _ in range(count):
        with times.iteration():
            for name in STAGES:
                with times.stage(name):
                    pass


def test_every_second_iteration_after_the_warm_up_is_timed() -> None:
    times = StageTimes('cpu', enabled=True)
    iterate(times, WARM_UP + 6)
    report = times.report()
    assert report is not None
    assert set(report['stages']) == set(STAGES)
    assert all(stage['count'] == 3 for stage in report['stages'].values())
    assert report['iteration_timed']['count'] == report['iteration_untimed']['count'] == 3


def test_nothing_is_recorded_unless_asked_for() -> None:
    times = StageTimes('cpu', enabled=False)
    iterate(times, WARM_UP + 6)
    assert times.report() is None
