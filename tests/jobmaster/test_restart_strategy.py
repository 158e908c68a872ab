from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.jobmaster.restart_strategy import (
    ExponentialDelayRestart,
    FailureRateRestart,
    FixedDelayRestart,
    NoRestart,
)


def test_none_never_restarts():
    assert NoRestart().next_delay_s(0.0) is None


def test_fixed_delay_restarts_so_many_times():
    strategy = FixedDelayRestart(2, 1.5)
    assert [strategy.next_delay_s(t) for t in range(4)] == [1.5, 1.5, None, None]


def test_exponential_delay_grows_to_its_maximum_and_begins_anew_after_a_quiet_time():
    strategy = ExponentialDelayRestart(1.0, 5.0, 2.0, reset_s=100.0)
    assert [strategy.next_delay_s(t) for t in (0, 10, 20, 30, 40)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert strategy.next_delay_s(144.0) == 5.0
    assert strategy.next_delay_s(144.0 + 105.0) == 1.0


@given(st.floats(0.5, 2.0), st.integers(1, 30))
def test_jitter_never_passes_the_maximum(factor, failures):
    strategy = ExponentialDelayRestart(1.0, 60.0, jitter=lambda: factor)
    assert all(0 < strategy.next_delay_s(t) <= 60.0 for t in range(failures))


def test_failure_rate_counts_only_what_lies_in_the_interval():
    strategy = FailureRateRestart(2, 10.0, 0.5)
    assert [strategy.next_delay_s(t) for t in (0, 5, 11, 12)] == [0.5, 0.5, 0.5, None]


@given(st.lists(st.floats(0, 20), max_size=50), st.integers(1, 5))
def test_failure_rate_agrees_with_counting_the_interval(steps, failures_max):
    strategy, now, times = FailureRateRestart(failures_max, 10.0, 1.0), 0.0, []
    for step in steps:
        now += step
        times.append(now)
        recent = [time for time in times if time > now - 10.0]
        assert (strategy.next_delay_s(now) is not None) == (len(recent) <= failures_max)
