"""JobDetails: the vertices of a job, their attempts, edges and times, for REST and the command line. Pure.

Held by: tests/dispatcher/test_cluster_components.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from engine.gateways.job_details import AttemptDetails, InputDetails, VertexDetails
from engine.jobmaster.execution_graph import ExecutionGraph, ExecutionJobVertex
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import Execution

_S = ExecutionState
#: states of subtasks by priority: the first one that occurs is the vertex's; all FINISHED is FINISHED
_MOST_TELLING = (
    _S.FAILED,
    _S.CANCELING,
    _S.CANCELED,
    _S.RECONCILING,
    _S.RUNNING,
    _S.INITIALIZING,
    _S.DEPLOYING,
    _S.SCHEDULED,
)
_DEPLOYING = _S.DEPLOYING.value


def vertex_details(graph: ExecutionGraph) -> tuple[VertexDetails, ...]:
    """Return every vertex of a job with all of its attempts."""
    return tuple([_vertex(vertex, graph) for vertex in graph.vertices])


def vertex_state(states: Collection[ExecutionState]) -> ExecutionState:
    """Return the state that stands for those of all subtasks: what some wait for others to be is RUNNING."""
    for state in _MOST_TELLING:
        if state in states:
            return state
    if _S.FINISHED in states:
        return _S.RUNNING if _S.CREATED in states else _S.FINISHED
    return _S.CREATED


def _vertex(vertex: ExecutionJobVertex, graph: ExecutionGraph) -> VertexDetails:
    subtasks: list[AttemptDetails] = []
    prior: list[AttemptDetails] = []
    states: set[ExecutionState] = set()
    for subtask in vertex.subtasks:
        subtasks.append(_attempt(subtask.subtask_index, subtask.current))
        prior += [_attempt(subtask.subtask_index, each) for each in subtask.prior] if subtask.prior else ()
        states.add(subtask.current.state)
    begins = [each.start_ms for each in (*subtasks, *prior) if each.start_ms >= 0]
    ends = [subtask.end_ms for subtask in subtasks]
    return VertexDetails(
        str(vertex.job_vertex.id),
        vertex.job_vertex.name,
        vertex.job_vertex.parallelism,
        vertex.job_vertex.max_parallelism,
        str(vertex_state(states)),
        min(begins, default=-1),
        max(ends) if ends and min(ends) >= 0 else -1,
        tuple(subtasks),
        tuple(_inputs(vertex, graph)),
        tuple(prior),
    )


def _inputs(vertex: ExecutionJobVertex, graph: ExecutionGraph) -> Iterator[InputDetails]:
    for edge in vertex.job_vertex.inputs:
        data_set = graph.job_graph.data_set(edge.data_set)
        yield InputDetails(str(edge.data_set.producer), str(edge.ship_strategy), str(data_set.result_type))


def _attempt(index: int, execution: Execution) -> AttemptDetails:
    slot = execution.slot
    times, state = execution.timestamps_ms, execution.state
    return AttemptDetails(
        index,
        execution.attempt.attempt_number,
        str(state),
        "" if slot is None else slot.resource_id.value,
        "" if slot is None else slot.address,
        times.get(_DEPLOYING, -1),
        times.get(state, -1) if state.is_terminal else -1,
        times,
        execution.counters,
        execution.failure,
    )
