"""Joins with several uses: who does it for himself, and when it is done once for all."""

from __future__ import annotations

from collections import Counter

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from engine.graph.plan import Join, Plan, Source
from engine.graph.source_spec import ColumnStatistics, TextSource
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.interpreter import run_plan
from tests.optimizer.plan_building import Builder, call, column, lit, schema

VALUES = st.sampled_from([None, 0, 1, 1, 2])
COLUMNS = {"parts": ("p", "size"), "offers": ("op", "os", "cost"), "suppliers": ("s", "name")}


def cheapest(part_sizes: float = 1000, source_of: str = "parquet", name: str = "", uses: int = 2) -> Plan:
    """Offers of parts of one size, with their suppliers, beside the least cost of each part."""
    builder = Builder()
    sizes = {"size": ColumnStatistics(distinct_count=part_sizes), "p": ColumnStatistics(distinct_count=20_000)}
    parts = builder.source(schema(p="int64", size="int64"), rows=20_000, path="parts", columns=sizes)
    known = {"op": ColumnStatistics(distinct_count=20_000), "os": ColumnStatistics(distinct_count=1000)}
    offers = builder.source(schema(op="int64", os="int64", cost="int64"), rows=80_000, path="offers", columns=known)
    wide = {"s": ColumnStatistics(distinct_count=1000), "name": ColumnStatistics(average_width_bytes=200.0)}
    suppliers = builder.source(schema(s="int64", name="string"), rows=1000, path="suppliers", columns=wide)
    if source_of == "text":
        node = builder.nodes[suppliers]
        text = TextSource(("suppliers",), node.operator.spec.splits, node.schema.names)
        builder.nodes[suppliers] = msgspec.structs.replace(
            node, operator=msgspec.structs.replace(node.operator, spec=text)
        )
    offered = builder.join(offers, suppliers, left_on="os", right_on="s", name=name)
    few = builder.filter(parts, call("equal", "size", lit(1)))
    of_few = builder.join(few, offered, left_on="p", right_on="op")
    if uses == 1:
        builder.sink(of_few)
        return builder.plan()
    least = builder.aggregate(offered, ("op",), ("min", "cost"))
    renamed = builder.project(least, (column("key"), call("same", "op").arguments[0]), builder.schema(least).names[1])
    builder.sink(builder.join(of_few, renamed, left_on="p", right_on="key"))
    return builder.plan()


def reads_of_offers(plan: Plan) -> list[Source]:
    sources = [node.operator for node in plan.nodes if isinstance(node.operator, Source)]
    return [source for source in sources if source.spec.paths == ("offers",)]


def test_each_use_that_asks_for_few_rows_joins_for_itself():
    plan = rewrite(cheapest())
    assert len(reads_of_offers(plan)) == 2
    assert any("read again: costs less than storing" in source.statistics.origin for source in reads_of_offers(plan))
    first = next(node for node in plan.nodes if isinstance(node.operator, Join))
    assert {"p", "op"} <= set(first.schema.names), "few parts come first"
    assert rewrite(plan) == plan


@pytest.mark.parametrize(
    "rest",
    [
        {"part_sizes": 3.0},  # a third of the offers is asked for
        {"source_of": "text"},  # text is parsed once
        {"name": "offered"},  # who names a join wants to see it
        {"uses": 1},
    ],
)
def test_a_join_is_done_once(rest):
    assert len(reads_of_offers(rewrite(cheapest(**rest)))) == 1


@hypothesis.given(
    st.sampled_from([1000.0, 3.0]),
    st.fixed_dictionaries(
        {
            name: st.lists(st.fixed_dictionaries(dict.fromkeys(columns, VALUES)), min_size=1, max_size=5)
            for name, columns in COLUMNS.items()
        }
    ),
)
def test_the_rows_are_the_same(part_sizes, data):
    plan = cheapest(part_sizes)
    names = plan.node(plan.sinks[0]).schema.names
    found = [run_plan(each, data)[0] for each in (plan, rewrite(plan))]
    shown = [Counter(tuple(row[name] for name in names) for row in rows) for rows in found]
    assert shown[0] == shown[1]
