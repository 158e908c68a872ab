"""Invariants of a running job's graph, checked after every run-time decision.

    check_revision(before, after, started)     before it is done: nothing about a region that has begun changes
    unread(graph), check_readers(graph)        after it: everything that is written is read, by the right consumers

    a region that has begun     the same vertices, with the same operators, inputs, parallelism and exchanges: its
                                tasks hold buffers and wait for readers that they were told of
    PIPELINED                   each subpartition of each producer has one reader, and no reader asks for another one;
                                a subpartition without a reader fills up, and its producer waits for ever
    BLOCKING                    each row is read once; or by every subtask, where the input is broadcast or read in
                                ranges that are all of it; or by several, where shares say so

A decision that breaks the first rule is not taken (the plan as it was runs as well). The second one is about the
execution graph that follows, so the job ends with an error there: better than to wait for what never comes. Pure.

Source: own; Flink's adaptive scheduler has the same rule by construction, since it creates a vertex's subtasks when
all of its inputs are finished.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from engine.errors import PlanError
from engine.graph.job_graph import IntermediateDataSet, JobGraph, JobVertex
from engine.graph.pipelined_regions import pipelined_regions
from engine.graph.subpartition_share import PARTS
from engine.ids import JobVertexId
from engine.jobmaster.execution_graph import ExecutionGraph, IntermediateResult
from engine.jobmaster.execution_vertex import ExecutionEdge, IntermediateResultPartition

#: limit of violations that an error names
_NAMED_MAX = 3


def check_revision(before: JobGraph, after: JobGraph, started: Collection[JobVertexId]) -> None:
    """Raise PlanError when a change touches a pipelined region that has begun.

    Args:
        before: the graph that runs.
        after: the one that it should become.
        started: vertices of which some subtask was ever scheduled.
    """
    regions = {frozenset(region.vertices) for region in pipelined_regions(after)}
    for region in pipelined_regions(before):
        if not any(vertex in started for vertex in region.vertices):
            continue
        if frozenset(region.vertices) not in regions:
            raise PlanError(f"a region that has begun would be another one: {_names(before, region.vertices)}")
        for vertex_id in region.vertices:
            if _fixed(before.vertex(vertex_id), before) != _fixed(after.vertex(vertex_id), after):
                raise PlanError(f"{before.vertex(vertex_id).name} has begun, or runs with what has, and would change")


def _names(job_graph: JobGraph, vertices: Iterable[JobVertexId]) -> str:
    return ", ".join(job_graph.vertex(vertex).name for vertex in vertices)


def _fixed(vertex: JobVertex, job_graph: JobGraph) -> JobVertex:
    """Return the part of a started vertex that must not change; how its stored results are read may still change."""
    outputs = tuple(_fixed_output(data_set, job_graph) for data_set in vertex.outputs)
    return msgspec.structs.replace(vertex, outputs=outputs)


def _fixed_output(data_set: IntermediateDataSet, job_graph: JobGraph) -> IntermediateDataSet:
    """Return a data set with as many subpartitions as each producer writes, said or not."""
    if data_set.result_type.is_pipelined or data_set.partitioner.kind == "FORWARD":
        return data_set
    count = data_set.subpartition_count or job_graph.vertex(data_set.consumer).parallelism
    return msgspec.structs.replace(data_set, subpartition_count=count)


def check_readers(graph: ExecutionGraph) -> None:
    """Raise PlanError when something is written and never read, or read and never written."""
    found = unread(graph)
    if found:
        more = f"; {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
        raise PlanError(
            f"a run-time decision left an exchange that would never end: {'; '.join(found[:_NAMED_MAX])}{more}. "
            "This is a defect; with execution.batch.adaptive.enabled: false the job runs as it was planned"
        )


def unread(graph: ExecutionGraph) -> list[str]:
    """Return mismatches between producers and consumers as text; none when the graph is right."""
    found: list[str] = []
    for result in graph.results.values():
        found += _violations(graph, result)
    return found


def _violations(graph: ExecutionGraph, result: IntermediateResult) -> list[str]:
    data_set = graph.job_graph.data_set(result.data_set.id)
    producer, consumer = graph.vertices[data_set.id.producer.index], graph.vertices[data_set.consumer.index]
    where = f"{producer.job_vertex.name} -> {consumer.job_vertex.name}"
    for vertex in (producer, consumer):
        planned = graph.job_graph.vertex(vertex.job_vertex.id)
        if len(vertex.subtasks) != planned.parallelism:
            return [f"{where}: {len(vertex.subtasks)} subtasks of {planned.name}, planned {planned.parallelism}"]
    partitions = [subtask.partitions[data_set.id.output_index] for subtask in producer.subtasks]
    if [id(each) for each in partitions] != [id(each) for each in result.partitions]:
        return [f"{where}: partitions of subtasks that are no more"]
    readers = {id(subtask) for subtask in consumer.subtasks}
    for partition in partitions:
        if any(id(edge.consumer) not in readers for edge in partition.consumers):
            return [f"{where}: read by subtasks that are no more"]
    found = []
    for partition in partitions:
        wrong = _wrong(data_set, partition, len(consumer.subtasks))
        if wrong:
            found.append(f"{where}: {partition.producer.name} {wrong}")
    return found


def _wrong(data_set: IntermediateDataSet, partition: IntermediateResultPartition, consumers: int) -> str:
    """Describe the mismatch between one partition and its readers; "" when there is none."""
    count = partition.subpartition_count
    asked = [_asked(edge) for edge in partition.consumers]
    outside = sorted({index for each in asked for index, _ in each if not 0 <= index < count})
    if outside:
        return f"writes {count} subpartitions, and {_numbers(outside)} would be read"
    whole = [(index, (0, PARTS)) for index in range(count)]
    if not data_set.result_type.is_pipelined:
        if data_set.partitioner.kind == "BROADCAST":
            return "" if len(asked) == consumers and all(asked) else "is broadcast, and not everybody reads it"
        if len(asked) == consumers and all(each == whole for each in asked):
            return ""
        if any(edge.job_edge.shares for edge in partition.consumers):
            return _gaps(count, asked)
    times = [0] * count
    for each in asked:
        for index, _ in each:
            times[index] += 1
    nobody = [index for index, number in enumerate(times) if number == 0]
    several = [index for index, number in enumerate(times) if number > 1]
    if nobody:
        return f"writes {count} subpartitions, and nobody reads {_numbers(nobody)}"
    return f"writes {count} subpartitions, and several read {_numbers(several)}" if several else ""


def _asked(edge: ExecutionEdge) -> list[tuple[int, tuple[int, int]]]:
    """Return (subpartition, part) that a consumer reads, whether there is something in it or not."""
    if edge.parts is not None:
        return list(edge.parts)
    begin = edge.subpartition_index
    return [(index, (0, PARTS)) for index in range(begin, begin + edge.subpartition_count)]


def _gaps(count: int, asked: Sequence[Sequence[tuple[int, tuple[int, int]]]]) -> str:
    """Describe the subpartitions, read in parts, of which a part has no reader."""
    gaps = []
    for subpartition in range(count):
        reached = 0
        for begin, end in sorted(part for each in asked for index, part in each if index == subpartition):
            if begin > reached:
                break
            reached = max(reached, end)
        if reached < PARTS:
            gaps.append(subpartition)
    return f"writes {count} subpartitions, and parts of {_numbers(gaps)} are not read" if gaps else ""


def _numbers(indexes: Sequence[int]) -> str:
    return ("number " if len(indexes) == 1 else "numbers ") + ", ".join(map(str, indexes[:8]))
