"""SlotManager: matches requests for slots with the slots that TaskExecutors registered.

    slot     FREE ─ assign ─► PENDING ─ confirm ─► ALLOCATED ─ free ─► FREE
                                └───── reject ─► not listed until the TaskExecutor registers again
             of a TaskExecutor that drains: none is assigned, and none counts as one that a job could have
    request  queued ─ its turn, and all of its slots are free ─► assigned as a whole

Slots are taken from one TaskExecutor after the other, so that tasks of a job find each other in one process; or evenly
(``is_spread``): each from where the smallest part of the slots is taken. Those that a request avoids come last.

Whose turn it is, the queue knows (``job_queue``). A request is assigned wholly or not at all, so two jobs never hold
half of what each of them needs. Pure.

Invariants (``validate``): a slot has at most one allocation, an allocation at most one slot; FREE slots have none.

Source: Flink's SlotManager (FREE, PENDING, ALLOCATED) and its fine-grained matching, here for whole regions; its
LeastUtilizationSlotMatchingStrategy.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

import msgspec

from engine.gateways.job_queue import WaitingJob
from engine.gateways.messages import RequestSlots, SlotHolder, SlotOverview, SlotStatus
from engine.ids import AllocationId, JobId, ResourceId
from engine.resourcemanager.job_queue import JobQueue


class SlotState(StrEnum):
    """A slot as the ResourceManager knows it."""

    FREE = "FREE"
    PENDING = "PENDING"
    ALLOCATED = "ALLOCATED"


class _Slot(msgspec.Struct):
    resource_id: ResourceId
    index: int
    state: SlotState = SlotState.FREE
    allocation_id: AllocationId | None = None
    job_id: JobId | None = None


class SlotAssignment(msgspec.Struct, frozen=True):
    """A slot chosen for a request; the TaskExecutor is to be asked for it."""

    resource_id: ResourceId
    index: int
    allocation_id: AllocationId
    request: RequestSlots


class SlotManager:
    """Slots of all TaskExecutors and requests of all jobs.

    Args:
        running_max: so many jobs have slots at one time; 0: any number.
        user_jobs_max, user_slots_max: the same of one user's jobs, and their slots.
    """

    def __init__(
        self, *, is_spread: bool = False, running_max: int = 0, user_jobs_max: int = 0, user_slots_max: int = 0
    ) -> None:
        self._is_spread = is_spread
        #: waiting requests
        self.queue = JobQueue(running_max, user_jobs_max, user_slots_max, self._held)
        self._slots: dict[tuple[ResourceId, int], _Slot] = {}
        #: TaskExecutors whose slots are assigned no more
        self.draining: set[ResourceId] = set()
        self._job_names: dict[JobId, str] = {}
        self._pending: dict[AllocationId, SlotAssignment] = {}

    # ---- TaskExecutors ----

    def register(self, resource_id: ResourceId, reported: tuple[SlotStatus, ...]) -> None:
        """Take a TaskExecutor's report as the truth about its slots.

        A slot that is free there and PENDING here stays so: the question for it is on its way. What was assigned to a
        slot that another allocation has there is sought elsewhere: that question will be refused.
        """
        listed = {status.index for status in reported}
        for key in [key for key in self._slots if key[0] == resource_id and key[1] not in listed]:
            self._forget(key)
        for status in reported:
            key = (resource_id, status.index)
            slot = self._slots.setdefault(key, _Slot(resource_id, status.index))
            if status.allocation_id is not None:
                if slot.allocation_id != status.allocation_id:
                    self._owe_what_is_pending(slot)
                self._pending.pop(status.allocation_id, None)
                slot.state = SlotState.ALLOCATED
                slot.allocation_id, slot.job_id = status.allocation_id, status.job_id
                if status.job_id is not None:
                    self.queue.note_running(status.job_id)
            elif slot.state is SlotState.ALLOCATED:
                self._set_free(slot)

    def unregister(self, resource_id: ResourceId) -> tuple[JobId, ...]:
        """Remove a TaskExecutor; return the jobs that had slots there."""
        keys = [key for key in self._slots if key[0] == resource_id]
        jobs = {job_id: None for key in keys if (job_id := self._slots[key].job_id) is not None}
        for key in keys:
            self._forget(key)
        self.draining.discard(resource_id)
        return tuple(jobs)

    @property
    def _lasting(self) -> list[_Slot]:
        """Slots, free or not, of TaskExecutors that do not drain."""
        return [slot for slot in self._slots.values() if slot.resource_id not in self.draining]

    # ---- requests ----

    def request(self, request: RequestSlots) -> None:
        """Queue a request; the same one again changes nothing."""
        self._job_names[request.job_id] = request.job_name
        self.queue.add(request)

    def withdraw(self, job_id: JobId, request_id: int | None = None) -> None:
        """Remove a queued request, or (None) a job, which has ended."""
        if request_id is not None:
            self.queue.withdraw(job_id, request_id)
        else:
            self.queue.leave(job_id)
            self._job_names.pop(job_id, None)

    def assign(self) -> tuple[SlotAssignment, ...]:
        """Serve the requests whose turn it is and that fit; their slots become PENDING."""
        assignments: list[SlotAssignment] = []
        if not self.queue:
            return ()
        while (request := self.queue.next_served(self._usable_count, len(self._lasting))) is not None:
            for slot in self._in_order(self._usable(request), request)[: request.count]:
                assignment = SlotAssignment(slot.resource_id, slot.index, AllocationId.random(), request)
                slot.state = SlotState.PENDING
                slot.allocation_id, slot.job_id = assignment.allocation_id, request.job_id
                self._pending[assignment.allocation_id] = assignment
                assignments.append(assignment)
        return tuple(assignments)

    def _usable(self, request: RequestSlots) -> list[_Slot]:
        """Return the free slots that a request takes: what it avoids only where all others together are too few.

        A task that failed for a full disk would fail there again, and soon have failed as often as is allowed.
        """
        lasting = self._lasting
        free = [slot for slot in lasting if slot.state is SlotState.FREE]
        others = sum(slot.resource_id not in request.avoided for slot in lasting)
        if request.avoided and others >= request.count:
            free = [slot for slot in free if slot.resource_id not in request.avoided]
        return sorted(free, key=lambda slot: (slot.resource_id, slot.index))

    def _usable_count(self, request: RequestSlots) -> int:
        return len(self._usable(request))

    def _in_order(self, free: list[_Slot], request: RequestSlots) -> list[_Slot]:
        """Return free slots in the order in which they are taken."""
        counts = Counter(slot.resource_id for slot in self._slots.values())
        taken = counts - Counter(slot.resource_id for slot in free)
        shares: dict[tuple[ResourceId, int], float] = {}
        for slot in free if self._is_spread else ():
            # What that part would be once those before it are taken as well.
            shares[slot.resource_id, slot.index] = taken[slot.resource_id] / counts[slot.resource_id]
            taken[slot.resource_id] += 1
        return sorted(
            free,
            key=lambda slot: (slot.resource_id in request.avoided, shares.get((slot.resource_id, slot.index), 0.0)),
        )

    # ---- answers ----

    def confirm(self, allocation_id: AllocationId) -> None:
        """Record that the TaskExecutor gave the slot; an allocation that is gone is ignored."""
        assignment = self._pending.pop(allocation_id, None)
        if assignment is not None:
            self._slots[assignment.resource_id, assignment.index].state = SlotState.ALLOCATED

    def reject(self, allocation_id: AllocationId) -> None:
        """Record that the TaskExecutor refused: another slot is sought first, this one waits for a registration."""
        assignment = self._pending.get(allocation_id)
        if assignment is not None:
            self._forget((assignment.resource_id, assignment.index))

    def free(self, resource_id: ResourceId, index: int, allocation_id: AllocationId) -> None:
        """Record that a slot was given back; another allocation of the same slot is not touched."""
        slot = self._slots.get((resource_id, index))
        if slot is not None and slot.allocation_id == allocation_id:
            self._pending.pop(allocation_id, None)
            self._set_free(slot)

    def counts_of(self, resource_id: ResourceId) -> tuple[int, int]:
        """Return the number of slots a TaskExecutor has, and how many of them can be assigned."""
        states = [slot.state for slot in self._slots.values() if slot.resource_id == resource_id]
        return len(states), 0 if resource_id in self.draining else states.count(SlotState.FREE)

    def overview(self) -> SlotOverview:
        """Return all slots and their jobs."""
        held = self._held()
        return SlotOverview(
            total_count=len(self._lasting),
            free_count=sum(slot.state is SlotState.FREE for slot in self._lasting),
            task_executor_count=len({slot.resource_id for slot in self._lasting}),
            holders=tuple(SlotHolder(job_id, self._job_names.get(job_id, ""), held[job_id]) for job_id in sorted(held)),
        )

    def short(self) -> frozenset[JobId]:
        """Return the jobs that wait for more slots than there are."""
        return self.queue.short(len(self._lasting))

    def waiting(self) -> dict[JobId, WaitingJob]:
        """Return the jobs that wait and hold no slot, the next one first."""
        holders = {slot.job_id for slot in self._slots.values() if slot.job_id is not None}
        return self.queue.waiting(len(self._lasting), holders)

    def validate(self) -> None:
        """Check the invariants (AssertionError); for tests."""
        allocations = [slot.allocation_id for slot in self._slots.values() if slot.allocation_id is not None]
        assert len(allocations) == len(set(allocations)), "an allocation has two slots"
        for slot in self._slots.values():
            is_free = slot.state is SlotState.FREE
            assert is_free == (slot.allocation_id is None), f"{slot} is FREE and allocated, or neither"
            assert not is_free or slot.job_id is None, f"{slot} is FREE and held by a job"
            is_pending = slot.state is SlotState.PENDING
            assert is_pending == (slot.allocation_id in self._pending), f"{slot} is PENDING without an assignment"

    # ---- inside ----

    def _held(self) -> Counter[JobId]:
        return Counter(slot.job_id for slot in self._slots.values() if slot.job_id is not None)

    def _forget(self, key: tuple[ResourceId, int]) -> None:
        self._owe_what_is_pending(self._slots.pop(key))

    def _owe_what_is_pending(self, slot: _Slot) -> None:
        assignment = self._pending.pop(slot.allocation_id, None) if slot.allocation_id is not None else None
        if assignment is not None:
            # What was assigned and never given is still owed: one slot, before all others.
            self.queue.owe(assignment.request, 1)

    def _set_free(self, slot: _Slot) -> None:
        slot.state = SlotState.FREE
        slot.allocation_id = None
        slot.job_id = None
