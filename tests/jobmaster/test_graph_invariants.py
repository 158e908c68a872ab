"""After a run-time decision everything that is written is read, and nothing that has begun has changed."""

from __future__ import annotations

import msgspec
import pytest

from engine.adaptive.changes import apply
from engine.adaptive.graph_shape import followers, input_edge, with_data_set, with_edge
from engine.errors import PlanError
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.job_graph import JobGraph
from engine.graph.run_time_decision import SplitSkew, SubtaskRanges
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import ResultPartitionType
from engine.graph.subpartition_share import PARTS, SubpartitionShare, whole_share
from engine.ids import JobId, JobVertexId
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.graph_invariants import check_readers, check_revision, unread
from engine.jobmaster.graph_revision import revise
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.jobmaster.job_simulation import Simulation
from tests.optimizer.plan_building import Builder, ColumnRef, column, schema

BATCH = OptimizerSettings(parallelism=4, execution_mode=ExecutionMode.BATCH)
PIPELINED = OptimizerSettings(parallelism=4, adaptive_bytes_per_subtask=1 << 20)
ROWS = [{"k": row % 3, "v": row} for row in range(12)]


def graph_of(builder: Builder, settings: OptimizerSettings) -> JobGraph:
    return generate_job_graph(optimize(builder.plan(), settings), JobId("a" * 32), "job")


def self_join(how: JoinType = JoinType.CROSS) -> JobGraph:
    """A table and its projection: both branches are stored, the projection runs along with the join."""
    builder = Builder()
    columns = schema(k="int64", v="int64")
    # a source without a limit would be read by each of its uses
    table = builder.source(columns, rows=20, size=800_000, splits=1, path="table", rate_limit=1e9)
    other = builder.project(table, (column("k2"), ColumnRef("k")), (column("v2"), ColumnRef("v")))
    keys = {} if how is JoinType.CROSS else {"left_on": "k", "right_on": "k2"}
    builder.sink(builder.join(table, other, how=how, hint=JoinHint.BROADCAST_HASH_SECOND, **keys))
    return graph_of(builder, PIPELINED)


def shuffled_join() -> JobGraph:
    builder = Builder()
    left = builder.source(schema(k="int64", v="int64"), rows=1e6, path="left")
    right = builder.source(schema(k="int64", w="int64"), rows=1e6, path="right")
    builder.sink(builder.join(left, right, on="k", hint=JoinHint.REPARTITION_HASH_SECOND))
    return graph_of(builder, BATCH)


LEFT, JOIN = JobVertexId(0), JobVertexId(2)


@pytest.mark.parametrize("how", [JoinType.CROSS, JoinType.INNER])
def test_a_broadcast_that_runs_along_with_a_join_follows_it_to_fewer_subtasks(how):
    submitted = self_join(how)
    (broadcast,) = [
        data_set
        for vertex in submitted.vertices
        for data_set in vertex.outputs
        if data_set.partitioner.kind == "BROADCAST"
    ]
    assert broadcast.result_type.is_pipelined, "else this is not the case in question"
    job = Simulation(submitted, {"table": ROWS}, 8, lambda _, rows: [100 * count for count in rows])
    (rows,) = job.run()
    assert [decision.kind for decision in job.decisions] == ["PARALLELISM"]
    assert [each.subpartition_count for each in job.graph.results[broadcast.id].partitions] == [1]
    assert len(rows) == (144 if how is JoinType.CROSS else 48)


@pytest.mark.parametrize("graph", [self_join(), self_join(JoinType.INNER), shuffled_join()])
def test_a_graph_as_it_was_planned_has_a_reader_for_everything(graph):
    assert unread(build_execution_graph(graph)) == []


def test_a_subpartition_that_nobody_reads_is_named():
    graph = build_execution_graph(self_join())
    result = next(each for each in graph.results.values() if each.data_set.partitioner.kind == "BROADCAST")
    result.partitions[0].subpartition_count += 1
    (text,) = unread(graph)
    assert "project" in text and text.endswith("writes 5 subpartitions, and nobody reads number 4")
    with pytest.raises(PlanError, match=r"would never end.*nobody reads number 4.*adaptive\.enabled: false"):
        check_readers(graph)


def test_a_subpartition_that_nobody_writes_and_one_that_two_read_are_named():
    graph = build_execution_graph(shuffled_join())
    partition = graph.results[graph.job_graph.vertex(JOIN).inputs[0].data_set].partitions[1]
    partition.subpartition_count = 3
    assert unread(graph)[0].endswith("writes 3 subpartitions, and number 3 would be read")
    partition.subpartition_count = 4 + 10
    assert unread(graph)[0].endswith("and nobody reads numbers 4, 5, 6, 7, 8, 9, 10, 11")
    partition.subpartition_count = 4
    first, _, *others = partition.consumers
    partition.consumers = [first, first, *others]
    assert unread(graph)[0].endswith("writes 4 subpartitions, and nobody reads number 1")
    stale = build_execution_graph(shuffled_join()).results[partition.data_set.id]
    partition.consumers = [first, stale.partitions[1].consumers[1], *others]
    assert unread(graph)[0].endswith("read by subtasks that are no more")


def test_ranges_and_shares_are_counted_as_what_they_cover():
    planned = shuffled_join()
    fewer = apply(planned, SubtaskRanges((JOIN,), ((0, 1), (1, 4))))
    graph = build_execution_graph(planned)
    revise(graph, fewer)
    assert unread(graph) == []
    hole = msgspec.structs.replace(input_edge(fewer.vertex(JOIN), 0), ranges=((0, 1), (2, 4)))
    assert all("nobody reads number 1" in each for each in unread(build_execution_graph(with_edge(fewer, JOIN, hole))))
    whole = [whole_share(subtask, 4) for subtask in range(4)]
    cut = (
        (SubpartitionShare(0, 0, PARTS + 7),),
        (SubpartitionShare(0, PARTS + 7, 4 * PARTS), whole[1]),
        (whole[2],),
        (whole[3],),
    )
    other = ((whole[0],), (whole[0], whole[1]), (whole[2],), (whole[3],))
    split = apply(planned, SplitSkew(JOIN, (cut, other)))
    graph = build_execution_graph(split)
    assert unread(graph) == []
    partition = graph.results[split.vertex(JOIN).inputs[0].data_set].partitions[2]
    partition.consumers = partition.consumers[:1] + partition.consumers[2:]
    assert unread(graph)[0].endswith("writes 4 subpartitions, and parts of numbers 0, 1 are not read")


def test_what_has_begun_is_not_changed_nor_what_runs_with_it():
    planned = shuffled_join()
    fewer = apply(planned, SubtaskRanges((JOIN,), ((0, 2), (2, 4))))
    check_revision(planned, fewer, {LEFT, JobVertexId(1)})
    with pytest.raises(PlanError, match="has begun, or runs with what has"):
        check_revision(planned, fewer, {JOIN})

    together = self_join()
    producer, join = JobVertexId(1), JobVertexId(2)
    assert together.vertex(producer).outputs[0].result_type is ResultPartitionType.PIPELINED
    changed = apply(together, SubtaskRanges(followers(together, join), ((0, 4),)))
    assert changed.vertex(join).parallelism == 1
    with pytest.raises(PlanError, match="has begun, or runs with what has"):
        check_revision(together, changed, {producer})
    check_revision(together, changed, {LEFT})


def test_a_region_that_has_begun_is_joined_by_nobody():
    planned = shuffled_join()
    data_set = planned.vertex(LEFT).outputs[0]
    piped = with_data_set(planned, msgspec.structs.replace(data_set, result_type=ResultPartitionType.PIPELINED))
    with pytest.raises(PlanError, match="would be another one: parquet source left"):
        check_revision(planned, piped, {LEFT})
    check_revision(planned, piped, {JobVertexId(1)})
