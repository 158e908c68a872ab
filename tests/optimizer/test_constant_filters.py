"""Constant filters: what is always true goes, what never has a row goes with what needs its rows."""

from __future__ import annotations

import msgspec
import pyarrow.compute as pc
import pytest

from engine.graph.expression import Literal
from engine.graph.plan import Filter, Operator, Plan, Source, Union
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ColumnStatistics, ComputedStatistics
from engine.optimizer.expression_rewriting import truth_of_constants
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.plan_building import Builder, call, column, lit, schema

PAIR = schema(k="int64", v="int64")
NULL = Literal(b"ipc", "None", None)


def kinds(plan: Plan) -> list[str]:
    """Kinds of operators, "no rows" for a source without splits."""

    def kind(operator: Operator) -> str:
        return "no rows" if isinstance(operator, Source) and not operator.spec.splits else type(operator).__name__

    return [kind(node.operator) for node in plan.nodes]


def test_a_filter_that_is_always_true_goes():
    builder = Builder()
    builder.sink(builder.filter(builder.source(PAIR), lit(True)))
    assert kinds(rewrite(builder.plan())) == ["Source", "Sink"]


def test_of_a_filter_the_part_that_is_always_true_goes():
    builder = Builder()
    wanted = call("greater", "v", lit(1))
    builder.sink(builder.filter(builder.source(PAIR), call("and", lit(True), wanted)))
    plan = rewrite(builder.plan())
    assert [node.operator for node in plan.nodes if isinstance(node.operator, Filter)] == [Filter(wanted)]


@pytest.mark.parametrize("never", [lit(False), NULL, call("and", call("greater", "v", lit(1)), lit(False))])
def test_what_never_has_a_row_is_not_read(never):
    builder = Builder()
    kept = builder.filter(builder.source(PAIR), never)
    builder.sink(builder.sort(builder.aggregate(kept, ("k",), ("sum", "v")), "k"))
    plan = rewrite(builder.plan())
    assert kinds(plan) == ["no rows", "Sink"]
    assert plan.nodes[0].operator.statistics.origin == "no rows: a filter is never true"
    assert plan.nodes[0].schema.names == builder.schema(builder.sinks[0]).names


COMPARED = {
    "equal": (False, True), "not_equal": (True, False), "less": (True, False), "less_equal": (True, True),
    "greater": (False, False), "greater_equal": (False, True),
}  # fmt: skip


@pytest.mark.parametrize(("low", "high"), [("C", "c"), (-2, 10), ("\uffff", "\U00010000")])
@pytest.mark.parametrize("function", COMPARED)
def test_comparisons_of_constants_are_what_arrow_says(function, low, high):
    with_higher, with_same = COMPARED[function]
    assert getattr(pc, function)(low, high).as_py() is with_higher
    assert truth_of_constants(call(function, lit(low), lit(high))) is with_higher
    assert truth_of_constants(call(function, lit(low), lit(low))) is with_same


@pytest.mark.parametrize(
    ("expression", "truth"),
    [
        (call("is_in", lit("a"), lit("b"), lit("a")), True),
        (call("is_in", lit("a"), lit("b"), NULL), None),
        (call("not", call("equal", lit(1), lit(1))), False),
        (call("or", call("equal", "k", lit(1)), call("equal", lit(2), lit(2))), True),
        (call("or", call("equal", lit("x"), lit("y")), call("less", lit(2), lit(2))), False),
        (call("or", call("equal", "k", lit(1)), call("equal", lit(2), lit(3))), None),
        (call("equal", lit(True), lit(1)), None),
        (call("equal", lit("1"), lit(1)), None),
        (call("equal", lit(float("nan")), lit(float("nan"))), None),
        (call("equal", "k", lit(1)), None),
    ],
    ids=str,
)
def test_what_is_known_of_constants(expression, truth):
    assert truth_of_constants(expression) is truth


def test_branches_of_a_union_that_say_another_word_than_is_asked_for_are_not_read():
    builder = Builder()
    branches = [
        builder.project(builder.source(PAIR), (column("which", "string"), lit(word)), "v") for word in ("s", "c", "w")
    ]
    builder.sink(builder.filter(builder.union(*branches), call("equal", "which", lit("c"))))
    assert kinds(rewrite(builder.plan())) == ["Source", "Project", "Sink"]


@pytest.mark.parametrize(
    ("share", "wanted"),
    [(0.0, ["no rows", "Sink"]), (0.0005, ["Source", "Filter", "Sink"])],
)
def test_a_source_of_which_no_row_meets_a_filter_is_not_read(share, wanted):
    builder = Builder()
    source = builder.source(PAIR)
    never, other = call("greater", "v", lit(1)), call("less", "k", lit(9))
    shown = ComputedStatistics(never, ColumnStatistics(heavy_keys=(("true", share),)))
    operator = builder.nodes[source].operator
    statistics = msgspec.structs.replace(operator.statistics, computed=(shown,))
    builder.nodes[source] = msgspec.structs.replace(
        builder.nodes[source], operator=msgspec.structs.replace(operator, statistics=statistics)
    )
    builder.sink(builder.filter(source, call("and", other, never)))
    plan = rewrite(builder.plan())
    assert kinds(plan) == wanted


def test_groups_without_keys_have_a_row_of_no_rows():
    builder = Builder()
    builder.sink(builder.aggregate(builder.filter(builder.source(PAIR), lit(False)), (), ("sum", "v")))
    assert kinds(rewrite(builder.plan())) == ["no rows", "Aggregate", "Sink"]


def test_a_function_of_a_user_sees_that_there_are_no_rows():
    builder = Builder()
    builder.sink(builder.python(builder.filter(builder.source(PAIR), lit(False)), "map_partition"))
    assert kinds(rewrite(builder.plan())) == ["no rows", "PythonFunction", "Sink"]


@pytest.mark.parametrize(
    ("branches", "wanted"),
    [
        ((True, False, True), ["Source", "Source", "Union", "Sink"]),
        ((False, True, False), ["Source", "Sink"]),
        ((False, False), ["no rows", "Sink"]),
    ],
)
def test_a_union_is_of_the_branches_that_have_rows(branches, wanted):
    builder = Builder()
    builder.sink(builder.union(*(builder.filter(builder.source(PAIR), lit(keep)) for keep in branches)))
    plan = rewrite(builder.plan())
    assert kinds(plan) == wanted
    assert [len(node.inputs) for node in plan.nodes if isinstance(node.operator, Union)] == [2] * wanted.count("Union")


@pytest.mark.parametrize(
    ("how", "empty_side", "wanted"),
    [
        (JoinType.INNER, 0, "no rows"),
        (JoinType.INNER, 1, "no rows"),
        (JoinType.SEMI, 0, "no rows"),
        (JoinType.SEMI, 1, "no rows"),
        (JoinType.ANTI, 0, "no rows"),
        (JoinType.ANTI, 1, "Source"),
        (JoinType.LEFT, 0, "no rows"),
        (JoinType.LEFT, 1, "Join"),
        (JoinType.RIGHT, 0, "Join"),
        (JoinType.RIGHT, 1, "no rows"),
        (JoinType.FULL, 0, "Join"),
        (JoinType.FULL, 1, "Join"),
    ],
)
def test_a_join_has_no_rows_without_those_it_needs(how, empty_side, wanted):
    builder = Builder()
    sides = [builder.source(PAIR), builder.source(schema(k="int64", w="int64"))]
    sides[empty_side] = builder.filter(sides[empty_side], lit(False))
    builder.sink(builder.join(*sides, on="k", how=how))
    plan = rewrite(builder.plan())
    assert kinds(plan)[-2] == wanted
    assert ("Join" in kinds(plan)) == (wanted == "Join")


def test_a_full_join_without_rows_on_both_sides_has_none():
    builder = Builder()
    sides = [builder.filter(builder.source(each), lit(False)) for each in (PAIR, schema(k="int64", w="int64"))]
    builder.sink(builder.join(*sides, on="k", how=JoinType.FULL))
    assert kinds(rewrite(builder.plan())) == ["no rows", "Sink"]
