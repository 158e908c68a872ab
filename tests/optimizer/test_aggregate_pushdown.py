"""Aggregate pushdown: rows are grouped before a join where that makes far fewer of them."""

from __future__ import annotations

import pytest

from engine.graph.expression import AggregateCall, Case, Cast, ColumnRef, Expression, Literal
from engine.graph.plan import Aggregate, Join, PartialAggregate, Plan, PlanNode, Project, Source
from engine.graph.said_operators import JoinType
from engine.graph.source_spec import ColumnStatistics
from engine.optimizer.explain import explain
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.optimizer import optimize
from engine.optimizer.rules import aggregate_pushdown
from engine.optimizer.safe_numbers import is_safe_call
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, column, lit, schema

SALES = schema(customer="int64", day="int32", price="int32", tax="double")
CUSTOMERS = schema(id="int64", name="string", country="string")
FEW = {"customer": ColumnStatistics(distinct_count=1000), "day": ColumnStatistics(distinct_count=4)}
UNIQUE = {"id": ColumnStatistics(distinct_count=1000)}


def sides(builder: Builder, columns: dict[str, ColumnStatistics] | None = None) -> tuple[int, int]:
    known = FEW if columns is None else columns
    return (
        builder.source(SALES, rows=1e6, columns=known, path="sales.parquet"),
        builder.source(CUSTOMERS, rows=1000, columns=UNIQUE, path="customers.parquet"),
    )


def joined(builder: Builder, how: JoinType = JoinType.INNER, is_turned: bool = False, **rest: object) -> int:
    sales, customers = sides(builder)
    if is_turned:
        return builder.join(customers, sales, left_on="id", right_on="customer", how=how, **rest)
    return builder.join(sales, customers, left_on="customer", right_on="id", how=how, **rest)


def partials(plan: Plan) -> list[PlanNode]:
    return [node for node in plan.nodes if isinstance(node.operator, PartialAggregate)]


def rewritten(builder: Builder, *calls: tuple[str, str | None], keys: tuple[str, ...] = ("name", "day")) -> Plan:
    builder.sink(builder.aggregate(len(builder.nodes) - 1, keys, *calls))
    return rewrite(builder.plan())


def the_aggregate(plan: Plan) -> Aggregate:
    (found,) = (node.operator for node in plan.nodes if isinstance(node.operator, Aggregate))
    return found


@pytest.mark.parametrize("is_turned", [False, True])
def test_rows_are_grouped_by_what_the_join_and_the_groups_look_at(is_turned):
    builder = Builder()
    joined(builder, is_turned=is_turned)
    plan = rewritten(builder, ("sum", "price"), ("count_all", None))
    (partial,) = partials(plan)
    assert partial.operator.keys == ("customer", "day")
    assert partial.schema.names == ("customer", "day", "__state0_0", "__state1_0")
    assert isinstance(plan.node(partial.inputs[0]).operator, Source)
    (join,) = (node for node in plan.nodes if isinstance(node.operator, Join))
    assert partial.id in join.inputs
    assert set(join.schema.names) == {"name", "day", "__state0_0", "__state1_0"}
    assert the_aggregate(plan).of_states
    assert the_aggregate(plan).keys == ("name", "day")
    text = explain(optimize(builder.plan(), OptimizerSettings(parallelism=2)))
    assert "before the join, which gets fewer rows" in text


@pytest.mark.parametrize(
    ("how", "is_turned", "is_pushed"),
    [
        (JoinType.INNER, False, True),
        (JoinType.LEFT, False, True),
        (JoinType.RIGHT, True, True),
        (JoinType.LEFT, True, True),
        (JoinType.RIGHT, False, True),
        # rows of both sides come out with nulls
        (JoinType.FULL, False, False),
    ],
)
def test_one_side_of_an_inner_left_or_right_join_is_grouped(how, is_turned, is_pushed):
    builder = Builder()
    joined(builder, how=how, is_turned=is_turned)
    assert bool(partials(rewritten(builder, ("sum", "price")))) == is_pushed


def test_counts_of_rows_without_a_partner_are_filled_in_above_the_join():
    builder = Builder()
    joined(builder, how=JoinType.LEFT, is_turned=True)
    calls = (("sum", "price"), ("count", "price"), ("count_all", None), ("max", "day"))
    plan = rewritten(builder, *calls, keys=("name",))
    (join,) = (node for node in plan.nodes if isinstance(node.operator, Join))
    (filled,) = (node for node in plan.nodes if isinstance(node.operator, Project) and node.inputs == (join.id,))
    computed = {each.name: each.expression for each in filled.operator.expressions if each.name.startswith("__state")}

    def number(function, name):
        return call("coalesce", name, Cast(call(function, name), b"ipc:int64", "int64"))

    assert computed == {
        "__state0_0": ColumnRef("__state0_0"),
        "__state1_0": number("is_not_null", "__state1_0"),
        "__state2_0": number("is_null", "__state2_0"),
        "__state3_0": ColumnRef("__state3_0"),
    }
    assert all(join.schema.column(name).nullable for name in computed)


@pytest.mark.parametrize(
    ("argument", "is_pushed"),
    [
        (call("add", "price", lit(0.5)), True),
        (call("coalesce", "price", lit(0)), False),
        (call("is_null", "price"), False),
        (Case(((call("is_null", "price"), lit(1)),), lit(0)), False),
        (lit(1), False),
    ],
)
def test_what_has_a_value_of_a_row_of_nulls_is_no_argument_below_a_join_that_adds_such_rows(argument, is_pushed):
    builder = Builder()
    source = joined(builder, how=JoinType.LEFT, is_turned=True)
    builder.project(source, (column("name", "string"), ColumnRef("name")), (column("made", "int32"), argument))
    assert bool(partials(rewritten(builder, ("max", "made"), keys=("name",)))) == is_pushed


@pytest.mark.parametrize(("count", "is_pushed"), [(1000, True), (10**6, False)])
def test_rows_without_a_partner_come_out_of_a_join_with_few_groups_too(count, is_pushed):
    builder = Builder()
    sales = builder.source(SALES, rows=1e6, columns=FEW, path="sales.parquet")
    known = {"id": ColumnStatistics(distinct_count=count)}
    customers = builder.source(CUSTOMERS, rows=count, columns=known, path="customers.parquet")
    builder.join(customers, sales, left_on="id", right_on="customer", how=JoinType.LEFT)
    assert bool(partials(rewritten(builder, ("sum", "price"), keys=("name",)))) == is_pushed


def test_what_is_computed_of_a_side_is_an_argument_below_and_of_both_a_key_above():
    builder = Builder()
    source = joined(builder)
    both = call("less", "day", "id")
    builder.project(source, (column("both", "bool"), both), (column("doubled"), call("add", "price", lit(0.5))))
    plan = rewritten(builder, ("max", "doubled"), keys=("both",))
    (partial,) = partials(plan)
    assert partial.operator.keys == ("customer", "day")
    assert partial.operator.calls[0].argument == call("add", "price", lit(0.5))
    above = [node for node in plan.nodes if isinstance(node.operator, Project) and "both" in node.schema.names]
    assert [node.schema.names for node in above] == [("both", "__state0_0")]


def test_columns_of_a_condition_are_keys_below():
    builder = Builder()
    joined(builder, condition=call("not_equal", "day", "id"))
    (partial,) = partials(rewritten(builder, ("sum", "price"), keys=("name",)))
    assert partial.operator.keys == ("customer", "day")


def test_different_rows_are_groups_too():
    builder = Builder()
    joined(builder)
    (partial,) = partials(rewritten(builder, keys=("name", "country")))
    assert partial.schema.names == partial.operator.keys == ("customer",)


@pytest.mark.parametrize("how", [JoinType.SEMI, JoinType.ANTI])
@pytest.mark.parametrize(("columns", "is_pushed"), [(FEW, True), ({}, False)])
def test_of_rows_that_a_semi_join_asks_the_different_keys_count(how, columns, is_pushed):
    builder = Builder()
    sales, customers = sides(builder, columns)
    bought = builder.join(sales, customers, left_on="customer", right_on="id")
    names = builder.source(schema(who="string"), rows=1e6, path="names.parquet")
    builder.sink(builder.join(names, bought, left_on="who", right_on="name", how=how))
    plan = rewrite(builder.plan())
    assert bool(partials(plan)) == is_pushed
    asking = next(node for node in plan.nodes if isinstance(node.operator, Join) and node.operator.how is how)
    assert isinstance(plan.node(asking.inputs[1]).operator, Aggregate) == is_pushed
    assert plan.node(plan.sinks[0]).schema.names == ("who",)


def test_states_go_below_every_join_where_that_pays():
    builder = Builder()
    source = joined(builder)
    countries = builder.source(schema(code="string", region="string"), rows=50, path="countries.parquet")
    builder.join(source, countries, left_on="country", right_on="code")
    plan = rewritten(builder, ("sum", "price"), keys=("region",))
    assert len(partials(plan)) == 1  # a thousand states are not worth another phase
    assert [isinstance(plan.node(node.inputs[0]).operator, Source) for node in partials(plan)][-1:] == [True]


@pytest.mark.parametrize(("share", "phases"), [(aggregate_pushdown.MERGED_SHARE, 1), (2.0, 2)])
def test_states_are_not_merged_between_joins_where_that_makes_hardly_fewer(monkeypatch, share, phases):
    monkeypatch.setattr(aggregate_pushdown, "MERGED_SHARE", share)
    monkeypatch.setattr(aggregate_pushdown, "ROWS_MIN", 1000.0)
    builder = Builder()
    sales, _ = sides(builder)
    owned = {name: ColumnStatistics(distinct_count=1000) for name in ("customer_id", "owner")}
    owner = builder.source(schema(customer_id="int64", owner="int64"), rows=1000, columns=owned, path="owner.parquet")
    names = {"person": ColumnStatistics(distinct_count=1000)}
    person = builder.source(schema(person="int64", label="string"), rows=1000, columns=names, path="people.parquet")
    joined_once = builder.join(sales, owner, left_on="customer", right_on="customer_id")
    joined_twice = builder.join(joined_once, person, left_on="owner", right_on="person")
    builder.sink(builder.aggregate(joined_twice, ("label", "day"), ("sum", "price")))
    logical = LogicalPlan(builder.plan())
    aggregate_pushdown.apply(logical)
    plan = logical.to_plan()
    assert len(partials(plan)) == phases
    assert any(isinstance(plan.node(node.inputs[0]).operator, Source) for node in partials(plan))
    assert the_aggregate(plan).of_states


@pytest.mark.parametrize(
    ("columns", "call_made", "keys"),
    [
        # nobody knows how many groups there are
        ({}, ("sum", "price"), ("name",)),
        # nearly as many groups as rows
        ({"customer": ColumnStatistics(distinct_count=9e5)}, ("sum", "price"), ("name",)),
        # first values depend on the order of rows; sums of 64 bits may overflow; a key may be -0.0
        (FEW, ("first", "price"), ("name",)),
        (FEW, ("sum", "customer"), ("name",)),
        # of the other side, whose rows are many times as many in the join
        (FEW, ("max", "country"), ("name", "day")),
    ],
)
def test_rows_are_not_grouped_before_a_join(columns, call_made, keys):
    builder = Builder()
    sales, customers = sides(builder, columns)
    builder.join(sales, customers, left_on="customer", right_on="id")
    assert not partials(rewritten(builder, call_made, keys=keys))


def test_a_join_that_others_read_stays():
    builder = Builder()
    source = joined(builder)
    builder.sink(builder.filter(source, call("greater", "price", lit(3))), "other")
    assert not partials(rewritten(builder, ("sum", "price")))


def cast(name: str, type_text: str) -> Cast:
    return Cast(ColumnRef(name), b"ipc", type_text)


def _decimal(name: str, digits: int, scale: int):
    return column(name).__class__(
        name, f"decimal{256 if digits > 38 else 128}({digits}, {scale})", 16, True, True, True, b"ipc"
    )


NUMBERS = schema(i32="int32", i64="int64", f="double").__class__(
    (
        *schema(i32="int32", i64="int64", f="double").columns,
        *(_decimal("d7", 7, 2), _decimal("d38", 38, 2), _decimal("d50", 50, 2)),
    )
)
TWO = Literal(b"ipc", "2.00", None)
DAYS = call("subtract", "i32", "i32")
BETWEEN = call("and", call("greater", DAYS, lit(3)), call("less_equal", DAYS, lit(9)))


@pytest.mark.parametrize(
    ("function", "argument", "argument_type", "is_safe"),
    [
        ("sum", ColumnRef("i32"), "int32", True),
        ("sum", cast("i32", "int64"), "int64", True),
        ("sum", ColumnRef("i64"), "int64", False),
        ("max", ColumnRef("i64"), "int64", True),
        ("avg", ColumnRef("i64"), "int64", True),
        ("sum", call("add", "i32", "i32"), "int64", False),
        ("max", call("add", "i32", "i32"), "int64", True),
        ("max", call("multiply", "i32", "i32"), "int64", False),
        ("max", call("subtract", "i64", lit(1)), "int64", False),
        ("sum", Case(((call("less", call("subtract", "i32", "i32"), lit(3)), lit(1)),), lit(0)), "int64", True),
        ("sum", Case(((call("less", call("subtract", "i64", "i32"), lit(3)), lit(1)),), lit(0)), "int64", False),
        ("sum", Case(((BETWEEN, lit(1)), (call("not", BETWEEN), lit(2))), lit(0)), "int64", True),
        ("sum", Case(((call("less", "f", "i64"), lit(1)),), lit(0)), "int64", False),
        ("sum", call("divide", "d7", "i64"), "double", True),
        ("sum", call("multiply", cast("i32", "decimal128(10, 0)"), "d7"), "decimal128(18, 2)", True),
        ("sum", call("multiply", cast("i64", "decimal128(10, 0)"), "d7"), "decimal128(18, 2)", False),
        ("sum", call("multiply", "d38", "d7"), "decimal128(38, 4)", False),
        ("max", call("multiply", "d38", "d7"), "decimal128(38, 4)", False),
        ("max", call("multiply", "d7", call("multiply", "d7", "d7")), "decimal128(23, 6)", True),
        ("max", call("subtract", call("multiply", "d7", "d7"), "d7"), "decimal128(16, 4)", True),
        ("sum", call("multiply", "d50", "d7"), "decimal256(58, 4)", True),
        ("sum", call("multiply", "d50", "d38"), "decimal256(76, 4)", False),
        ("sum", ColumnRef("d38"), "decimal128(38, 2)", False),
        ("max", cast("d38", "double"), "double", False),
        ("sum", Case(((call("is_null", "d7"), TWO),), ColumnRef("d7")), "decimal128(9, 2)", True),
        ("sum", call("modulo", "i32", "i32"), "int64", False),
        ("count_all", None, "", True),
    ],
)
def test_rows_that_nobody_asked_for_are_aggregated_only_where_that_cannot_fail(
    function, argument: Expression | None, argument_type, is_safe
):
    made = AggregateCall(function, argument, "made")
    assert is_safe_call(made, argument_type, NUMBERS) == is_safe
