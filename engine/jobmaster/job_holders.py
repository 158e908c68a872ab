"""JobHolders: the TaskExecutors that may have something of a job: slots, tasks, results. A part of ``JobState``.

    gave(slots' TaskExecutor) ─► is watched ─► lost: its slots are gone ─► gave slots again: it ends what it ran before

Pure.

Held by: tests/jobmaster/test_job_state.py
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.gateways.messages import FreeSlot, ReleaseJob
from engine.ids import AllocationId, ResourceId
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_instruction import Forget, Instruction, Tell, Watch


class JobHolders:
    """TaskExecutors of one job. ``out`` takes the instructions."""

    def __init__(self, facts: JobFacts, out: list[Instruction]) -> None:
        self._facts = facts
        self._out = out
        #: addresses of TaskExecutors of an earlier leader's job, until they have been asked
        self._former: Mapping[ResourceId, str] | None = None
        self._watched: dict[ResourceId, str] = {}
        #: slots on lost TaskExecutors
        self._lost: dict[ResourceId, list[AllocationId]] = {}

    @property
    def addresses(self) -> tuple[str, ...]:
        """Addresses of all TaskExecutors that may hold anything of the job."""
        return tuple((self._watched if self._former is None else self._former).values())

    def recover(self) -> None:
        """Take note that the job may lie on any TaskExecutor that an earlier leader used."""
        self._former = self._facts.task_executors

    def reattached(self, resource_ids: Mapping[ResourceId, object]) -> None:
        """Take note of those that have answered; they are watched already."""
        self._former = None
        self._watched = {each: self._facts.task_executors[each] for each in resource_ids}

    def gave(self, resource_id: ResourceId, address: str) -> None:
        """Watch a TaskExecutor whose slots are taken."""
        if resource_id not in self._watched:
            self._watched[resource_id] = address
            self._out.append(Watch(resource_id, address))

    def is_back(self, resource_id: ResourceId, address: str) -> None:
        """Make a TaskExecutor end what it ran when it was lost: its slots can be used again."""
        for allocation_id in self._lost.pop(resource_id, ()):
            self._out.append(Tell(address, FreeSlot(allocation_id)))

    def leave(self, resource_id: ResourceId) -> None:
        """Make an existing TaskExecutor drop what it has of the job."""
        address = self._watched.get(resource_id)
        if address is not None:
            self._out.append(Tell(address, ReleaseJob(self._facts.graph.job_graph.job_id)))

    def lose(self, resource_id: ResourceId) -> frozenset[int]:
        """Take note of a loss; return the slot requests that are to be asked anew."""
        pool = self._facts.pool
        self._watched.pop(resource_id, None)
        self._out.append(Forget(resource_id))
        slots = [slot.allocation_id for slot in pool.slots if slot.resource_id == resource_id]
        self._lost.setdefault(resource_id, []).extend(slots)
        # What is missing of the others may have been meant to come from there.
        return frozenset(pool.remove_task_executor(resource_id)) | pool.incomplete
