"""SlotPool: the slots that TaskExecutors gave one job.

    open_request(4) ─► offer * 4 ─► take ─► in use ─► give_back ─► idle ─► take (the next region) | release_idle

A request is for all slots of one pipelined region; what is offered for it is kept for it. When a region has ended its
slots are idle: another region that is ready may take them at once, else they are released, so that no job keeps slots
idle while it waits for more (two jobs would wait for each other). A job that does not keeps them for a moment. The ids
of requests begin after a given one, so that no slot which was meant for a request of an earlier leader is taken for
another.

Pure bookkeeping. Invariant: an allocation is collected, in use or idle, never two of them.

Source: Flink's SlotPool; requests for whole regions are ours.
Held by: tests/jobmaster/test_slot_requests.py
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

import msgspec

from engine.ids import AllocationId, ResourceId


class AllocatedSlot(msgspec.Struct, frozen=True, gc=False):
    """One slot of one TaskExecutor for this job. A journal has its pages under the names of the first version."""

    allocation_id: AllocationId
    resource_id: ResourceId
    #: address of the TaskExecutor, and its data address ("" in one process)
    address: str
    data_address: str
    #: number of pages for all operators in the slot
    pages: int = msgspec.field(name="managed_pages")
    #: additional pages for a job without Python functions
    spare_pages: int = msgspec.field(default=0, name="lent_pages")


class FormerSlot(msgspec.Struct, frozen=True, gc=False):
    """The place of attempts whose region has ended: what is left of their slots, one for each TaskExecutor."""

    resource_id: ResourceId
    address: str
    data_address: str


class _SlotRequest(msgspec.Struct):
    count: int
    collected: dict[AllocationId, AllocatedSlot] = msgspec.field(default_factory=dict)


class SlotPool:
    """Collected, used and idle slots of a job."""

    def __init__(self, last_request_id: int = 0) -> None:
        self._requests: dict[int, _SlotRequest] = {}
        self._last_request_id = last_request_id
        #: requests that have all of their slots, and those that have some
        self._complete: set[int] = set()
        self._incomplete: set[int] = set()
        self._idle: dict[AllocationId, AllocatedSlot] = {}
        self._used: dict[AllocationId, AllocatedSlot] = {}
        #: TaskExecutors that may be the cause of failures, and those that others cannot read from
        self.suspected: set[ResourceId] = set()
        self.unreached: frozenset[ResourceId] = frozenset()
        #: TaskExecutors that end as soon as nothing is left on them
        self.draining: set[ResourceId] = set()

    @property
    def avoided(self) -> frozenset[ResourceId]:
        """TaskExecutors whose idle slots are rather given back than used again."""
        return self.unreached | self.suspected | self.draining

    @property
    def slots(self) -> tuple[AllocatedSlot, ...]:
        """All slots of the job."""
        collected = [slot for request in self._requests.values() for slot in request.collected.values()]
        return (*collected, *self._idle.values(), *self._used.values())

    @property
    def claimed(self) -> int:
        """Number of slots that the job has or has requested."""
        requested = sum(request.count for request in self._requests.values())
        return requested + len(self._idle) + len(self._used)

    @property
    def incomplete(self) -> frozenset[int]:
        """Requests that have some of their slots, but not all."""
        return frozenset(self._incomplete)

    @property
    def has_slots(self) -> bool:
        """Whether there may be slots for a region."""
        return bool(self._idle or self._complete)

    @property
    def has_idle(self) -> bool:
        """Whether there are slots that no request collected."""
        return bool(self._idle)

    @property
    def has_avoided(self) -> bool:
        """Whether idle slots are on a TaskExecutor that is avoided."""
        avoided = self.avoided
        return bool(avoided) and any(slot.resource_id in avoided for slot in self._idle.values())

    @property
    def complete(self) -> frozenset[int]:
        """Requests that have all of their slots."""
        return frozenset(self._complete)

    @property
    def awaits_slots(self) -> bool:
        """Whether a request has not all of its slots."""
        return len(self._complete) < len(self._requests)

    @property
    def outstanding(self) -> frozenset[int]:
        """Requests of whose slots some have not come."""
        return frozenset(each for each, request in self._requests.items() if len(request.collected) < request.count)

    def open_request(self, count: int) -> int:
        """Begin to collect slots; return the request's id."""
        self._last_request_id += 1
        self._requests[self._last_request_id] = _SlotRequest(count)
        return self._last_request_id

    def offer(self, request_id: int, slot: AllocatedSlot) -> bool:
        """Collect a slot for a request; return False when the request is closed or has all of its slots."""
        request = self._requests.get(request_id)
        if request is None:
            return False
        if slot.allocation_id not in request.collected and len(request.collected) == request.count:
            return False
        request.collected[slot.allocation_id] = slot
        self._note(request_id)
        return True

    def _note(self, request_id: int) -> None:
        """Take note of what a request has by now, or that it is no more."""
        request = self._requests.get(request_id)
        self._complete.discard(request_id)
        self._incomplete.discard(request_id)
        if request is not None and len(request.collected) == request.count:
            self._complete.add(request_id)
        elif request is not None and request.collected:
            self._incomplete.add(request_id)

    def close_request(self, request_id: int) -> bool:
        """Remove a request, its slots becoming idle; return whether some were still outstanding."""
        request = self._requests.pop(request_id, None)
        if request is None:
            return False
        self._note(request_id)
        self._idle |= request.collected
        return len(request.collected) < request.count

    def take(self, count: int, request_id: int | None) -> tuple[AllocatedSlot, ...] | None:
        """Return ``count`` slots, now in use: those of the request when it has them all, else idle ones; or None."""
        request = self._requests.get(request_id) if request_id is not None else None
        avoided = self.avoided
        unavoided = (slot for slot in self._idle.values() if slot.resource_id not in avoided)
        source, usable = self._idle, list(islice(unavoided, count))
        if request is not None and len(request.collected) == request.count == count:
            source, usable = request.collected, list(request.collected.values())
        elif len(usable) < count:
            return None
        taken = tuple(usable[:count])
        for slot in taken:
            del source[slot.allocation_id]
            self._used[slot.allocation_id] = slot
        if request is not None and source is request.collected:
            assert request_id is not None
            del self._requests[request_id]
            self._note(request_id)
        return taken

    def adopt(self, slot: AllocatedSlot) -> None:
        """Take note of a slot that is in use already."""
        self._used[slot.allocation_id] = slot

    def keep(self, resource_id: ResourceId, held: Collection[AllocationId], *, is_draining: bool = False) -> None:
        """Remove the slots in use of a TaskExecutor that it does not hold any more; note whether it drains."""
        if is_draining:
            self.draining.add(resource_id)
        self._used = {key: slot for key, slot in self._used.items() if slot.resource_id != resource_id or key in held}

    def discard(self, allocation_id: AllocationId) -> None:
        """Remove a slot in use: it does not come back."""
        self._used.pop(allocation_id, None)

    def give_back(self, slot: AllocatedSlot) -> None:
        """Make a used slot idle; a slot that is gone stays gone."""
        if self._used.pop(slot.allocation_id, None) is not None:
            self._idle[slot.allocation_id] = slot

    def release_idle(self) -> tuple[AllocatedSlot, ...]:
        """Remove all idle slots and return them."""
        released = tuple(self._idle.values())
        self._idle.clear()
        return released

    def remove_task_executor(self, resource_id: ResourceId) -> tuple[int, ...]:
        """Remove all slots of a TaskExecutor; return the requests that lost some."""
        self.draining.discard(resource_id)
        hurt = []
        for request_id, request in self._requests.items():
            kept = {key: slot for key, slot in request.collected.items() if slot.resource_id != resource_id}
            if len(kept) < len(request.collected):
                request.collected = kept
                self._note(request_id)
                hurt.append(request_id)
        self._idle = {key: slot for key, slot in self._idle.items() if slot.resource_id != resource_id}
        self._used = {key: slot for key, slot in self._used.items() if slot.resource_id != resource_id}
        return tuple(hurt)
