"""Disjunctions: what is pulled out of them is what they mean, and goes where its columns come from."""

from __future__ import annotations

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from engine.expressions.text import expression_text
from engine.graph.expression import Call, ColumnRef, Expression, conjuncts, disjuncts
from engine.graph.plan import Filter, Join, Plan
from engine.graph.said_operators import JoinType
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules import disjunctions
from tests.optimizer.plan_building import Builder, call, lit, schema

LEFT, RIGHT = schema(k="int64", a="int64", b="int64"), schema(key="int64", c="int64", d="int64")
FLAGS = schema(p="bool", q="bool", r="bool")


def is_(name: str, value: int) -> Call:
    return call("equal", name, lit(value))


def both(*parts: Expression | str) -> Call:
    first, *others = parts
    for part in others:
        first = call("and", first, part)
    return first


def either(*parts: Expression | str) -> Call:
    first, *others = parts
    for part in others:
        first = call("or", first, part)
    return first


def joined(predicate: Expression, how: JoinType = JoinType.INNER) -> Plan:
    builder = Builder()
    pair = builder.join(builder.source(LEFT), builder.source(RIGHT), left_on="k", right_on="key", how=how)
    builder.sink(builder.filter(pair, predicate))
    return builder.plan()


def filters_of_sides(plan: Plan) -> list[str]:
    """Predicates directly below the join, left and right; "" where there is none."""
    (join,) = [node for node in plan.nodes if isinstance(node.operator, Join)]
    below = [plan.node(source).operator for source in join.inputs]
    return [expression_text(operator.predicate) if isinstance(operator, Filter) else "" for operator in below]


def test_what_all_branches_say_moves_to_its_table():
    plan = rewrite(joined(either(both(is_("a", 1), is_("c", 1)), both(is_("c", 2), is_("a", 1)))))
    assert filters_of_sides(plan) == ["a == 1", "(c == 1) | (c == 2)"]


def test_each_table_learns_what_the_branches_say_of_it():
    plan = rewrite(joined(either(both(is_("a", 1), is_("c", 2)), both(is_("a", 3), is_("d", 4)))))
    assert filters_of_sides(plan) == ["(a == 1) | (a == 3)", "(c == 2) | (d == 4)"]
    (above,) = [node for node in plan.nodes if isinstance(node.operator, Filter) and len(node.schema.names) == 6]
    assert len(disjuncts(conjuncts(above.operator.predicate)[0])) == 2


def test_a_table_of_which_one_branch_is_silent_keeps_its_rows():
    plan = rewrite(joined(either(both(is_("a", 1), is_("c", 2)), is_("a", 3))))
    assert filters_of_sides(plan) == ["(a == 1) | (a == 3)", ""]


def test_a_side_whose_rows_come_without_partner_keeps_them():
    predicate = either(both(is_("a", 1), is_("c", 2)), both(is_("a", 3), is_("c", 4)))
    assert filters_of_sides(rewrite(joined(predicate, JoinType.LEFT))) == ["(a == 1) | (a == 3)", ""]
    assert filters_of_sides(rewrite(joined(predicate, JoinType.FULL))) == ["", ""]


def test_parts_that_can_raise_are_not_added():
    risky = call("greater", call("divide", lit(6), "a"), lit(2))
    plan = rewrite(joined(either(both(risky, is_("c", 2)), both(is_("a", 3), is_("c", 4)))))
    assert filters_of_sides(plan) == ["", "(c == 2) | (c == 4)"]


def test_rewriting_again_finds_nothing_new():
    once = rewrite(joined(either(both(is_("a", 1), is_("c", 2)), both(is_("a", 3), is_("c", 4)))))
    assert rewrite(once) == once


def value(expression: Expression, row: dict[str, bool | None]) -> bool | None:
    """Kleene's logic, where None is "nobody knows"."""
    if isinstance(expression, ColumnRef):
        return row[expression.name]
    values = [value(argument, row) for argument in expression.arguments]
    decisive = expression.function == "or"
    if decisive in values:
        return decisive
    return None if None in values else not decisive


@hypothesis.given(
    st.recursive(
        st.sampled_from(FLAGS.names).map(ColumnRef),
        lambda parts: st.builds(call, st.sampled_from(["and", "or"]), parts, parts),
    )
)
def test_a_predicate_means_what_it_meant_with_nulls_too(predicate):
    if isinstance(predicate, ColumnRef):
        return
    builder = Builder()
    builder.sink(builder.filter(builder.source(FLAGS), predicate))
    logical = LogicalPlan(builder.plan())
    disjunctions.apply(logical)
    rewritten = logical.node(1).operator.predicate
    for flags in itertools.product([True, False, None], repeat=3):
        row = dict(zip(FLAGS.names, flags, strict=True))
        assert value(rewritten, row) == value(predicate, row)


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.SEMI])
def test_a_condition_says_it_of_both_sides(how):
    builder = Builder()
    condition = either(both(is_("a", 1), is_("c", 2)), both(is_("a", 3), is_("c", 4)))
    sides = builder.source(LEFT), builder.source(RIGHT)
    builder.sink(builder.join(*sides, left_on="k", right_on="key", how=how, condition=condition))
    assert filters_of_sides(rewrite(builder.plan())) == ["(a == 1) | (a == 3)", "(c == 2) | (c == 4)"]
