"""JobLinks: results that could not be read from another TaskManager, and what follows. A part of ``JobState``.

    why_failed(failure, slot of the reader) ─► the failure with both hosts in it; one that ends the job where no attempt
                                               can help
    to_leave ─► TaskExecutors that the job does without from now on, and why

Which ones is decided in ``broken_links``. Pure.

Held by: tests/jobmaster/test_job_links.py
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from engine.errors import ResourceError
from engine.graph.deployment import FailureInfo
from engine.ids import ResourceId
from engine.jobmaster.broken_links import BrokenLinks
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.slot_pool import AllocatedSlot, FormerSlot
from engine.network_address import plain_host


class JobLinks:
    """Links between the TaskExecutors of one job."""

    def __init__(self, facts: JobFacts) -> None:
        self._facts = facts
        self._links = BrokenLinks()
        #: avoided TaskExecutors that still have tasks of the job
        self._to_leave: set[ResourceId] = set()
        self._why = ""

    def why_failed(self, failure: FailureInfo, reader: AllocatedSlot | FormerSlot) -> FailureInfo:
        """Return the failure of a task that could not read a result, with the hosts of both sides."""
        producer = self._facts.graph.vertex_of(failure.partition.producer) if failure.partition is not None else None
        holder = producer.current.slot if producer is not None else None
        if holder is None or holder.resource_id == reader.resource_id:
            return failure
        text = f"{_place(reader)} cannot read from {_place(holder)}: {failure.message}"
        if self._links.failed(reader.resource_id, holder.resource_id, self._bytes_held):
            self._to_leave |= self._links.avoided - self._facts.pool.unreached
            self._facts.pool.unreached = self._links.avoided
            self._why = text
        if not self._links.is_hopeless(reader.resource_id, holder.resource_id):
            return msgspec.structs.replace(failure, message=text)
        return msgspec.structs.replace(
            failure,
            type_name=ResourceError.__name__,
            message=f"{text} (given up: without one of the two there are too few slots for the job; machines have to "
            "reach each other's taskmanager.data.port)",
            retryable=False,
        )

    def to_leave(self) -> Iterator[tuple[ResourceId, FailureInfo]]:
        """Yield each TaskExecutor that the job begins to do without, and why."""
        while self._to_leave:
            resource_id = self._to_leave.pop()
            message = f"{self._why}; the job goes on without TaskManager {resource_id}"
            yield resource_id, FailureInfo(ResourceError.__name__, message, retryable=True)

    def answered(self, resource_id: ResourceId) -> None:
        """Take note that the JobMaster reaches a TaskExecutor."""
        self._links.answered(resource_id)

    def lost(self, resource_id: ResourceId) -> None:
        """Remove a TaskExecutor that is gone."""
        self._links.lost(resource_id)
        self._facts.pool.unreached = self._links.avoided

    def next_attempts(self) -> None:
        """Take note that what failed runs again."""
        self._links.next_attempts()

    def _bytes_held(self, resource_id: ResourceId) -> int:
        """Return the bytes of results that a TaskExecutor holds and that still have to be read."""
        return sum(
            sum(vertex.current.partition_bytes)
            for vertex in self._facts.graph
            if vertex.current.state is ExecutionState.FINISHED
            and vertex.current.slot is not None
            and vertex.current.slot.resource_id == resource_id
            and vertex.is_needed
        )


def _place(slot: AllocatedSlot | FormerSlot) -> str:
    host = plain_host(slot.address.rpartition("/")[0].rpartition(":")[0])
    return f"TaskManager {slot.resource_id}{f' on {host}' if host else ''}"
