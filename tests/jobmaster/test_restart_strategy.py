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
    assert [strategy.next_delay_s(1000.0 + t) for t in range(3)] == [1.0, 2.0, None]


def test_exponential_delay_without_a_number_of_attempts_goes_on():
    strategy = ExponentialDelayRestart(1.0, 2.0, 2.0, 100.0)
    assert [strategy.next_delay_s(t) for t in range(50)] == [1.0] + [2.0] * 49


def test_jitter_is_a_factor_of_each_delay_and_does_not_add_up():
    factors = iter([1.5, 0.5, 1.0])
    strategy = exponential(jitter=lambda: next(factors))
    assert [strategy.next_delay_s(t) for t in range(3)] == [1.5, 1.0, 4.0]


@given(st.floats(0.5, 2.0), st.integers(1, 30))
def test_jitter_never_passes_the_maximum(factor, failures):
    strategy = exponential(jitter=lambda: factor, maximum_s=60.0)
    assert all(strategy.next_delay_s(time) <= 60.0 for time in range(failures))


def test_failure_rate_allows_so_many_failures_in_an_interval():
    strategy = FailureRateRestart(2, 10.0, 0.5)
    assert [strategy.next_delay_s(t) for t in (0, 1, 2, 11.5)] == [0.5, 0.5, None, 0.5]


def test_a_failure_is_forgotten_when_the_interval_has_passed():
    strategy = FailureRateRestart(1, 10.0, 0.5)
    assert [strategy.next_delay_s(t) for t in (0, 10, 19)] == [0.5, 0.5, None]


def delays(settings, moments, random=0.5):
    """Return what the strategy that these settings choose says at those moments."""
    strategy = restart_strategy("none", configuration_from_texts(settings), lambda: random)
    return [strategy.next_delay_s(moment) for moment in moments]


def test_each_setting_of_a_fixed_delay_reaches_it():
    settings = {"type": "fixed-delay", "fixed-delay.attempts": "2", "fixed-delay.delay": "250 ms"}
    assert delays(prefixed(settings), (0, 1, 2)) == [0.25, 0.25, None]


def test_each_setting_of_a_failure_rate_reaches_it():
    settings = {
        "type": "failure-rate",
        "failure-rate.max-failures-per-interval": "2",
        "failure-rate.failure-rate-interval": "10 s",
        "failure-rate.delay": "500 ms",
    }
    assert delays(prefixed(settings), (0, 1, 10.0, 11.0)) == [0.5] * 4
    assert delays(prefixed(settings), (0, 1, 9.999)) == [0.5, 0.5, None]


def test_each_setting_of_an_exponential_delay_reaches_it():
    settings = prefixed(
        {
            "type": "exponential-delay",
            "exponential-delay.initial-backoff": "2 s",
            "exponential-delay.max-backoff": "10 s",
            "exponential-delay.backoff-multiplier": "3",
            "exponential-delay.reset-backoff-threshold": "100 s",
            "exponential-delay.attempts-before-reset-backoff": "3",
            "exponential-delay.jitter-factor": "0.25",
        }
    )
    assert delays(settings, (0, 10, 20, 30)) == [2.0, 6.0, 10.0, None]
    assert delays(settings, (0, 102.0)) == [2.0, 2.0]
    assert delays(settings, (0, 101.99)) == [2.0, 6.0]
    # a quarter less when the random number is 0, a quarter more just below 1, and never above the maximum
    assert delays(settings, (0, 10, 20), random=0.0) == [1.5, 4.5, 7.5]
    assert delays(settings, (0, 10, 20), random=1.0) == [2.5, 7.5, 10.0]


def prefixed(settings):
    return {f"restart-strategy.{name}": value for name, value in settings.items()}


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
