"""Estimates of rows and bytes for every operator, and costs made of them."""

from __future__ import annotations

import pytest

from engine.graph.plan import CoGroup, Filter, GroupReduce, PythonFunction
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer import column_lineage
from engine.optimizer.estimates import estimate, estimate_below, estimate_plan, flink_estimate
from engine.optimizer.key_ranges import values_met
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.filter import FilterEntry
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


@pytest.mark.parametrize(
    ("bounds", "count"),
    [((1, 500), 500), ((1, 40_000), 9000), ((7, 7), 1), ((False, True), 9000), ((0.0, 1.0), 9000), ((None, 500), 9000)],
)
def test_a_source_has_no_more_keys_than_whole_numbers_between_its_bounds(bounds, count):
    builder = Builder()
    known = ColumnStatistics(distinct_count=9000, minimum=bounds[0], maximum=bounds[1])
    builder.source(PAIR, rows=10_000, columns={"k": known})
    assert last(builder).distinct("k") == count


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
