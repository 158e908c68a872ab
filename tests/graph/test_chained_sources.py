"""Which joins read the source of their probe side themselves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from engine.graph.chained_sources import with_chained_sources
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.expression import ColumnRef
from engine.graph.job_graph import JobGraph, JobVertex
from engine.graph.operator_descriptor import HashJoinOperator
from engine.graph.said_operators import JoinHint, JoinType
from engine.ids import JobId
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.scan_planning import SMALL_ROWS
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, column, lit, schema

BROADCAST = JoinHint.BROADCAST_HASH_SECOND


def graph_of(builder: Builder, mode: str = "PIPELINED", parallelism: int = 4) -> JobGraph:
    settings = OptimizerSettings(parallelism=parallelism, execution_mode=ExecutionMode(mode))
    graph = generate_job_graph(optimize(builder.plan(), settings), JobId.random(), "job")
    graph.validate()
    return graph


def joined(between: str = "", hint: JoinHint = BROADCAST, mode: str = "PIPELINED", parallelism: int = 4) -> JobGraph:
    """A large table, with an operator between it and its join with a small one."""
    builder = Builder()
    large = builder.source(schema(k="int64", v="int64"), rows=1e7, path="large")
    small = builder.source(schema(k="int64", w="int64"), rows=1000, path="small")
    if between == "filter":
        large = builder.filter(large, call("less", "v", lit(3)))
    elif between == "project":
        large = builder.project(large, "k", (column("v2"), ColumnRef("v")))
    elif between == "function":
        large = builder.python(large, "map")
    elif between == "limit":
        large = builder.limit(large, 10)
    elif between == "another consumer":
        builder.sink(large, "other")
    elif between == "union":
        large = builder.union(large, builder.source(schema(k="int64", v="int64"), rows=1e7, path="more"))
    builder.sink(builder.join(large, small, on="k", hint=hint))
    return graph_of(builder, mode, parallelism)


def join_of(graph: JobGraph) -> JobVertex:
    return next(vertex for vertex in graph.vertices if isinstance(vertex.chain[0].operator, HashJoinOperator))


@pytest.mark.parametrize("between", ["", "filter", "project"])
@pytest.mark.parametrize("mode", ["PIPELINED", "BATCH"])
@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_join_reads_the_source_beside_it_itself(between, mode, parallelism):
    graph = joined(between, mode=mode, parallelism=parallelism)
    small, join = graph.vertices
    assert join.name.startswith("parquet source large -> ")
    assert join.source == join.feed[0].operator
    assert [step.name for step in join.steps] == join.name.split(" -> ")
    (edge,) = join.inputs
    assert edge.input_index == join.chain[0].operator.first_input
    assert graph.data_set(edge.data_set).consumer == join.id
    assert edge.data_set.producer == small.id
    assert join.is_parallelism_fixed and join.adaptive_join is None


def two_feeds(rows: int, parallelism: int = 1, path: str = "small", **source: Any) -> JobGraph:
    """A join of a table with one of which each row group's rows are known."""
    builder = Builder()
    large = builder.source(schema(k="int64", v="int64"), rows=1e7, path="large")
    small = builder.source(schema(k="int64", w="int64"), rows=rows, path=path, **source)
    node = builder.nodes[small]
    spec = node.operator.spec
    splits = tuple(msgspec.structs.replace(split, row_count=rows // len(spec.splits)) for split in spec.splits)
    spec = msgspec.structs.replace(spec, splits=splits)
    builder.nodes[small] = msgspec.structs.replace(node, operator=msgspec.structs.replace(node.operator, spec=spec))
    filtered = builder.filter(small, call("less", "w", lit(3)))
    builder.sink(
        builder.join(large, filtered, on="k", hint=BROADCAST if parallelism > 1 else JoinHint.OPTIMIZER_CHOOSES)
    )
    return graph_of(builder, parallelism=parallelism)


def test_a_join_builds_its_table_from_a_small_source_that_it_reads_itself():
    (join,) = two_feeds(1000).vertices
    assert [step.operator.spec.paths for step in join.steps[:2]] == [("large",), ("small",)]
    (small,) = join.build_feed
    assert small.operator.is_small
    assert join.inputs == () and join.source == join.feed[0].operator
    assert [step.name for step in join.steps] == join.name.split(" -> ")


@pytest.mark.parametrize(("rows", "parallelism"), [(SMALL_ROWS + 8, 1), (1000, 4)])
def test_a_large_source_or_one_for_several_subtasks_has_a_task(rows, parallelism):
    graph = two_feeds(rows, parallelism)
    assert len(graph.vertices) == 2
    assert not any(vertex.build_feed for vertex in graph.vertices)


@pytest.mark.parametrize("between", ["function", "limit", "another consumer", "union"])
def test_what_does_more_than_look_at_rows_or_feeds_others_stays_a_vertex(between):
    assert join_of(joined(between)).feed == ()


def test_rows_that_travel_are_no_feed():
    assert join_of(joined(hint=JoinHint.REPARTITION_HASH_SECOND)).feed == ()
    assert join_of(joined(mode="BATCH_FORCED")).feed == ()


def test_other_vertices_move_up_and_keep_their_edges():
    builder = Builder()
    node = builder.source(schema(k="int64", v="int64"), rows=1e7, path="large")
    for step in range(2):
        side = builder.source(schema(k="int64", **{f"w{step}": "int64"}), rows=1000, path=f"small {step}")
        node = builder.join(node, side, on="k", hint=BROADCAST, how=JoinType.LEFT)
        node = builder.aggregate(node, ("k",), ("count_all", None))
    builder.sink(node)
    graph = graph_of(builder)
    assert [bool(vertex.feed) for vertex in graph.vertices].count(True) == 1
    assert [vertex.id.index for vertex in graph.vertices] == list(range(len(graph.vertices)))
    read = [edge.data_set for vertex in graph.vertices for edge in vertex.inputs]
    made = [data_set.id for vertex in graph.vertices for data_set in vertex.outputs]
    assert sorted(read) == sorted(made)


def test_a_graph_without_such_a_join_stays_the_same_object():
    graph = joined("function")
    assert with_chained_sources(graph) is graph
