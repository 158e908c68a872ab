"""Coarser groups from finer ones: of several aggregates over the same rows, one reads the groups of another."""

from __future__ import annotations

from engine.graph.plan import Aggregate, PartialAggregate, Plan, PlanNode, Source
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.plan_building import Builder, schema

ROWS = schema(a="int64", b="int64", v="int64")


def rewritten(*groups: tuple[tuple[str, ...], tuple[str, str | None]]) -> Plan:
    builder = Builder()
    source = builder.source(ROWS)
    for number, (keys, call) in enumerate(groups):
        builder.sink(builder.aggregate(source, keys, call), f"out{number}")
    return rewrite(builder.plan())


def reads(plan: Plan) -> dict[tuple[str, ...], PlanNode]:
    """By the keys of an aggregate what it reads."""
    return {
        node.operator.keys: plan.node(node.inputs[0]) for node in plan.nodes if isinstance(node.operator, Aggregate)
    }


def test_each_set_of_a_rollup_reads_the_one_before():
    total = ("sum", "v")
    plan = rewritten((("a",), total), (("a", "b"), total), ((), total))
    found = reads(plan)
    assert [found[keys].operator.keys for keys in (("a", "b"), ("a",), ())] == [("a", "b"), ("a",), ("a",)]
    assert all(node.operator.of_states for node in plan.nodes if isinstance(node.operator, Aggregate))
    finest, coarser = found["a", "b"], found["a",]
    assert (finest.operator.of_states, coarser.operator.of_states) == (False, True)
    assert coarser.inputs == (finest.id,)
    assert finest.schema.names == ("a", "b", "__state0_0")
    assert coarser.schema.names == ("a", "__state0_0")
    assert sum(isinstance(node.operator, PartialAggregate) for node in plan.nodes) == 2


def test_sets_that_are_no_parts_of_each_other_read_the_finest_or_the_rows():
    total = ("max", "v")
    found = reads(rewritten((("a", "b"), total), (("a",), total), (("b",), total)))
    assert [found[keys].operator.keys for keys in (("a",), ("b",))] == [("a", "b"), ("a", "b")]
    found = reads(rewritten((("a",), total), (("b",), total)))
    assert [type(node.operator) for node in found.values()] == [Source, Source]


def test_other_aggregates_and_first_values_read_the_rows():
    for calls in ((("sum", "v"), ("max", "v")), (("sum", "v"), ("sum", "b")), (("first", "v"), ("first", "v"))):
        found = reads(rewritten((("a", "b"), calls[0]), (("a",), calls[1])))
        assert [type(node.operator) for node in found.values()] == [Source, Source]
