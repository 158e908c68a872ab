"""The model of the clock holds what it is made from, and ends at its limit."""

import pytest

from tests.bench.clock_model import Parts, said


@pytest.mark.parametrize(("clock_1", "clock_2"), [(8.0, 4.9), (8.0, 4.0), (3.0, 3.0), (1.0, 0.6)])
def test_the_clocks_that_it_is_made_from_are_its_own(clock_1, clock_2):
    parts = Parts.measured(clock_1, clock_2, 0.01)
    assert parts.clock(1) == pytest.approx(clock_1)
    assert parts.clock(2) == pytest.approx(clock_2, abs=0.02)


def test_more_processors_never_take_longer_and_have_a_limit():
    parts = Parts.measured(8.0, 4.9, 0.16)
    clocks = [parts.clock(count) for count in (1, 2, 4, 8, 16, 64, 1024)]
    assert clocks == sorted(clocks, reverse=True)
    assert clocks[0] / clocks[-1] == pytest.approx(parts.limit)
    assert parts.serial == pytest.approx(1.8)
    assert parts.locked == pytest.approx(0.16 * 6.2)


def test_a_second_processor_that_is_worth_more_than_two_leaves_nothing_serial():
    parts = Parts.measured(8.0, 3.9, 0.0)
    assert (parts.serial, parts.limit) == (0.0, float("inf"))
    assert "4: 2.00, 8: 1.00" in said(parts)
