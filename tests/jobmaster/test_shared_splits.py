"""Which sources may have their splits read by any subtask: those whose rows meet before anybody could tell."""

from __future__ import annotations

import msgspec
import pytest

from engine.graph.exchange_mode import ExecutionMode
from engine.graph.job_graph import JobGraph, JobVertex
from engine.graph.operator_descriptor import SourceOperator
from engine.graph.runtime_filter import TopThreshold
from engine.graph.said_operators import JoinHint
from engine.graph.sort_key import SortKey
from engine.graph.source_spec import ArrowSource, FormatSource, ParquetSource
from engine.ids import JobId
from engine.jobmaster.shared_splits import may_share_splits
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, lit, schema

KEYED = schema(k="int64", v="int64")


def graph_of(builder: Builder, mode: str = "PIPELINED") -> tuple[JobGraph, JobVertex]:
    """Return the graph of a plan, and the vertex that reads the large source."""
    settings = OptimizerSettings(parallelism=2, execution_mode=ExecutionMode(mode))
    graph = generate_job_graph(optimize(builder.plan(), settings), JobId.random(), "job")
    (found,) = [vertex for vertex in graph.vertices if "large" in vertex.name.split(" -> ")[0]]
    return graph, found


def shares(builder: Builder, mode: str = "PIPELINED") -> bool:
    """Whether the large source of a plan may share its splits."""
    return may_share_splits(*graph_of(builder, mode))


def large(builder: Builder) -> int:
    return builder.source(KEYED, rows=50_000_000, path="large")


def grouped(builder: Builder, source: int, function: str = "sum") -> Builder:
    builder.sink(builder.aggregate(source, ("k",), (function, "v")))
    return builder


def test_rows_that_are_filtered_and_grouped_may_be_read_by_any_subtask():
    builder = Builder()
    assert shares(grouped(builder, builder.filter(large(builder), call("less", "v", lit(3)))))


def test_so_may_those_that_meet_a_broadcast_side_on_their_way():
    builder = Builder()
    small = builder.source(schema(k="int64", w="int64"), rows=1000, path="small")
    joined = builder.join(large(builder), small, on="k", hint=JoinHint.BROADCAST_HASH_SECOND)
    assert shares(grouped(builder, joined))


@pytest.mark.parametrize("mode", ["PIPELINED", "BATCH"])
def test_so_may_those_that_are_sent_by_their_keys(mode):
    builder = Builder()
    other = builder.source(schema(k="int64", w="int64"), rows=50_000_000, path="other")
    builder.sink(builder.join(large(builder), other, on="k", hint=JoinHint.REPARTITION_HASH_SECOND))
    assert shares(builder, mode)


def test_so_may_those_of_which_the_first_ones_of_all_are_kept():
    builder = Builder()
    small = builder.source(schema(k="int64", w="int64"), rows=1000, path="small")
    joined = builder.join(large(builder), small, on="k", hint=JoinHint.BROADCAST_HASH_SECOND)
    builder.sink(builder.sort(joined, "w", "v", "k", limit=10))
    graph, vertex = graph_of(builder)
    assert may_share_splits(graph, vertex)
    for step, changes in ((0, {"limit": 11}), (0, {"limit": None}), (0, {"keys": ()}), (-1, {"limit": 9})):
        assert not may_share_splits(*with_sort(graph, vertex, {step: changes}))
    fewer = {"keys": vertex.chain[-1].operator.keys[:2]}
    assert not may_share_splits(*with_sort(graph, vertex, {0: fewer, -1: fewer}))


def with_sort(graph: JobGraph, vertex: JobVertex, changes: dict[int, dict[str, object]]) -> tuple[JobGraph, JobVertex]:
    """Change the sort at the end of a vertex (-1), or at the head of its consumer (0)."""
    (output,) = vertex.outputs
    ends = {0: graph.vertex(output.consumer), -1: vertex}
    for step, change in changes.items():
        chain = list(ends[step].chain)
        operator = msgspec.structs.replace(chain[step].operator, **change)
        chain[step] = msgspec.structs.replace(chain[step], operator=operator)
        ends[step] = msgspec.structs.replace(ends[step], chain=tuple(chain))
    made = {end.id: end for end in ends.values()}
    vertices = tuple(made.get(each.id, each) for each in graph.vertices)
    return msgspec.structs.replace(graph, vertices=vertices), ends[-1]


@pytest.mark.parametrize(
    "above",
    [
        lambda builder, source: source,
        lambda builder, source: builder.filter(source, call("less", "v", lit(3))),
        lambda builder, source: builder.sort(source, "v"),
        lambda builder, source: builder.limit(source, 10),
        lambda builder, source: builder.python(source),
        lambda builder, source: builder.aggregate(builder.python(source), ("k",)),
        lambda builder, source: builder.aggregate(source, ("k",), ("first", "v")),
        lambda builder, source: builder.aggregate(builder.limit(source, 10), ("k",), ("sum", "v")),
    ],
    ids=[
        "as they are",
        "filtered",
        "sorted",
        "limited",
        "function",
        "grouped by it",
        "first",
        "limited groups",
    ],
)
def test_rows_whose_order_or_company_can_be_seen_are_read_as_they_were_dealt(above):
    builder = Builder()
    builder.sink(above(builder, large(builder)))
    assert not shares(builder)


def test_a_stored_result_of_which_each_reads_its_own_part_ends_the_sharing():
    builder = Builder()
    source = large(builder)
    other = builder.source(schema(k="int64", w="int64"), rows=50_000_000, path="other")
    both = builder.join(source, other, on="k", hint=JoinHint.BROADCAST_HASH_SECOND)
    grouped(builder, both)
    graph, vertex = graph_of(builder)
    assert may_share_splits(graph, vertex)
    (output,) = vertex.outputs
    assert output.partitioner.kind == "HASH"
    for kind, result_type, is_shared in (
        ("HASH", "BLOCKING", True),
        ("FORWARD", "BLOCKING", False),
        ("RESCALE", "PIPELINED", False),
    ):
        stored = msgspec.structs.replace(
            output,
            result_type=type(output.result_type)(result_type),
            partitioner=msgspec.structs.replace(output.partitioner, kind=kind),
        )
        assert may_share_splits(graph, msgspec.structs.replace(vertex, outputs=(stored,))) == is_shared


PARQUET = ParquetSource((), (), ())


@pytest.mark.parametrize(
    ("changes", "subtasks", "is_shared"),
    [
        ({}, 2, True),
        ({}, 1, False),
        ({"is_replicated": True}, 2, False),
        ({"rate_limit": 10.0}, 2, False),
        ({"top": TopThreshold(3, SortKey("v"), 10, False)}, 2, False),
        ({"spec": msgspec.structs.replace(PARQUET, sorted_by=(SortKey("k"),))}, 2, False),
        ({"spec": ArrowSource((), (), ())}, 2, False),
    ],
    ids=["plain", "one subtask", "replicated", "rate", "first rows", "sorted", "another format"],
)
def test_sources_that_are_not_read_split_by_split_are_read_as_they_were_dealt(changes, subtasks, is_shared):
    builder = Builder()
    graph, vertex = graph_of(grouped(builder, large(builder)))
    head, *rest = vertex.chain
    reading = msgspec.structs.replace(head, operator=SourceOperator(**{"spec": PARQUET, **changes}))
    assert (
        may_share_splits(graph, msgspec.structs.replace(vertex, chain=(reading, *rest), parallelism=subtasks))
        == is_shared
    )


def test_a_source_of_a_format_that_is_not_installed_here_shares_nothing():
    builder = Builder()
    graph, vertex = graph_of(grouped(builder, large(builder)))
    assert may_share_splits(graph, vertex)
    head, *rest = vertex.chain
    spec = FormatSource("elsewhere", (), vertex.source.spec.splits, b"", ("k", "v"))
    step = msgspec.structs.replace(head, operator=SourceOperator(spec))
    assert not may_share_splits(graph, msgspec.structs.replace(vertex, chain=(step, *rest)))
