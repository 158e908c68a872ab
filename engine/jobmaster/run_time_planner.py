"""RunTimePlanner: what the real sizes of finished results change in the plan of a running job.

    planner.replan() -> decisions        after a subtask has finished; the ExecutionGraph is revised when there are some

It collects the facts (sizes of BLOCKING results whose producers have all finished, vertices that have begun), has
``engine.adaptive.decisions`` decide, applies the decisions to the JobGraph and has what has not begun follow.
Before and after it ``graph_invariants`` holds: nothing that has begun changes, and all that is written is read.
``decisions`` are all so far, in order: with the submitted JobGraph they give the one that runs. Pure.

A decision that does not fit is a defect, and harmless: the job runs as it was planned, one warning says why, and
``refused`` keeps the reasons.
"""

from __future__ import annotations

import logging

from engine.adaptive.changes import replay
from engine.adaptive.decisions import decide
from engine.adaptive.graph_shape import DataSetSize
from engine.errors import PlanError
from engine.graph.run_time_decision import RunTimeDecision
from engine.ids import IntermediateDataSetId
from engine.jobmaster.execution_graph import ExecutionGraph, IntermediateResult
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.graph_invariants import check_readers, check_revision
from engine.jobmaster.graph_revision import revise, started_vertices

_log = logging.getLogger(__name__)


class RunTimePlanner:
    """Decisions of one job."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        self.decisions: tuple[RunTimeDecision, ...] = ()
        #: reasons why decisions did not fit, each once
        self.refused: tuple[str, ...] = ()

    def replan(self, finished: ExecutionVertex) -> tuple[RunTimeDecision, ...]:
        """Decide again if ``finished`` was the last producer of a BLOCKING result; return the new decisions.

        PlanError: the graph that follows would never end; the job must not go on.
        """
        graph = self._graph
        if graph.job_graph.adaptive is None:
            return ()
        for partition in finished.partitions:
            if not partition.data_set.result_type.is_pipelined and graph.results[partition.data_set.id].is_finished:
                break
        else:
            return ()
        try:
            decided = decide(graph.job_graph, finished_sizes(graph), started_vertices(graph))
            if not decided:
                return ()
            changed = replay(graph.job_graph, decided)
            check_revision(graph.job_graph, changed, started_vertices(graph))
        except PlanError as error:  # the plan as it is runs as well
            self._refuse(str(error))
            return ()
        revise(graph, changed)
        self.decisions += decided
        check_readers(graph)
        return decided

    def _refuse(self, reason: str) -> None:
        if reason in self.refused:
            return
        self.refused += (reason,)
        _log.warning("job %s keeps its plan: %s", self._graph.job_graph.job_id, reason)
        _log.debug("where", exc_info=True)

    def some_measured(self) -> ExecutionVertex | None:
        """Return a subtask that has a result whose size is known, if there is any."""
        measured = (result for result in self._graph.results.values() if is_measured(result))
        return next((result.partitions[0].producer for result in measured), None)

    def adopt(self, decisions: tuple[RunTimeDecision, ...]) -> None:
        """Apply what an earlier leader of the job decided; PlanError when that does not fit."""
        graph = self._graph
        changed = replay(graph.job_graph, decisions)
        check_revision(graph.job_graph, changed, started_vertices(graph))
        revise(graph, changed)
        check_readers(graph)
        self.decisions += decisions


def is_measured(result: IntermediateResult) -> bool:
    """Whether the real size of a result is known and stays: BLOCKING and finished."""
    return not result.data_set.result_type.is_pipelined and result.is_finished


def finished_sizes(graph: ExecutionGraph) -> dict[IntermediateDataSetId, DataSetSize]:
    """Return the real sizes of the BLOCKING results that are finished."""
    return {data_set: _size(result) for data_set, result in graph.results.items() if is_measured(result)}


def _size(result: IntermediateResult) -> DataSetSize:
    index = result.data_set.id.output_index
    executions = [partition.producer.current for partition in result.partitions]
    stored = [partition.subpartition_bytes for partition in result.partitions]
    # a POINTWISE result has producers with different numbers of subpartitions, which are not added up
    is_regular = len({len(each) for each in stored}) == 1
    return DataSetSize(
        sum(execution.partition_rows[index] for execution in executions if execution.partition_rows),
        sum(execution.partition_bytes[index] for execution in executions if execution.partition_bytes),
        tuple(sum(each) for each in zip(*stored, strict=True)) if is_regular else (),
        sum(size > 0 for each in stored for size in each),
        tuple(stored) if is_regular else (),
    )
