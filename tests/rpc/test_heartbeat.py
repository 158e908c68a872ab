"""Heartbeats: a silence counts as a loss once, and a pause of the watcher does not count."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.clock import ManualClock
from engine.rpc.heartbeat import HeartbeatMonitor


def monitor(interval_s=10.0, timeout_s=50.0):
    clock = ManualClock()
    return HeartbeatMonitor[str](interval_s, timeout_s, clock), clock


def test_a_target_that_is_silent_for_longer_than_the_time_out_is_lost_once():
    beats, clock = monitor()
    beats.watch("tm")
    for _ in range(5):
        clock.advance(10)
        assert beats.poll() == ()
    clock.advance(10)
    assert beats.poll() == ("tm",)
    assert beats.poll() == () and beats.targets == ()


def test_a_sign_of_life_begins_the_time_anew_and_of_strangers_means_nothing():
    beats, clock = monitor()
    beats.watch("tm")
    for _ in range(20):
        clock.advance(10)
        beats.received("tm")
        beats.received("stranger")
        assert beats.poll() == ()
    assert beats.targets == ("tm",)


def test_a_pause_of_this_process_is_not_the_silence_of_others():
    beats, clock = monitor()
    beats.watch("tm")
    clock.advance(3600)
    assert beats.poll() == ()
    for _ in range(4):
        clock.advance(10)
        assert beats.poll() == ()
    clock.advance(10)
    assert beats.poll() == ("tm",)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=60))
def test_nobody_is_lost_sooner_than_the_time_out_nor_later_than_one_interval_after(steps):
    beats, clock = monitor()
    beats.watch("tm")
    for step in steps:
        clock.advance(step)
        lost = beats.poll()
        if lost:
            assert 50 < clock.monotonic_s() <= 60.0001
            return
    assert clock.monotonic_s() <= 50


def test_an_interval_that_is_not_less_than_the_time_out_is_refused():
    with pytest.raises(ValueError, match="less than the time-out"):
        monitor(50.0, 50.0)
