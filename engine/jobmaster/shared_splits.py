"""Shared splits: sources whose subtasks may read each other's splits, since results do not depend on it.

    source ─► filter ─► partial aggregate ══HASH══►            rows of all subtasks meet: yes
    source ─► join with a BROADCAST side ─► project ══HASH══►  any subtask has the whole build side: yes
    source ─► join, groups ─► local top ══GLOBAL══► top        the first rows of all, whatever subtask has them: yes
    source ─► filter ─► sink                                   files are in the order of the source: no
    source ─► sort, limit, function                            the result depends on which subtask had which rows: no

    may_share_splits(job_graph, vertex) -> bool

From the source on to where rows of all subtasks meet there must be nothing that looks at the order of rows, or at rows
together that are not of one split. Whole splits change owners, so what the splits themselves keep together (all rows of
a group, where they were made so) stays together. The first rows of a subtask are looked at together, too, but where the
consumer keeps as many of all, in the same order of all columns, they are the first ones of all rows.

What a subtask read is not the same in another attempt. Therefore all subtasks run again together (callers look at
that), and what they store for others is divided by the rows alone: a stored result of which each consumer reads the
part of one producer ends the sharing as well. Sums of floating point numbers may differ in their last digits from one
run to the next, as they do wherever rows come from several subtasks.

Pure.
Held by: tests/jobmaster/test_shared_splits.py
"""

from __future__ import annotations

from engine.errors import PlanError
from engine.formats.registry import format_of
from engine.graph.job_graph import JobGraph, JobVertex
from engine.graph.operator_descriptor import (
    ExplodeOperator,
    FilterOperator,
    HashAggregateOperator,
    HashJoinOperator,
    KeyFilterOperator,
    ProjectOperator,
    SortOperator,
)
from engine.graph.ship_strategy import SORTED_RUNS
from engine.ids import IntermediateDataSetId

#: operators each of whose rows follows from one row, or from all of them
_BLIND = (
    ProjectOperator | FilterOperator | ExplodeOperator | HashJoinOperator | HashAggregateOperator | KeyFilterOperator
)


def may_share_splits(job_graph: JobGraph, vertex: JobVertex) -> bool:
    """Whether the result is the same, whichever subtask of a vertex reads a split of its source."""
    source = vertex.source
    if source is None or source.is_replicated or source.rate_limit is not None or source.top is not None:
        return False
    try:
        is_shared = vertex.parallelism > 1 and format_of(source.spec).shares_splits(source.spec)
    except PlanError:
        return False  # a package of this format is installed where tasks run, not here
    return is_shared and _is_blind(job_graph, vertex, None)


def _is_blind(job_graph: JobGraph, vertex: JobVertex, shared: IntermediateDataSetId | None) -> bool:
    """Whether a vertex does the same with rows, whichever of its subtasks has them; ``shared`` is where they come."""
    steps = vertex.steps[1 if vertex.source is not None else 0 :]
    if steps and _is_local_top(job_graph, vertex):
        steps = steps[:-1]
    for step in steps:
        if not isinstance(step.operator, _BLIND) or not step.operator.traits.is_repeatable:
            return False
    for edge in vertex.inputs:
        if edge.data_set != shared and job_graph.data_set(edge.data_set).partitioner.kind != "BROADCAST":
            return False
    for data_set in vertex.outputs:
        partitioner = data_set.partitioner
        if partitioner.in_order or partitioner.kind == SORTED_RUNS:
            return False
        if not partitioner.is_pointwise:
            continue
        consumer = job_graph.vertex(data_set.consumer)
        is_beside = partitioner.kind == "FORWARD" and data_set.result_type.is_pipelined
        if not is_beside or not _is_blind(job_graph, consumer, data_set.id):
            return False
    return True


def _is_local_top(job_graph: JobGraph, vertex: JobVertex) -> bool:
    """Whether a vertex ends with the first rows of each subtask, of which its consumers keep the first ones of all."""
    last = vertex.steps[-1]
    if not isinstance(last.operator, SortOperator) or last.operator.limit is None:
        return False
    if {key.column for key in last.operator.keys} != set(last.output_schema.names):
        return False
    return all(_keeps_first_of(last.operator, job_graph.vertex(output.consumer)) for output in vertex.outputs)


def _keeps_first_of(local: SortOperator, consumer: JobVertex) -> bool:
    operator = consumer.chain[0].operator
    if not isinstance(operator, SortOperator) or operator.limit is None or local.limit is None:
        return False
    return consumer.parallelism == 1 and operator.keys == local.keys and operator.limit <= local.limit
