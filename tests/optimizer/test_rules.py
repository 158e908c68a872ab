"""Rewriting rules: what each may change, and what must stay."""

from __future__ import annotations

import pytest

from engine.graph.expression import Call, Case, ColumnRef, Expression, conjuncts
from engine.graph.plan import Aggregate, Filter, Join, Limit, Plan, PlanNode, Project, Sort, Source
from engine.graph.said_operators import JoinType
from engine.optimizer.expression_rewriting import cannot_raise
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.operator_names import operator_name
from tests.optimizer.plan_building import Builder, call, column, lit, schema

WIDE = schema(k="int64", a="int64", b="int64", s="string")
MAY_RAISE = call("greater", call("divide", lit(6), "a"), lit(2))


def nodes_of(plan: Plan, kind: type) -> list[PlanNode]:
    return [node for node in plan.nodes if isinstance(node.operator, kind)]


def shape(plan: Plan) -> list[str]:
    """Names of the operators, inputs first."""
    return [operator_name(node) for node in plan.nodes]


def sources(plan: Plan) -> list[tuple[str, ...]]:
    return [node.operator.spec.columns for node in nodes_of(plan, Source)]


def predicates_over(plan: Plan, kind: type) -> list[Expression]:
    """Conjuncts of the filters directly above nodes of a kind."""
    return [
        part
        for node in nodes_of(plan, Filter)
        if isinstance(plan.node(node.inputs[0]).operator, kind)
        for part in conjuncts(node.operator.predicate)
    ]


def test_sources_read_only_what_is_used():
    builder = Builder()
    source = builder.source(WIDE)
    kept = builder.filter(source, call("greater", "a", lit(1)))
    builder.sink(builder.project(kept, "k"))
    plan = rewrite(builder.plan())
    assert sources(plan) == [("k", "a")]
    statistics = nodes_of(plan, Source)[0].operator.statistics
    assert statistics.size_bytes == 1000 * 16
    assert statistics.origin == "parquet metadata, 2 of 4 columns"


def test_a_python_function_reads_every_column_of_its_input():
    builder = Builder()
    mapped = builder.python(builder.source(WIDE), "map")
    builder.sink(builder.project(mapped, "k"))
    assert sources(rewrite(builder.plan())) == [("k", "a", "b", "s")]


def test_only_the_columns_before_a_python_function_are_pruned():
    builder = Builder()
    narrow = builder.project(builder.source(WIDE), "k", "b")
    builder.sink(builder.project(builder.python(narrow), "k"))
    assert sources(rewrite(builder.plan())) == [("k", "b")]


def test_counting_rows_reads_the_narrowest_column():
    builder = Builder()
    builder.sink(builder.aggregate(builder.source(schema(s="string", a="int64", c="int32")), (), ("count_all", None)))
    assert sources(rewrite(builder.plan())) == [("c",)]


def test_what_only_a_filter_needs_is_dropped_before_a_join():
    builder = Builder()
    left = builder.filter(builder.source(WIDE), call("greater", "b", lit(1)))
    right = builder.source(schema(k="int64", c="int64", d="int64"))
    builder.sink(builder.project(builder.join(left, right, on="k"), "a", "c"))
    plan = rewrite(builder.plan())
    (join,) = nodes_of(plan, Join)
    assert [plan.node(source).schema.names for source in join.inputs] == [("k", "a"), ("k", "c")]
    assert join.schema.names == ("a", "c")
    assert sources(plan) == [("k", "a", "b"), ("k", "c")]
    # the projection above became the join's own output
    assert shape(plan)[-2:] == ["inner join on k", "parquet sink out"]


def test_safe_parts_of_a_predicate_go_to_the_side_they_are_about():
    builder = Builder()
    left, right = builder.source(WIDE), builder.source(schema(k="int64", c="int64"))
    joined = builder.join(left, right, on="k")
    both = call("equal", "a", "c")
    predicate = call("and", call("and", call("greater", "a", lit(1)), call("is_null", "c")), both)
    builder.sink(builder.filter(joined, predicate))
    plan = rewrite(builder.plan())
    assert predicates_over(plan, Source) == [call("greater", "a", lit(1)), call("is_null", "c")]
    assert predicates_over(plan, Join) == [both]


def test_a_predicate_over_the_key_filters_both_sides():
    builder = Builder()
    left, right = builder.source(WIDE), builder.source(schema(k="int64", c="int64"))
    builder.sink(builder.filter(builder.join(left, right, on="k"), call("equal", "k", lit(3))))
    assert predicates_over(rewrite(builder.plan()), Source) == [call("equal", "k", lit(3))] * 2


@pytest.mark.parametrize(
    ("how", "name", "passes"),
    [
        (JoinType.LEFT, "a", True),
        (JoinType.LEFT, "c", False),
        (JoinType.RIGHT, "a", False),
        (JoinType.RIGHT, "c", True),
        (JoinType.FULL, "a", False),
        (JoinType.FULL, "c", False),
        (JoinType.SEMI, "a", True),
        (JoinType.ANTI, "a", True),
    ],
)
def test_outer_sides_of_joins_are_respected(how, name, passes):
    builder = Builder()
    left, right = builder.source(WIDE), builder.source(schema(k2="int64", c="int64"))
    joined = builder.join(left, right, left_on="k", right_on="k2", how=how)
    builder.sink(builder.filter(joined, call("is_null", name)))
    plan = rewrite(builder.plan())
    assert bool(predicates_over(plan, Source)) is passes
    assert bool(predicates_over(plan, Join)) is not passes


def above(kind: str, predicate: Expression) -> Plan:
    builder = Builder()
    source = builder.source(WIDE)
    lower = {
        "limit": lambda: builder.limit(source, 5),
        "top": lambda: builder.sort(source, "a", limit=5),
        "python": lambda: builder.python(source),
        "sort": lambda: builder.sort(source, "a"),
        "union": lambda: builder.union(source, builder.source(WIDE)),
        "aggregate": lambda: builder.aggregate(source, ("a",), ("count_all", None)),
        "join": lambda: builder.join(source, builder.source(schema(k="int64", c="int64")), on="k"),
        "project": lambda: builder.project(source, "a", (column("twice"), call("add", "b", "b"))),
    }[kind]()
    builder.sink(builder.filter(lower, predicate))
    return rewrite(builder.plan())


@pytest.mark.parametrize("kind", ["limit", "top", "python"])
def test_nothing_is_pushed_past_what_chooses_rows_or_runs_python(kind):
    assert not predicates_over(above(kind, call("is_null", "a")), Source)


@pytest.mark.parametrize("kind", ["sort", "union", "aggregate", "join", "project"])
def test_what_cannot_raise_is_pushed(kind):
    assert predicates_over(above(kind, call("is_null", "a")), Source)


@pytest.mark.parametrize("kind", ["sort", "union", "aggregate", "join", "project"])
def test_what_can_raise_stays(kind):
    assert not predicates_over(above(kind, MAY_RAISE), Source)


def test_a_filter_of_a_computed_column_stays_when_computing_it_can_raise():
    assert not predicates_over(above("project", call("is_null", "twice")), Source)


def test_a_filter_that_can_raise_is_not_combined_with_the_one_that_guards_it():
    builder = Builder()
    guarded = builder.filter(builder.source(WIDE), call("greater", "a", lit(0)))
    builder.sink(builder.filter(guarded, MAY_RAISE))
    assert len(nodes_of(rewrite(builder.plan()), Filter)) == 2


def cross_join_of_two(builder):
    return builder.join(
        builder.source(schema(k="int64", a="int64")), builder.source(schema(j="int64")), how=JoinType.CROSS
    )


@pytest.mark.parametrize("as_one", [True, False], ids=["one predicate", "two filters"])
def test_keys_of_a_join_are_found_behind_what_can_raise(as_one):
    builder = Builder()
    may_raise, is_key = call("less", call("add", "a", "j"), lit(1)), call("equal", "k", "j")
    rows = cross_join_of_two(builder)
    for predicate in [call("and", may_raise, is_key)] if as_one else [may_raise, is_key]:
        rows = builder.filter(rows, predicate)
    builder.sink(rows)
    plan = rewrite(builder.plan())
    (join,) = nodes_of(plan, Join)
    assert join.operator.left_keys == ("k",)
    (above_join,) = nodes_of(plan, Filter)
    assert above_join.operator.predicate == may_raise
    assert rewrite(plan) == plan


def test_a_shared_node_is_not_filtered_for_one_consumer():
    builder = Builder()
    projected = builder.project(builder.source(WIDE), "a", (column("c"), ColumnRef("b")))
    builder.sink(builder.filter(projected, call("is_null", "a")))
    builder.sink(projected, "second")
    assert not predicates_over(rewrite(builder.plan()), Source)


def test_neighbouring_projections_become_one_and_empty_ones_go():
    builder = Builder()
    first = builder.project(builder.source(WIDE), "k", (column("sum"), call("add", "a", "b")))
    renamed = builder.project(first, (column("key"), ColumnRef("k")), (column("total"), ColumnRef("sum")))
    builder.sink(builder.project(renamed, "key", "total"))
    plan = rewrite(builder.plan())
    (project,) = nodes_of(plan, Project)
    assert {each.name: each.expression for each in project.operator.expressions} == {
        "key": ColumnRef("k"),
        "total": call("add", "a", "b"),
    }


def test_work_is_not_done_twice_to_save_a_projection():
    builder = Builder()
    first = builder.project(builder.source(WIDE), (column("sum"), call("add", "a", "b")))
    builder.sink(builder.project(first, (column("x"), call("add", "sum", "sum"))))
    assert len(nodes_of(rewrite(builder.plan()), Project)) == 2


def test_a_limit_makes_a_sort_a_top():
    builder = Builder()
    ordered = builder.project(builder.sort(builder.source(WIDE), "a"), "a", "b")
    builder.sink(builder.limit(builder.limit(ordered, 9), 4))
    plan = rewrite(builder.plan())
    assert [node.operator.limit for node in nodes_of(plan, Sort)] == [4]
    assert not nodes_of(plan, Limit)


def test_a_sort_whose_order_is_lost_goes():
    builder = Builder()
    ordered = builder.filter(builder.sort(builder.source(WIDE), "a"), MAY_RAISE)
    builder.sink(builder.aggregate(ordered, ("k",), ("sum", "a")))
    assert not nodes_of(rewrite(builder.plan()), Sort)


@pytest.mark.parametrize("function", ["first", "last"])
def test_a_sort_before_an_aggregate_that_sees_order_stays(function):
    builder = Builder()
    ordered = builder.sort(builder.source(WIDE), "a")
    builder.sink(builder.aggregate(ordered, ("k",), (function, "a")))
    plan = rewrite(builder.plan())
    assert len(nodes_of(plan, Sort)) == len(nodes_of(plan, Aggregate)) == 1


def test_a_sort_before_a_function_or_a_sink_stays():
    builder = Builder()
    ordered = builder.sort(builder.source(WIDE), "a")
    builder.sink(builder.python(ordered))
    builder.sink(ordered, "second")
    assert len(nodes_of(rewrite(builder.plan()), Sort)) == 1


@pytest.mark.parametrize("function", ["divide", "modulo", "add", "multiply", "negate", "str_upper", "unheard_of"])
def test_functions_that_are_not_known_to_be_safe_may_raise(function):
    assert not cannot_raise(call("is_null", Call(function, (ColumnRef("a"),))), WIDE)


def test_unreachable_nodes_are_dropped():
    builder = Builder()
    source = builder.source(WIDE)
    builder.project(source, "k")
    builder.sink(source)
    assert len(rewrite(builder.plan()).nodes) == 2


@pytest.mark.parametrize(
    ("predicate", "is_safe"),
    [
        (call("greater", "i", lit(3)), True),
        (call("greater", "i", lit(3.5)), False),
        (call("greater", "i", "d"), False),
        (call("greater", "n", lit(3.5)), True),
        (call("greater", "d", lit(3)), True),
        (call("equal", "u", "i"), False),
        (call("equal", "s", lit("x")), True),
        (call("is_null", Case(((call("is_null", "s"), ColumnRef("t")),), ColumnRef("s"))), True),
        (call("equal", Case(((call("is_null", "s"), lit("")),), ColumnRef("s")), lit("x")), True),
        (call("is_null", Case(((call("is_null", "s"), ColumnRef("i")),), ColumnRef("d"))), False),
    ],
)
def test_widening_that_can_fail_for_a_value_counts(predicate, is_safe):
    types = schema(i="int64", n="int32", u="uint64", d="double", s="string", t="string")
    assert cannot_raise(predicate, types) is is_safe


IS_ONE, IS_TWO = call("equal", "a", lit(1)), call("equal", "a", lit(2))


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ((call("or", IS_ONE, IS_TWO), IS_TWO), (IS_TWO,)),
        ((IS_ONE, call("or", call("or", IS_TWO, call("is_null", "b")), IS_ONE)), (IS_ONE,)),
        ((call("is_in", "a", lit(1), lit(2)), IS_TWO), (IS_TWO,)),
        ((call("is_in", "b", lit(1), lit(2)), IS_TWO), (call("is_in", "b", lit(1), lit(2)), IS_TWO)),
        ((call("or", IS_ONE, IS_TWO), call("is_null", "b")), (call("or", IS_ONE, IS_TWO), call("is_null", "b"))),
    ],
)
@pytest.mark.parametrize("is_one", [False, True])
def test_parts_that_others_imply_go(parts, kept, is_one):
    builder = Builder()
    source = builder.source(WIDE)
    if is_one:
        builder.sink(builder.filter(source, call("and", *parts)))
    else:
        builder.sink(builder.filter(builder.filter(source, parts[0]), parts[1]))
    assert predicates_over(rewrite(builder.plan()), Source) == list(kept)
