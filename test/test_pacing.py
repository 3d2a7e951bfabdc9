"""Real-time pace and lock-step, on a fake clock."""

from g1_policy_node.pacing import LockStep, RealTimePace

MS = 1_000_000


class FakeTime:
    def __init__(self) -> None:
        self.now_ns = 1_000 * MS

    def now(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


def test_steps_stay_on_the_grid_whatever_each_one_costs() -> None:
    fake = FakeTime()
    pace = RealTimePace(5 * MS, fake.now, fake.sleep)
    for k in range(1, 7):
        fake.now_ns += k % 3 * MS
        pace.wait()
        assert fake.now_ns == (1_000 + 5 * k) * MS
    assert pace.rebases == 0


def test_small_lag_is_made_up_for() -> None:
    fake = FakeTime()
    pace = RealTimePace(5 * MS, fake.now, fake.sleep)
    fake.now_ns += 8 * MS
    pace.wait()
    pace.wait()
    assert fake.now_ns == 1_010 * MS
    assert pace.lost_ns == 0


def test_long_stall_is_lost_and_never_made_up_for_in_a_burst() -> None:
    fake = FakeTime()
    pace = RealTimePace(5 * MS, fake.now, fake.sleep)
    fake.now_ns += 100 * MS
    pace.wait()
    for k in range(1, 4):
        pace.wait()
        assert fake.now_ns == (1_100 + 5 * k) * MS
    assert pace.rebases == 1
    assert pace.lost_ns == 95 * MS


def test_lockstep_is_free_until_the_first_command() -> None:
    lockstep = LockStep(20 * MS, 5 * MS)
    assert not lockstep.engaged
    assert not lockstep.must_wait(10**12)


def test_lockstep_allows_one_tick_per_command() -> None:
    lockstep = LockStep(20 * MS, 5 * MS)
    assert lockstep.command(100 * MS, now=100 * MS)
    assert [lockstep.must_wait(t * MS) for t in (100, 105, 110, 115, 120)] == [False] * 4 + [True]
    assert lockstep.command(120 * MS, now=120 * MS)
    assert not lockstep.must_wait(120 * MS)


def test_lockstep_heals_when_the_first_command_was_off_the_grid() -> None:
    # The policy ticks at 100, 120, ...; its command of 100 came late, stamped 105.
    lockstep = LockStep(20 * MS, 5 * MS)
    lockstep.command(105 * MS, now=105 * MS)
    assert not lockstep.must_wait(120 * MS)
    assert lockstep.must_wait(125 * MS)
    lockstep.command(120 * MS, now=125 * MS)
    assert not lockstep.must_wait(135 * MS)
    assert lockstep.must_wait(140 * MS)


def test_lockstep_runs_freely_after_giving_up_until_the_next_command() -> None:
    lockstep = LockStep(20 * MS, 5 * MS)
    lockstep.command(100 * MS, now=100 * MS)
    lockstep.give_up()
    assert not lockstep.must_wait(10**12)
    lockstep.command(500 * MS, now=505 * MS)
    assert lockstep.must_wait(520 * MS)


def test_stamp_that_is_not_simulated_time_never_engages() -> None:
    lockstep = LockStep(20 * MS, 5 * MS)
    for stamp in (0, 1_800_000_000 * 10**9):
        assert not lockstep.command(stamp, now=100 * MS)
        assert not lockstep.engaged
