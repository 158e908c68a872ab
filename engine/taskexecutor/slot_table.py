"""SlotTable: the slots of one TaskExecutor, and their pages.

    free ─ allocate(job) ─► ALLOCATED ─ activate ─► ACTIVE ─ release ─► RELEASING ─ (last task ended) remove ─► free

ALLOCATED: assigned by the ResourceManager, being offered to the JobMaster. ACTIVE: the JobMaster uses it. All slots
have the same pages: the table of a join that one slot's task has built may outlive it in the place of another slot's,
which takes none (``engine.operators.shared_builds``). Pure.

Source: Flink's TaskSlotTable.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from engine.errors import ResourceError
from engine.gateways.messages import SlotStatus
from engine.ids import AllocationId, ExecutionAttemptId, JobId


class SlotState(StrEnum):
    """State of a slot that is not free."""

    ALLOCATED = "ALLOCATED"
    ACTIVE = "ACTIVE"
    RELEASING = "RELEASING"


class TaskSlot(msgspec.Struct):
    """One slot in use."""

    index: int
    allocation_id: AllocationId
    job_id: JobId
    job_master_address: str
    pages: int
    #: additional pages for a job without Python functions
    spare_pages: int = 0
    state: SlotState = SlotState.ALLOCATED
    attempts: set[ExecutionAttemptId] = msgspec.field(default_factory=set)

    @property
    def is_releasing(self) -> bool:
        """Whether it becomes free as soon as its tasks have ended."""
        return self.state is SlotState.RELEASING


class SlotTable:
    """``slot_count`` slots of ``pages_total`` pages, and of ``spare_total`` more where no Python functions run."""

    def __init__(self, slot_count: int, pages_total: int, spare_total: int = 0) -> None:
        self._count = slot_count
        self._pages_total = pages_total
        self._spare_total = spare_total
        self._slots: dict[int, TaskSlot] = {}

    @property
    def slot_count(self) -> int:
        """All slots, free or not."""
        return self._count

    @property
    def is_idle(self) -> bool:
        """Whether every slot is free."""
        return not self._slots

    @property
    def task_count(self) -> int:
        """Attempts that have not ended."""
        return sum(len(slot.attempts) for slot in self._slots.values())

    @property
    def free_count(self) -> int:
        """Slots that are free."""
        return self._count - len(self._slots)

    def statuses(self) -> tuple[SlotStatus, ...]:
        """Return every slot as it is reported to the ResourceManager."""
        return tuple(
            SlotStatus(index, slot.allocation_id, slot.job_id) if slot else SlotStatus(index)
            for index, slot in ((index, self._slots.get(index)) for index in range(self._count))
        )

    def resize(self, slot_count: int) -> None:
        """Change the number of slots; only when all are free, since their pages depend on it."""
        assert self.is_idle, "slots in use are not resized"
        self._count = slot_count

    def allocate(self, index: int, job_id: JobId, allocation_id: AllocationId, job_master_address: str) -> TaskSlot:
        """Give a free slot to a job; the same allocation again returns the same slot. Raises ResourceError."""
        slot = self._slots.get(index)
        if slot is not None and slot.allocation_id == allocation_id:
            return slot
        if slot is not None or not 0 <= index < self._count:
            raise ResourceError(f"slot {index} of {self._count} is not free")
        pages = self._pages_total // self._count
        spare_pages = (self._pages_total + self._spare_total) // self._count - pages
        slot = TaskSlot(index, allocation_id, job_id, job_master_address, pages, spare_pages)
        self._slots[index] = slot
        return slot

    def find(self, allocation_id: AllocationId) -> TaskSlot | None:
        """Return the slot of an allocation, or None."""
        for slot in self._slots.values():
            if slot.allocation_id == allocation_id:
                return slot
        return None

    def slots_of(self, job_id: JobId) -> tuple[TaskSlot, ...]:
        """Return the slots of a job."""
        return tuple(slot for slot in self._slots.values() if slot.job_id == job_id)

    def add_task(self, allocation_id: AllocationId, job_id: JobId, attempt: ExecutionAttemptId) -> TaskSlot:
        """Put a task into a slot of its job; raises ResourceError when the slot is not there for it."""
        slot = self.find(allocation_id)
        if slot is None or slot.job_id != job_id or slot.state is SlotState.RELEASING:
            raise ResourceError(f"there is no slot with allocation {allocation_id} for job {job_id}")
        slot.state = SlotState.ACTIVE
        slot.attempts.add(attempt)
        return slot

    def remove_task(self, attempt: ExecutionAttemptId) -> TaskSlot | None:
        """Take an ended task out; return its slot when it is RELEASING and empty now."""
        for slot in self._slots.values():
            if attempt in slot.attempts:
                slot.attempts.discard(attempt)
                return slot if slot.state is SlotState.RELEASING and not slot.attempts else None
        return None

    def activate(self, allocation_id: AllocationId) -> None:
        """Record that the JobMaster took the slot."""
        slot = self.find(allocation_id)
        if slot is not None and slot.state is SlotState.ALLOCATED:
            slot.state = SlotState.ACTIVE

    def release(self, slot: TaskSlot) -> bool:
        """Begin to take a slot back; return whether it has no tasks and can be removed."""
        slot.state = SlotState.RELEASING
        return not slot.attempts

    def remove(self, slot: TaskSlot) -> None:
        """Make the slot free."""
        if self._slots.get(slot.index) is slot:
            del self._slots[slot.index]
