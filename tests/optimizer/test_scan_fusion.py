"""Filters become part of the Parquet source that they are right behind, and projections that only leave columns out."""

from __future__ import annotations

import msgspec
import pytest

from engine.graph.operator_descriptor import FilterOperator, ProjectOperator, SourceOperator
from engine.graph.plan import Source
from engine.graph.source_spec import TextSource
from engine.optimizer.explain import explain
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, column, lit, schema

WIDE = schema(k="int64", a="int64", b="int64", s="string")
FEW = call("less", "a", lit(3))
SETTINGS = OptimizerSettings(parallelism=2)


def operators(builder):
    return [node.descriptor.operator for node in optimize(builder.plan(), SETTINGS).nodes]


def scan(builder):
    """The specification of the one source, and what is behind it."""
    source, *others = operators(builder)
    assert isinstance(source, SourceOperator)
    return source.spec, [type(other) for other in others if isinstance(other, FilterOperator | ProjectOperator)]


def test_a_filter_and_the_columns_that_it_alone_needs_are_the_sources():
    builder = Builder()
    builder.sink(builder.project(builder.filter(builder.source(WIDE), FEW), "k", "b"))
    spec, behind = scan(builder)
    assert (spec.columns, spec.predicate, behind) == (("k", "b"), FEW, [])


def test_a_projection_that_computes_is_given_what_it_computes_with():
    builder = Builder()
    computed = builder.project(builder.filter(builder.source(WIDE), FEW), (column("x"), call("add", "k", "b")))
    builder.sink(computed)
    spec, behind = scan(builder)
    assert (spec.columns, spec.predicate, behind) == (("k", "b"), FEW, [ProjectOperator])


def test_rows_that_are_counted_are_read_with_a_column_of_the_filter():
    builder = Builder()
    builder.sink(builder.aggregate(builder.filter(builder.source(WIDE), FEW), (), ("count_all", None)))
    spec, _ = scan(builder)
    assert (spec.columns, spec.predicate) == (("a",), FEW)


def test_a_source_keeps_a_column_when_nobody_wants_one():
    builder = Builder()
    builder.sink(builder.project(builder.filter(builder.source(WIDE), FEW), (column("x"), lit(1))))
    spec, _ = scan(builder)
    assert (len(spec.columns), spec.predicate) == (1, FEW)


def test_what_has_a_name_is_seen():
    builder = Builder()
    builder.sink(builder.filter(builder.source(WIDE), FEW, name="few"))
    spec, behind = scan(builder)
    assert (spec.predicate, behind) == (None, [FilterOperator])
    builder = Builder()
    builder.sink(builder.project(builder.filter(builder.source(WIDE), FEW), "k", name="keys"))
    spec, behind = scan(builder)
    assert (spec.predicate, spec.columns, behind) == (FEW, ("k",), [ProjectOperator])


def test_rows_that_somebody_else_reads_too_are_not_filtered():
    builder = Builder()
    source = builder.source(WIDE)
    builder.sink(builder.filter(source, FEW), "few")
    builder.sink(source, "all")
    spec, behind = scan(builder)
    assert (spec.predicate, behind) == (None, [FilterOperator])


@pytest.mark.parametrize("is_text", [False, True])
def test_sources_with_a_rate_and_other_formats_keep_their_filters(is_text):
    builder = Builder()
    source = builder.source(WIDE)
    operator = builder.nodes[source].operator
    if is_text:
        changed = msgspec.structs.replace(operator, spec=TextSource(("a.txt",), operator.spec.splits, WIDE.names))
    else:
        changed = msgspec.structs.replace(operator, rate_limit=10.0)
    assert isinstance(changed, Source)
    builder.nodes[source] = msgspec.structs.replace(builder.nodes[source], operator=changed)
    builder.sink(builder.filter(source, FEW))
    assert [type(each) for each in operators(builder)][:2] == [SourceOperator, FilterOperator]


def test_explain_says_what_is_filtered_and_what_is_not_read():
    builder = Builder()
    source = builder.source(WIDE)
    operator = builder.nodes[source].operator
    spec = msgspec.structs.replace(operator.spec, splits=operator.spec.splits[:1], pruned_groups=9)
    pruned = msgspec.structs.replace(operator, spec=spec)
    builder.nodes[source] = msgspec.structs.replace(builder.nodes[source], operator=pruned)
    builder.sink(builder.filter(source, FEW))
    text = explain(optimize(builder.plan(), SETTINGS))
    assert "333 rows, 13.3 KB (0.333 of the input: default for less; of 1 000 rows, parquet metadata)" in text
    assert "filter a < 3\n" in text
    assert "reads 1 of 10 row groups: by their statistics the others have no such row" in text
