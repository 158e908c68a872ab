"""What share of rows a predicate keeps, by its kind, by statistics of columns, and by a sample."""

from __future__ import annotations

import pytest

from engine.graph.expression import ColumnRef, Literal
from engine.graph.source_spec import ColumnStatistics, ComputedStatistics
from engine.optimizer.selectivity import SMALLEST, selectivity
from tests.optimizer.plan_building import call, lit

COLUMNS = {
    "d": ColumnStatistics(distinct_count=50, null_fraction=0.2, heavy_keys=(("EUR", 0.9),)),
    "n": ColumnStatistics(minimum=0, maximum=100),
    "shifted": ColumnStatistics(minimum=50, maximum=90),
    "low": ColumnStatistics(minimum=0),
    "high": ColumnStatistics(maximum=9),
    "same": ColumnStatistics(minimum=5, maximum=5),
    "one": ColumnStatistics(distinct_count=1),
    "day": ColumnStatistics(minimum=9000.0, maximum=9100.0),
    "price": ColumnStatistics(minimum=0.0, maximum=0.1),
}


def constant(text: str) -> Literal:
    """Return a constant of a type that plans do not carry in clear: a date, a decimal."""
    return Literal(b"ipc", text)


@pytest.mark.parametrize(
    ("predicate", "share", "origin"),
    [
        (call("equal", "x", lit(1)), 0.1, "default for equal"),
        (call("equal", "d", lit("USD")), 0.02, "statistics (equal)"),
        (call("equal", "d", lit("EUR")), 0.9, "statistics (equal)"),
        (call("not_equal", "d", lit("EUR")), 0.1, "statistics (not_equal)"),
        (call("is_null", "d"), 0.2, "statistics (is_null)"),
        (call("is_not_null", "d"), 0.8, "statistics (is_not_null)"),
        (call("is_null", "x"), 0.05, "default for is_null"),
        (call("less", "n", lit(25)), 0.25, "statistics (less)"),
        (call("greater", lit(25), "n"), 0.25, "statistics (less)"),
        (call("greater_equal", "n", lit(25)), 0.75, "statistics (greater_equal)"),
        (call("less", "x", lit(25)), 1 / 3, "default for less"),
        (call("between", "n", lit(10), lit(30)), 0.2, "statistics (between)"),
        (call("between", "x", lit(10), lit(30)), 0.25, "default for between"),
        (call("str_starts_with", "x"), 0.1, "default for str_starts_with"),
        (call("and", call("less", "n", lit(50)), call("equal", "x", lit(1))), 0.05, None),
        (call("or", call("less", "n", lit(25)), call("less", "n", lit(50))), 0.625, "statistics (less)"),
        (call("not", call("less", "n", lit(25))), 0.75, "statistics (less)"),
        (call("less", "n", lit(-5)), SMALLEST, "statistics (less)"),
        (call("is_in", "d", lit("USD"), lit("GBP")), 0.04, "statistics (is_in)"),
        (call("is_in", "d", lit("USD"), lit("EUR")), 0.92, "statistics (is_in)"),
        (call("is_in", "d", *[lit(f"x{index}") for index in range(60)]), 1.0, "statistics (is_in)"),
        (call("is_in", "x", lit(1), lit(2), lit(3)), 0.3, "default for is_in"),
        (call("is_in", "x", *[lit(index) for index in range(9)]), 0.5, "default for is_in"),
        (call("is_in", "d"), SMALLEST, "default for is_in"),
        (call("equal", "d", "x"), 0.02, "statistics (equal)"),
        (call("equal", "one", lit(1)), 1.0, "statistics (equal)"),
        (call("equal", "d", Literal(b"ipc", "'EUR'", "EUR")), 0.9, "statistics (equal)"),
        (call("equal", "d", Literal(b"ipc", "EUR", "other")), 0.9, "statistics (equal)"),
        (call("less", "shifted", lit(60)), 0.25, "statistics (less)"),
        (call("less", "shifted", lit(500)), 1.0, "statistics (less)"),
        (call("less", "low", lit(5)), 1 / 3, "default for less"),
        (call("less", "high", lit(5)), 1 / 3, "default for less"),
        (call("less", "same", lit(5)), 1 / 3, "default for less"),
        (call("less", "n", "x"), 0.5, "default for less of columns"),
        (call("less", "n", lit("text")), 1 / 3, "default for less"),
        (call("less", call("add", "n", lit(1)), lit(5)), 1 / 3, "default for less"),
        (call("between", "n", lit(10), "x"), 0.25, "default for between"),
        (call("between", "n", "x", lit(10)), 0.25, "default for between"),
        (call("between", call("add", "n", lit(1)), lit(10), lit(30)), 0.25, "default for between"),
        (call("between", "n", lit(50), lit(200)), 0.5, "statistics (between)"),
        (call("between", "n", lit(30), lit(10)), SMALLEST, "statistics (between)"),
        (call("starts_late", "n"), 1 / 3, "default for starts_late"),
        (call("and", call("is_null", "x"), "x"), 0.025, "default for is_null, default for x"),
        (call("less", "day", constant("1994-09-17")), 0.25, "statistics (less)"),
        (call("less", "day", constant("1994-09-17 12:00:00")), 0.255, "statistics (less)"),
        (call("between", "price", constant("0.02"), constant("0.07")), 0.5, "statistics (between)"),
        (call("greater", "day", constant("b'x'")), 1 / 3, "default for greater"),
        (
            call("and", call("greater", "n", lit(20)), call("less_equal", "n", lit(30))),
            0.1,
            "statistics (range)",
        ),
        (
            call("and", call("and", call("greater", "n", lit(20)), call("is_null", "x")), call("less", "n", lit(30))),
            0.005,
            "statistics (range), default for is_null",
        ),
        (call("and", call("greater", "n", lit(30)), call("less", "n", lit(20))), SMALLEST, "statistics (range)"),
        # the same values, said twice: a filter of each use of a query, and what all of them may ask for
        (
            call(
                "and",
                call("is_in", "d", lit("CHF"), lit("USD")),
                call("or", call("equal", "d", lit("USD")), call("equal", "d", lit("CHF"))),
            ),
            1 - 0.98**2,
            "statistics (is_in), statistics (equal)",
        ),
        (
            call("and", call("and", call("equal", "d", lit("USD")), call("is_in", "d", lit("USD"))), "x"),
            0.01,
            "statistics (equal), statistics (is_in), default for x",
        ),
        (call("and", call("equal", "d", lit("USD")), call("equal", "x", lit(1))), 0.002, None),
        (call("and", call("equal", "d", lit("EUR")), call("equal", "d", "x")), 0.018, None),
        (ColumnRef("x"), 0.5, "default for x"),
        (lit(True), 1.0, "constant"),
        (lit(False), SMALLEST, "constant"),
    ],
)
def test_predicates_keep_a_share_by_kind_and_statistics(predicate, share, origin):
    found, words = selectivity(predicate, COLUMNS)
    assert found == pytest.approx(share)
    assert origin in (None, words)


LATE, OF_N, RARE = call("less", "x", "d"), call("less", "n", lit(10)), call("equal", "d", lit("JPY"))
BOTH = call("and", LATE, OF_N)
SAMPLED = tuple(
    ComputedStatistics(predicate, ColumnStatistics(heavy_keys=(("true", share),)))
    for predicate, share in ((BOTH, 0.04), (LATE, 0.6), (OF_N, 0.08), (RARE, 0.0001))
)


@pytest.mark.parametrize(
    ("predicate", "share", "origin"),
    [
        (LATE, 0.6, "sample"),
        (call("and", OF_N, LATE), 0.04, "sample"),
        (call("and", call("is_null", "x"), BOTH), 0.002, "sample, default for is_null"),
        (call("and", LATE, call("is_null", "x")), 0.03, "sample, default for is_null"),
        (call("or", LATE, OF_N), 0.55, "default for less of columns, statistics (less)"),
        (RARE, (0.0001 * 0.02) ** 0.5, "rare in the sample, statistics (equal)"),
    ],
)
def test_what_a_sample_kept_wins_over_what_is_known_of_columns(predicate, share, origin):
    found, words = selectivity(predicate, COLUMNS, SAMPLED)
    assert (found, words) == (pytest.approx(share), origin)
