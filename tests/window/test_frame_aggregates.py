"""Aggregates over frames that slide: exact sums of floats, sums at the ends of their types, extremes within memory."""

import fractions
import math
import random
import statistics
from decimal import Decimal

import pyarrow as pa
import pytest

from engine.errors import DataError, MemoryBudgetError
from engine.graph.sort_key import SortKey
from engine.graph.window import WindowCall, WindowFrame
from engine.window.evaluator import WindowEvaluator

FUNCTIONS = ("sum", "avg", "min", "max", "stddev", "variance", "count")


def sliding(workshop, column, start, end, functions=FUNCTIONS, batch_rows=5, budget=1 << 20):
    """The results of functions over rows [start, end] around each value, by name."""
    table = pa.table({"id": range(len(column)), "x": column})
    calls = [WindowCall(name, "x", name, WindowFrame("rows", start, end)) for name in functions]
    with workshop.operator(4) as (_, space):
        evaluator = WindowEvaluator(table.schema, [], [SortKey("id")], calls, budget, space)
        try:
            batches = [made for batch in table.to_batches(batch_rows) for made in evaluator.add(batch)]
            batches += evaluator.finish()
        finally:
            evaluator.close()
    return {name: [value for batch in batches for value in batch[name].to_pylist()] for name in functions}


def frames_of(values, start, end):
    for row in range(len(values)):
        yield [value for value in values[max(0, row + start) : max(0, row + end + 1)] if value is not None]


def test_sums_of_floats_are_exact_however_long_they_slide(workshop):
    rng = random.Random(1)
    values = [rng.choice([1e300, -1e300, 1e-300, 5e-324, rng.random(), -rng.random() * 1e16]) for _ in range(300)]
    found = sliding(workshop, pa.array(values), -6, 0, ("sum", "avg"))
    for frame, total, mean in zip(frames_of(values, -6, 0), found["sum"], found["avg"], strict=True):
        assert total == float(sum(map(fractions.Fraction, frame)))
        assert mean == total / len(frame)


def test_infinities_and_nans_leave_with_their_rows(workshop):
    values = [1.0, math.inf, 2.0, -math.inf, 3.0, math.nan, 4.0, 1e308, 1e308, 5.0, 6.0]
    found = sliding(workshop, pa.array(values), -1, 0, ("sum", "min", "max"))
    wanted = [1.0, math.inf, math.inf, -math.inf, -math.inf, math.nan, math.nan, 1e308, math.inf, 1e308, 11.0]
    assert repr(found["sum"]) == repr(wanted)
    assert repr(found["max"][4:7]) == repr([3.0, math.nan, math.nan])
    assert found["min"][4:7] == [-math.inf, 3.0, 4.0]


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_variance_of_values_far_from_zero_keeps_its_digits(workshop, shift):
    rng = random.Random(2)
    values = [shift + rng.random() for _ in range(200)]
    found = sliding(workshop, pa.array(values), -9, 0, ("variance", "stddev"))
    for frame, variance, deviation in zip(frames_of(values, -9, 0), found["variance"], found["stddev"], strict=True):
        if len(frame) < 2:
            assert variance is deviation is None
        else:
            exact = statistics.variance(map(fractions.Fraction, frame))
            assert math.isclose(variance, exact, rel_tol=1e-12)
            assert math.isclose(deviation, math.sqrt(exact), rel_tol=1e-12)


@pytest.mark.parametrize("value", [3.48, 0.1, 1e-5, 1e9 + 0.1, -7.3])
def test_equal_values_do_not_vary(workshop, value):
    found = sliding(workshop, pa.array([value] * 30), -9, 0, ("variance", "stddev"))
    assert found["variance"] == found["stddev"] == [None] + [0.0] * 29


def test_sums_that_pass_the_end_of_a_type_on_the_way_are_right_and_those_that_stay_there_fail(workshop):
    values = [2**63 - 1, -(2**63), 2**63 - 1, -5]
    assert sliding(workshop, pa.array(values), -1, 0, ("sum",))["sum"] == [2**63 - 1, -1, -1, 2**63 - 6]
    with pytest.raises(DataError, match="beyond the range"):
        sliding(workshop, pa.array([2**63 - 1, 1]), -1, 0, ("sum",))
    most = Decimal(10**38 - 1)
    decimals = pa.array([most, Decimal(-(10**38 - 1)), most, Decimal(-1)], pa.decimal128(38, 0))
    assert sliding(workshop, decimals, -1, 0, ("sum",))["sum"] == [most, 0, 0, Decimal(10**38 - 2)]
    with pytest.raises(DataError, match="beyond the range"):
        sliding(workshop, pa.array([most, most], pa.decimal128(38, 0)), -1, 0, ("sum",))


def test_every_type_with_an_order_has_extremes(workshop):
    for data_type, values in {
        pa.bool_(): [True, False, None, True],
        pa.uint64(): [2**64 - 1, 5, None, 2**63],
        pa.date32(): [3, 1, None, 2],
        pa.time32("s"): [3, 1, None, 2],
        pa.timestamp("us", "UTC"): [3, -1, None, 2],
        pa.duration("ms"): [3, -1, None, 2],
        pa.decimal128(5, 2): [Decimal("1.50"), Decimal("-2.25"), None, Decimal("1.49")],
        pa.float32(): [1.5, -2.0, None, 0.25],
        pa.binary(2): [b"bb", b"aa", None, b"ab"],
        pa.large_string(): ["b", "", None, "ab"],
    }.items():
        column = pa.array(values, data_type)
        plain = column.to_pylist()
        found = sliding(workshop, column, -1, 0, ("min", "max"))
        frames = list(frames_of(plain, -1, 0))
        assert found["min"] == [min(frame) for frame in frames], data_type
        assert found["max"] == [max(frame) for frame in frames], data_type


def test_a_frame_that_keeps_more_values_than_memory_says_so(workshop):
    rising = pa.array(range(20_000))
    assert sliding(workshop, rising, -1_000, 0, ("min",), 500, 1 << 16)["min"][5_000] == 4_000
    with pytest.raises(MemoryBudgetError, match="smaller frame"):
        sliding(workshop, rising, -10_000, 0, ("min",), 500, 1 << 16)
