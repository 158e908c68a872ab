"""Restart strategies: how often, how long apart; chosen by the configuration."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.loader import configuration_from_texts
from engine.jobmaster.restart_strategy import (
    ExponentialDelayRestart,
    FailureRateRestart,
    FixedDelayRestart,
    NoRestart,
    restart_strategy,
)


def exponential(attempts=0, jitter=lambda: 1.0, maximum_s=5.0):
    return ExponentialDelayRestart(1.0, maximum_s, 2.0, 100.0, attempts, jitter)


def test_none_never_restarts():
    assert NoRestart().next_delay_s(0.0) is None


def test_fixed_delay_restarts_so_many_times():
    strategy = FixedDelayRestart(2, 1.5)
    assert [strategy.next_delay_s(t) for t in range(4)] == [1.5, 1.5, None, None]


def test_exponential_delay_grows_to_its_maximum_and_begins_anew_after_a_quiet_time():
    strategy = exponential()
    assert [strategy.next_delay_s(t) for t in (0, 10, 20, 30, 40)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert strategy.next_delay_s(144.0) == 5.0
    assert strategy.next_delay_s(144.0 + 105.0) == 1.0


def test_exponential_delay_may_have_a_number_of_attempts():
    strategy = exponential(attempts=2)
    assert [strategy.next_delay_s(t) for t in range(3)] == [1.0, 2.0, None]
    assert strategy.next_delay_s(1000.0) == 1.0


@given(st.floats(0.5, 2.0), st.integers(1, 30))
def test_jitter_never_passes_the_maximum(factor, failures):
    strategy = exponential(jitter=lambda: factor, maximum_s=60.0)
    assert all(strategy.next_delay_s(time) <= 60.0 for time in range(failures))


def test_failure_rate_allows_so_many_failures_in_an_interval():
    strategy = FailureRateRestart(2, 10.0, 0.5)
    assert [strategy.next_delay_s(t) for t in (0, 1, 2, 11.5)] == [0.5, 0.5, None, 0.5]


@pytest.mark.parametrize(
    ("name", "default", "kind"),
    [
        (None, "none", NoRestart),
        (None, "exponential-delay", ExponentialDelayRestart),
        ("none", "exponential-delay", NoRestart),
        ("fixed-delay", "none", FixedDelayRestart),
        ("failure-rate", "none", FailureRateRestart),
    ],
)
def test_the_configuration_chooses(name, default, kind):
    configuration = configuration_from_texts({"restart-strategy.type": name} if name else {})
    assert isinstance(restart_strategy(default, configuration, lambda: 0.5), kind)
