"""Estimates of rows and bytes for every operator, and costs made of them."""

from __future__ import annotations

import pytest

from engine.graph.expression import ColumnRef, Literal
from engine.graph.plan import CoGroup, Filter, GroupReduce, JoinType, PythonFunction
from engine.graph.source_spec import ColumnStatistics, ComputedStatistics
from engine.optimizer import column_lineage
from engine.optimizer.estimates import estimate, estimate_below, estimate_plan, flink_estimate
from engine.optimizer.key_ranges import values_met
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.filter import FilterEntry
from engine.optimizer.selectivity import SMALLEST, selectivity
from engine.statistics.costs import Costs, broadcast_cost, hash_join_cost, repartition_cost
from engine.statistics.estimates import UNKNOWN, Estimates
from tests.optimizer.plan_building import Builder, call, column, lit, schema

PAIR = schema(k="int64", v="int64")


def last(builder: Builder) -> Estimates:
    builder.sink(len(builder.nodes) - 1)
    return estimate_plan(builder.plan())[-1]


def test_a_source_without_rows_has_them_from_its_bytes():
    builder = Builder()
    builder.source(PAIR, rows=None, size=16_000)
    found = estimate_plan(builder.plan())[0]
    assert (found.rows, found.size_bytes) == (1000, 16_000)
    assert found.origin == "parquet metadata, rows of 16 bytes"


def test_a_source_of_which_nothing_is_known_has_its_splits():
    builder = Builder()
    builder.source(PAIR, rows=None, splits=3)
    assert estimate_plan(builder.plan())[0].size_bytes == 3000
    builder = Builder()
    builder.source(PAIR, rows=None, splits=0)
    found = estimate_plan(builder.plan())[0]
    assert found.rows == 1_000_000
    assert "by default" in found.origin


def test_measured_bytes_say_how_wide_strings_are():
    builder = Builder()
    source = builder.source(schema(k="int64", s="string"), rows=100, size=100 * 108)
    builder.project(source, "s")
    assert last(builder).size_bytes == pytest.approx(100 * 100)


@pytest.mark.parametrize("legacy", [False, True])
def test_functions_and_projections_have_sizes_unless_legacy(legacy):
    builder = Builder()
    source = builder.source(PAIR, rows=1000)
    projected = builder.project(source, "k", (column("d"), call("add", "k", "v")))
    builder.python(projected, "flat_map", schema(a="double", b="string"))
    found = estimate_plan(builder.plan(), flink_estimate if legacy else estimate)
    sizes = [each.size_bytes for each in found]
    assert sizes == ([16_000, UNKNOWN, UNKNOWN] if legacy else [16_000, 16_000, 2000 * 24])
    assert [each.rows for each in found] == [1000, 1000, 5000 if legacy else 2000]
    assert found[2].origin.endswith("default for flat_map")


@pytest.mark.parametrize(
    ("how", "rows"),
    [(JoinType.INNER, 14e6), (JoinType.LEFT, 14e6), (JoinType.SEMI, 7e6), (JoinType.CROSS, 14e6 * 492)],
)
def test_a_join_with_a_lookup_table_keeps_the_rows_of_the_large_side(how, rows):
    builder = Builder()
    left = builder.source(PAIR, rows=14e6)
    right = builder.source(schema(k="int64", w="int64"), rows=492)
    builder.join(left, right, on="k", how=how)
    assert last(builder).rows == pytest.approx(rows)


def test_known_distinct_keys_say_how_large_a_join_is():
    builder = Builder()
    known = {"k": ColumnStatistics(distinct_count=100)}
    left = builder.source(PAIR, rows=10_000, columns=known)
    right = builder.source(schema(k="int64", w="int64"), rows=1000, columns=known)
    builder.join(left, right, on="k")
    found = last(builder)
    assert estimate_plan(builder.plan())[2].origin == "left * right / 100 distinct keys"
    assert found.rows == 100_000


CALENDAR = ColumnStatistics(distinct_count=73_000, minimum=0, maximum=73_000)
OF_SALES = ColumnStatistics(distinct_count=1800, minimum=36_000, maximum=37_825)


@pytest.mark.parametrize(
    ("days", "rows", "origin"),
    [
        # a year: one of those that have sales
        (365, 365e6 / 1825, "left * right / 1825 distinct keys in the range of both"),
        # first days of months lie in all years, and so does the whole calendar
        (2400, 2400e6 / 73_000, "left * right / 73000 distinct keys"),
        (73_000, 1e6, "left * right / 73000 distinct keys"),
    ],
)
@pytest.mark.parametrize("is_lookup_first", [False, True])
def test_rows_of_a_lookup_table_that_fit_into_the_range_of_the_others_are_taken_to_lie_there(
    days, rows, origin, is_lookup_first
):
    builder = Builder()
    sales = builder.source(PAIR, rows=1e6, columns={"k": OF_SALES})
    calendar = builder.source(schema(k="int64", w="int64"), rows=days, columns={"k": CALENDAR})
    sides = (calendar, sales) if is_lookup_first else (sales, calendar)
    builder.sink(builder.join(*sides, on="k"))
    found = estimate_plan(builder.plan())[2]
    assert found.rows == pytest.approx(rows)
    assert found.origin == origin


@pytest.mark.parametrize(
    "other",
    [
        ColumnStatistics(distinct_count=100),
        ColumnStatistics(distinct_count=100, minimum="a", maximum="b"),
        ColumnStatistics(distinct_count=100, minimum=True, maximum=False),
        ColumnStatistics(distinct_count=100, minimum=-5, maximum=-1),
        ColumnStatistics(distinct_count=100, minimum=7, maximum=7),
    ],
)
def test_ranges_that_say_nothing_change_no_estimate(other):
    assert values_met(CALENDAR, 10, [other]) == 73_000
    assert values_met(other, 10, [CALENDAR]) == 100


def test_bounds_of_a_union_hold_for_all_inputs():
    known = [ColumnStatistics(minimum=2, maximum=5), ColumnStatistics(minimum=1, maximum=3)]
    (found,) = column_lineage.merged([{"k": each} for each in known], [1, 1]).values()
    assert (found.minimum, found.maximum) == (1, 5)
    (found,) = column_lineage.merged([{"k": known[0]}, {"k": ColumnStatistics(minimum="a")}], [1, 1]).values()
    assert (found.minimum, found.maximum) == (None, None)


def test_groups_are_the_product_of_distinct_keys_or_a_power_of_rows():
    builder = Builder()
    columns = {"k": ColumnStatistics(distinct_count=7), "v": ColumnStatistics(distinct_count=5)}
    source = builder.source(PAIR, rows=10_000, columns=columns)
    builder.aggregate(source, ("k", "v"), ("count_all", None))
    unknown = builder.source(PAIR, rows=10_000)
    builder.aggregate(unknown, ("k",), ("count_all", None))
    builder.aggregate(source, (), ("count_all", None))
    found = estimate_plan(builder.plan())
    assert (found[1].rows, found[3].rows, found[4].rows) == (35, 1000, 1)
    assert "distinct k unknown" in found[3].origin


@pytest.mark.parametrize(
    ("keys", "rows", "origin"),
    [
        # 60 names and 70 towns, but 100 customers; each of them on 3 days
        (("name", "town"), 100, "distinct keys"),
        (("name", "town", "day"), 300, "distinct keys of 2 sources"),
        (("name", "town", "code", "day"), 300, "rows ** 0.75: distinct code unknown"),
        (("code", "day"), 100**0.75 * 3, "rows ** 0.75: distinct code unknown"),
    ],
)
def test_columns_of_one_source_have_no_more_combinations_than_it_has_rows(keys, rows, origin):
    builder = Builder()
    sales = builder.source(
        schema(k="int64", day="int64"),
        rows=1e6,
        columns={"day": ColumnStatistics(distinct_count=3), "k": ColumnStatistics(distinct_count=100)},
    )
    known = {"name": ColumnStatistics(distinct_count=60), "town": ColumnStatistics(distinct_count=70)}
    customers = builder.source(
        schema(k="int64", name="int64", town="int64", code="int64"),
        rows=100,
        columns={**known, "k": ColumnStatistics(distinct_count=100)},
    )
    builder.aggregate(builder.join(sales, customers, on="k"), keys, ("count_all", None))
    found = estimate_plan(builder.plan())[3]
    assert (found.rows, found.origin) == (pytest.approx(rows), origin)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(
    ("distinct", "rows"),
    [(300, 300.0), (None, 1000.0), (5000, 1000.0)],  # customers that have bought; nobody knows; more than there are
)
def test_columns_of_a_lookup_table_have_the_combinations_of_rows_that_are_asked_for(distinct, rows, is_turned):
    builder = Builder()
    known = {} if distinct is None else {"customer": ColumnStatistics(distinct_count=distinct)}
    sales = builder.source(schema(customer="int64", price="int32"), rows=1e6, columns=known)
    names = {name: ColumnStatistics(distinct_count=1000) for name in ("id", "name", "city")}
    customers = builder.source(schema(id="int64", name="int64", city="int64"), rows=1000, columns=names)
    sides = ((sales, "customer"), (customers, "id"))[:: -1 if is_turned else 1]
    joined = builder.join(sides[0][0], sides[1][0], left_on=sides[0][1], right_on=sides[1][1])
    builder.aggregate(joined, ("name", "city"), ("sum", "price"))
    assert last(builder).rows == rows


def test_a_filter_of_a_source_leaves_fewer_combinations_of_its_columns():
    builder = Builder()
    known = {"k": ColumnStatistics(distinct_count=800), "v": ColumnStatistics(distinct_count=10)}
    kept = builder.filter(builder.source(PAIR, rows=1000, columns=known), call("equal", "v", lit(3)))
    other = builder.source(schema(k2="int64"), rows=5000, columns={"k2": ColumnStatistics(distinct_count=800)})
    builder.aggregate(builder.join(kept, other, left_on="k", right_on="k2"), ("k", "v"), ("count_all", None))
    assert estimate_plan(builder.plan())[4].rows <= 100


def test_limit_union_and_sort():
    builder = Builder()
    source = builder.source(PAIR, rows=1000)
    union = builder.union(source, source)
    builder.limit(builder.sort(union, "k"), 10)
    found = estimate_plan(builder.plan())
    assert [each.rows for each in found] == [1000, 2000, 2000, 10]
    assert [each.size_bytes for each in found] == [16_000, 32_000, 32_000, 160]


def test_a_limit_that_all_rows_fit_in_changes_nothing():
    builder = Builder()
    source = builder.source(PAIR, rows=10)
    builder.sink(builder.limit(builder.limit(source, 10), 4))
    _, whole, cut, _ = estimate_plan(builder.plan())
    assert (whole.rows, whole.size_bytes, whole.origin) == (10, 160, "rows of the input")
    assert (cut.rows, cut.size_bytes, cut.origin) == (4, 64, "limit 4")


@pytest.mark.parametrize(
    ("keys", "rows"), [(("k",), 7), (("k", "v"), 35), (("k", "w"), 1000), (("x",), 10_000), ((), 1)]
)
def test_a_function_over_groups_makes_a_row_for_each(keys, rows):
    builder = Builder()
    counts = {"k": 7, "v": 5, "x": 1e9}
    known = {name: ColumnStatistics(distinct_count=count) for name, count in counts.items()}
    source = builder.source(schema(k="int64", v="int64", w="int64", x="int64"), rows=10_000, columns=known)
    function = PythonFunction("reduce", b"pickle", "fn", "job.py", 7)
    builder.add(GroupReduce(keys, function), (source,), schema(a="int64"))
    for legacy, size in ((False, rows * 8), (True, UNKNOWN)):
        found = estimate_plan(builder.plan(), flink_estimate if legacy else estimate)[1]
        assert (found.rows, found.size_bytes) == (pytest.approx(rows), size)
        assert found.origin == "a row for each group: default for a function"


def test_a_function_over_groups_of_two_inputs_makes_a_row_for_each_of_either():
    builder = Builder()
    sides = [builder.source(PAIR, columns={"k": ColumnStatistics(distinct_count=count)}) for count in (7, 5)]
    function = PythonFunction("co_group", b"pickle", "fn", "job.py", 7)
    builder.add(CoGroup(("k",), function, (), (), PAIR, ((), ())), tuple(sides), schema(a="int64"))
    assert estimate_plan(builder.plan())[2].rows == 12


def test_legacy_estimates_leave_what_is_made_of_a_function_unknown():
    builder = Builder()
    mapped = builder.python(builder.source(PAIR, rows=1000))
    kept = builder.python(mapped, "filter")
    grouped = builder.aggregate(kept, ("k",), ("count_all", None))
    lookup = builder.source(schema(k="int64", w="int64"), rows=10)
    builder.join(kept, lookup, on="k")
    builder.join(lookup, kept, on="k")
    builder.union(kept, mapped)
    found = estimate_plan(builder.plan(), flink_estimate)
    unknown = [index for index, each in enumerate(found) if not each.is_size_known]
    assert unknown == [mapped, kept, grouped, 5, 6, 7]
    found = estimate_plan(builder.plan())
    assert all(each.is_size_known for each in found)
    assert [found[index].origin for index in (mapped, kept)] == [
        "rows of the input (map)",
        "0.5 of the input: default for a function",
    ]


def test_keys_of_small_types_and_unknown_ones_multiply_with_those_that_are_known():
    builder = Builder()
    known = {"k": ColumnStatistics(distinct_count=3, heavy_keys=(("1", 0.9),))}
    source = builder.source(schema(k="int64", b="bool", v="int64", w="int64"), rows=10_000, columns=known)
    builder.aggregate(source, ("k", "b"), ("count_all", None))
    builder.aggregate(source, ("k", "v"), ("count_all", None))
    builder.aggregate(source, ("v", "w"), ("count_all", None))
    builder.aggregate(source, (), ("count_all", None))
    _, small, partly, unknown, one = estimate_plan(builder.plan())
    assert (small.rows, small.origin) == (6, "distinct keys")
    assert (partly.rows, partly.origin) == (3000, "rows ** 0.75: distinct v unknown")
    assert (unknown.rows, unknown.origin) == (1000, "rows ** 0.75: distinct v, w unknown")
    assert (one.rows, one.origin) == (1, "one group")
    # after grouping no key is heavy
    assert small.columns["k"].heavy_keys == ()


def test_nothing_is_below_one_row_and_one_byte():
    builder = Builder()
    one = builder.source(schema(b="bool"), rows=1, columns={"b": ColumnStatistics(distinct_count=1)})
    builder.filter(one, call("equal", "b", lit(5)))
    builder.project(one, "b")
    for each in estimate_plan(builder.plan()):
        assert (each.rows, each.size_bytes, each.distinct("b")) == (1, 1, 1)


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


def test_rows_that_are_filtered_do_not_make_fewer_keys():
    """One supplier of ten in one nation, one item of a hundred that is late: one in a thousand is both."""
    builder = Builder()
    keys = {"k": ColumnStatistics(distinct_count=1000)}
    items = builder.filter(builder.source(PAIR, rows=10_000, columns=keys), call("equal", "v", lit(1)))
    others = builder.source(schema(k="int64", w="int64"), rows=1000, columns=keys)
    builder.join(items, builder.filter(others, call("equal", "w", lit(1))), on="k")
    assert last(builder).rows == pytest.approx(1000 * 100 / 1000)


def test_what_is_left_by_an_anti_join_is_its_share_of_all_keys():
    builder = Builder()
    customers = builder.source(PAIR, rows=1000, columns={"k": ColumnStatistics(distinct_count=1000)})
    orders = builder.source(schema(k="int64"), rows=9000, columns={"k": ColumnStatistics(distinct_count=600)})
    builder.join(builder.filter(customers, call("equal", "v", lit(1))), orders, on="k", how=JoinType.ANTI)
    assert last(builder).rows == pytest.approx(40)


def test_groups_that_a_join_asks_for_find_their_partners():
    """A semi join leaves keys of its right side, a join those of the side that has fewer."""
    builder = Builder()
    keys = {"k": ColumnStatistics(distinct_count=1000)}
    items = builder.source(PAIR, rows=10_000, columns=keys)
    parts = builder.source(schema(k="int64", w="int64"), rows=1000, columns=keys)
    few = builder.filter(parts, call("equal", "w", lit(1)))
    of_few = builder.join(items, few, on="k")
    groups = builder.aggregate(builder.join(items, few, on="k", how=JoinType.SEMI), ("k",), ("count_all", None))
    builder.join(of_few, groups, on="k")
    builder.sink(len(builder.nodes) - 1)
    found = estimate_plan(builder.plan())
    assert (found[of_few].rows, found[groups].rows, found[-2].rows) == (1000, 100, 1000)


def test_what_was_estimated_of_a_node_is_of_use_to_the_next_rule_as_long_as_its_inputs_are_the_same(monkeypatch):
    builder = Builder()
    source = builder.source(PAIR, rows=1000)
    below = builder.filter(source, call("less", "k", lit(5)))
    above = builder.filter(below, call("less", "v", lit(5)))
    builder.sink(above)
    estimate, made = FilterEntry.estimate, []
    monkeypatch.setattr(
        FilterEntry,
        "estimate",
        lambda self, node, *rest, **more: made.append(node.id) or estimate(self, node, *rest, **more),
    )
    plan = LogicalPlan(builder.plan())
    first = estimate_below(plan, plan.node(above), {})
    assert estimate_below(plan, plan.node(above), {}) is first
    assert made == [below, above]
    plan.replace(plan.node(below), operator=Filter(call("is_null", "k")))
    assert estimate_below(plan, plan.node(above), {}).rows != first.rows
    assert made == [below, above] * 2


def test_known_costs_compare_by_total_then_by_network():
    assert Costs(network=1) < Costs(network=2)
    assert Costs(network=1, cpu=5) < Costs(network=1, cpu=6)
    assert Costs(network=5, disk=0) < Costs(network=1, disk=100)
    assert not Costs(network=1) < Costs(network=1)


def test_an_unknown_cost_never_wins_by_its_minus_one():
    unknown = Costs(network=UNKNOWN, heuristic_network=10)
    assert Costs(network=1e12, heuristic_network=5) < unknown
    assert not unknown < Costs(network=1e12, heuristic_network=5)
    assert (unknown + Costs(network=3)).network == UNKNOWN
    # and what is known does not win either: the heuristics decide
    assert unknown < Costs(network=0, heuristic_network=20)


def test_a_heavy_key_makes_repartitioning_dearer():
    data = Estimates(1000, 1e6, "test")
    assert repartition_cost(data, 4, 0.0).network == 1e6
    assert repartition_cost(data, 4, 0.2).network == 1e6
    assert repartition_cost(data, 4, 0.9).network == pytest.approx(3.6e6)
    assert broadcast_cost(data, 4).network == 4e6


def test_a_build_side_larger_than_memory_costs_disk():
    build, probe = Estimates(1, 100.0, ""), Estimates(1, 1000.0, "")
    assert hash_join_cost(build, probe, 1, 1, 100).disk == 0
    assert hash_join_cost(build, probe, 1, 1, 50).disk == pytest.approx(2 * 0.5 * 1100)
    # the smaller side is the better one to build
    assert hash_join_cost(build, probe, 1, 1, 10_000) < hash_join_cost(probe, build, 1, 1, 10_000)
