"""Scans with several uses: who reads for himself, and when storing costs less."""

from __future__ import annotations

import msgspec
import pytest

from engine.graph.plan import Filter, Plan, Source
from engine.graph.source_spec import ColumnStatistics, TextSource
from engine.optimizer.logical_optimizer import rewrite
from tests.optimizer.plan_building import Builder, call, lit, schema

WIDE = schema(k="int64", a="int64", b="int64", s="string")


def scans(plan: Plan) -> list[Source]:
    return [node.operator for node in plan.nodes if isinstance(node.operator, Source)]


def columns_read(plan: Plan) -> list[tuple[str, ...]]:
    return sorted(source.spec.columns for source in scans(plan))


def sums_joined(source_of: str = "parquet", **rest: object) -> Plan:
    """Rows of a table beside the sums of their groups."""
    builder = Builder()
    source = builder.source(WIDE)
    operator = msgspec.structs.replace(builder.nodes[source].operator, **rest)
    if source_of == "text":
        operator = msgspec.structs.replace(operator, spec=TextSource(("f",), operator.spec.splits, WIDE.names))
    builder.nodes[source] = msgspec.structs.replace(builder.nodes[source], operator=operator)
    sums = builder.aggregate(source, ("k",), ("sum", "a"))
    builder.sink(builder.project(builder.join(builder.project(source, "k", "b"), sums, on="k"), "k", "b"))
    return builder.plan()


def test_each_use_reads_its_own_columns():
    plan = rewrite(sums_joined())
    assert columns_read(plan) == [("k", "a"), ("k", "b")]
    assert any("read again: costs less than storing" in source.statistics.origin for source in scans(plan))


def test_a_source_with_a_rate_is_read_once():
    assert len(scans(rewrite(sums_joined(rate_limit=100.0)))) == 1


def test_text_is_parsed_once():
    assert len(scans(rewrite(sums_joined("text")))) == 1


def test_uses_that_do_not_meet_share_a_scan():
    builder = Builder()
    source = builder.source(WIDE)
    builder.sink(builder.project(source, "k"), "one")
    builder.sink(builder.aggregate(source, ("k",), ("sum", "a")), "other")
    assert columns_read(rewrite(builder.plan())) == [("k", "a")]


@pytest.mark.parametrize(("kept_of", "scan_count"), [(2, 2), (100, 1)])
def test_rows_are_stored_where_a_filter_keeps_few(kept_of, scan_count):
    """Half of the rows cost more to store and read twice than another scan; one of a hundred costs less."""
    builder = Builder()
    source = builder.source(WIDE, columns={"a": ColumnStatistics(distinct_count=kept_of)})
    kept = builder.filter(source, call("equal", "a", lit(1)))
    sums = builder.aggregate(kept, ("k",), ("sum", "b"))
    builder.sink(builder.join(builder.project(kept, "k", "b"), sums, on="k"))
    plan = rewrite(builder.plan())
    assert len(scans(plan)) == scan_count
    assert sum(isinstance(node.operator, Filter) for node in plan.nodes) == scan_count


def test_filters_move_into_the_scan_of_their_use():
    builder = Builder()
    source = builder.source(WIDE)
    joined = builder.join(builder.project(source, "k", "b"), builder.aggregate(source, ("k",), ("sum", "a")), on="k")
    builder.sink(builder.filter(joined, call("greater", "b", lit(1))))
    plan = rewrite(builder.plan())
    (kept,) = [node for node in plan.nodes if isinstance(node.operator, Filter)]
    below = plan.node(kept.inputs[0])
    assert isinstance(below.operator, Source)
    assert len(plan.consumers_of(below.id)) == 1


def test_a_table_joined_with_itself_is_read_twice():
    builder = Builder()
    source = builder.source(schema(k="int64"))
    builder.sink(builder.join(source, source, on="k"))
    plan = rewrite(builder.plan())
    assert len(scans(plan)) == 2
