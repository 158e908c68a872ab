"""JobScheduling: slots are asked for, regions start, tasks are sent. A part of ``JobState``.

    regions that are ready ─► slots: of the pool, else asked for ─► Scheduled is durable in the journal ─► Deploy

A task is sent when the next leader would know where: what it does not know of is cancelled by its TaskExecutor. A part
of the slots of a region that does not become all of them is given back after a while and asked for anew, from the same
place in the queue: two jobs that each hold a part of what they need would wait for each other.

The subtasks of a stage rarely end at one time, and the next stage begins when the last of them has. So slots of a job
in which nothing waits for more are kept for a moment, ``IDLE_S``: to give one back and ask for it anew takes five
messages, and the next task has to wait for them.

Pure.

Held by: tests/jobmaster/test_job_state.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from engine.errors import MemoryBudgetError, SlotTimeoutError
from engine.gateways.failure_info import failure_info
from engine.gateways.job_queue import JobTurn
from engine.gateways.messages import FreeSlot, OfferSlots, RequestSlots, SlotOverview, SubmitTasks, WithdrawSlotRequests
from engine.graph.deployment import FailureInfo, TaskDeploymentDescriptor, TaskReport
from engine.ids import AllocationId
from engine.jobmaster.deployment import ProducerPlaces, build_descriptor
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.job_event import BoundsChosen, Scheduled, ScheduledAttempt
from engine.jobmaster.job_facts import JobFacts
from engine.jobmaster.job_instruction import (
    AwaitJournal,
    Deploy,
    Instruction,
    Tell,
    TellResourceManager,
    Timer,
    WriteDown,
)
from engine.jobmaster.job_timers import JobTimers
from engine.jobmaster.range_bounds import choose_bounds
from engine.jobmaster.scheduler import RegionRun, SchedulingRegion
from engine.jobmaster.slot_pool import AllocatedSlot
from engine.jobmaster.slot_timeout import slot_timeout_text

#: seconds for which some of a region's slots are kept while others are missing
COLLECTING_S: Final = 10.0
#: seconds for which idle slots are kept for regions that wait for the results of others
IDLE_S: Final = 0.2
#: tasks in one message
TASKS_MAX: Final = 64


class JobScheduling:
    """Regions, slots and tasks of one job.

    Args:
        out: takes the instructions.
        address: of the JobMaster, to which slots are offered and tasks report.
        turn: place of the job among those that wait for slots.
        slot_timeout_s: how long the job waits for slots that the cluster does not have.
        slots_max: so many slots the job may have at one time; 0: any number.
    """

    def __init__(
        self,
        facts: JobFacts,
        out: list[Instruction],
        timers: JobTimers,
        address: str,
        turn: JobTurn,
        slot_timeout_s: float,
        slots_max: int = 0,
    ) -> None:
        self._facts = facts
        self._out = out
        self._timers = timers
        self._address = address
        self._turn = turn
        self._slot_timeout_s = slot_timeout_s
        self._slots_max = slots_max
        #: True if no slot of the cluster fits any request of the job
        self.is_short = False
        #: runs of regions whose slots may not be durable in the journal, by the batch that they were written in
        self._unwritten: dict[int, list[tuple[SchedulingRegion, RegionRun | None]]] = {}
        self._last_batch = 0
        #: requests that were made more than once, of which the ResourceManager may know another one
        self._repeated: set[int] = set()
        self._places = ProducerPlaces()

    # ---- regions and tasks ----

    def start_regions(self) -> None:
        """Start the regions that have their slots, and write down which."""
        facts = self._facts
        if not facts.pool.has_slots:
            return
        started = facts.scheduler.start_regions(facts.pool, facts.clock)
        for region in started:
            if region.request_id is not None:
                is_open = facts.pool.close_request(region.request_id)
                if is_open or region.request_id in self._repeated:
                    self._withdraw(region.request_id)
            self._write_down(region)
        if started:
            self._last_batch += 1
            self._unwritten[self._last_batch] = [(region, region.run) for region in started]
            facts.scheduler.hold(started)
            self._out.append(AwaitJournal(self._last_batch))

    def _write_down(self, region: SchedulingRegion) -> None:
        for data_set, bounds in choose_bounds(region.subtasks):
            self._out.append(WriteDown(BoundsChosen(data_set, bounds)))
        placed = [(each.current.attempt, each.current.slot) for each in region.subtasks]
        attempts = tuple(ScheduledAttempt(attempt, slot) for attempt, slot in placed if isinstance(slot, AllocatedSlot))
        self._out.append(WriteDown(Scheduled(attempts, self._facts.clock.wall_ms())))

    def written(self, batch: int) -> None:
        """Take note that the regions of a batch are durable in the journal."""
        self._facts.scheduler.let_go(region for region, run in self._unwritten.pop(batch) if region.run is run)

    def deploy(self) -> TaskReport | None:
        """Send the tasks whose time has come; where one cannot run in its slot send none, and return its report."""
        facts, scheduler = self._facts, self._facts.scheduler
        descriptors = []
        deployable = scheduler.deployable()
        if not deployable:
            return None
        self._places.begin(facts.graph.version)
        for vertex in deployable:
            region = scheduler.region_of(vertex)
            try:
                staging = facts.staging or {}
                known = region.run.described if region.run is not None else None, self._places
                task = build_descriptor(
                    vertex, facts.graph.job_graph, region.subtasks, staging, facts.held_states, *known
                )
            except MemoryBudgetError as error:
                return refused(vertex, failure_info(error))
            descriptors.append((vertex, task))
        self._send(descriptors)
        return None

    def _send(self, tasks: Iterable[tuple[ExecutionVertex, TaskDeploymentDescriptor]]) -> None:
        """Send tasks, those that go to one TaskExecutor together."""
        by_address: dict[str, list[TaskDeploymentDescriptor]] = defaultdict(list)
        for vertex, descriptor in tasks:
            execution = vertex.current
            assert execution.slot is not None, f"{vertex.name} has no slot"
            execution.transition(ExecutionState.DEPLOYING, self._facts.clock)
            by_address[execution.slot.address].append(descriptor)
        for address, descriptors in by_address.items():
            for begin in range(0, len(descriptors), TASKS_MAX):
                part = tuple(descriptors[begin : begin + TASKS_MAX])
                self._out.append(Deploy(address, SubmitTasks(part, self._address)))

    # ---- slots ----

    def take(self, offer: OfferSlots) -> tuple[AllocationId, ...]:
        """Take the slots that waiting regions asked for."""
        accepted = []
        for each in offer.slots:
            slot = AllocatedSlot(
                each.allocation_id,
                offer.resource_id,
                offer.address,
                offer.data_address,
                each.pages,
                each.spare_pages,
            )
            if self._facts.pool.offer(each.request_id, slot):
                accepted.append(each.allocation_id)
        return tuple(accepted)

    def ask_for_slots(self, *, is_running: bool) -> None:
        """Return slots of no use, and request missing ones."""
        pool, scheduler = self._facts.pool, self._facts.scheduler
        has_idle, unasked = pool.has_idle, scheduler.unasked
        if not (has_idle or unasked or self.is_short or self._timers.running or pool.awaits_slots):
            return
        is_kept = has_idle and is_running and self._keeps_idle()
        self._timers.watch(Timer.IDLE, IDLE_S, is_wanted=is_kept)
        if has_idle and not is_kept:
            self.release_idle()
        claimed = pool.claimed if self._slots_max else 0
        for region in unasked:
            if self._slots_max and claimed + region.slot_count > self._slots_max:
                continue
            claimed += region.slot_count
            request_id = pool.open_request(region.slot_count)
            scheduler.asks(region, request_id)
            self._request_slots(request_id, region.slot_count)
        self._timers.watch(Timer.COLLECTING, COLLECTING_S, is_wanted=pool.awaits_slots)
        self.watch_time(is_running=is_running)

    def _keeps_idle(self) -> bool:
        """Whether idle slots are for the next region: what still runs makes its input, and nothing waits for more."""
        pool, scheduler = self._facts.pool, self._facts.scheduler
        is_useless = pool.has_avoided or pool.awaits_slots
        return not is_useless and not scheduler.has_waiting and scheduler.awaits_results

    def release_idle(self) -> None:
        """Return the slots that are not in use."""
        self._timers.stop(Timer.IDLE)
        for slot in self._facts.pool.release_idle():
            self._out.append(Tell(slot.address, FreeSlot(slot.allocation_id)))

    def _request_slots(self, request_id: int, count: int) -> None:
        job, avoided = self._facts.graph.job_graph, tuple(self._facts.pool.avoided)
        request = RequestSlots(job.job_id, job.name, self._address, request_id, count, avoided, self._turn)
        self._out.append(TellResourceManager(request))

    def watch_time(self, *, is_running: bool) -> None:
        """Count the time in which the cluster could never serve what the job waits for."""
        is_stuck = self.is_short and self._is_stuck(is_running=is_running)
        self._timers.watch(Timer.SLOTS, self._slot_timeout_s, is_wanted=is_stuck)

    def _is_stuck(self, *, is_running: bool) -> bool:
        """Whether nothing runs, and what waits needs more slots than there are; to wait for others is not to be."""
        waits = is_running and self.is_short and self._facts.scheduler.has_waiting
        return waits and self._facts.graph.active_count == 0

    def timed_out(self, overview: SlotOverview, *, is_running: bool) -> FailureInfo | None:
        """Return the failure of a job that has waited too long for slots; None when it has them."""
        if not self._is_stuck(is_running=is_running):
            return None
        region = self._facts.scheduler.waiting[0]
        text = slot_timeout_text(region.slot_count, overview, self._slot_timeout_s)
        return failure_info(SlotTimeoutError(text), task=region.subtasks[0].name)

    def ask_again(self) -> None:
        """Release what has come of requests whose rest does not come, and repeat those for which nothing has come.

        The ResourceManager knows them, unless it has given their slots: a TaskExecutor that dies, or is cut off, before
        it offers them leaves the job without.
        """
        self._timers.stop(Timer.COLLECTING)
        self.close_requests(self._facts.pool.incomplete)
        outstanding = self._facts.pool.outstanding
        for region in self._facts.scheduler.waiting:
            if region.request_id is not None and region.request_id in outstanding:
                self._repeated.add(region.request_id)
                self._request_slots(region.request_id, region.slot_count)

    def close_requests(self, request_ids: Collection[int]) -> None:
        """Give up requests of regions that wait; they ask anew."""
        for region in self._facts.scheduler.waiting:
            if region.request_id is not None and region.request_id in request_ids:
                self.withdraw_requests([region.request_id])
                self._facts.scheduler.asks_anew(region)

    def withdraw_requests(self, request_ids: Iterable[int]) -> None:
        """Give up requests; what has come for them may be used by others."""
        for request_id in request_ids:
            self._facts.pool.close_request(request_id)
            self._withdraw(request_id)

    def _withdraw(self, request_id: int) -> None:
        self._repeated.discard(request_id)
        job_id = self._facts.graph.job_graph.job_id
        self._out.append(TellResourceManager(WithdrawSlotRequests(job_id, request_id)))

    def discard_slot(self, vertex: ExecutionVertex) -> None:
        """Give up the slot of an attempt: its TaskExecutor may have taken it back unnoticed."""
        slot = vertex.current.slot
        if isinstance(slot, AllocatedSlot):
            self._facts.pool.discard(slot.allocation_id)
            self._out.append(Tell(slot.address, FreeSlot(slot.allocation_id)))


def refused(vertex: ExecutionVertex, failure: FailureInfo) -> TaskReport:
    """Return the report of an attempt that its TaskExecutor does not run."""
    slot = vertex.current.slot
    place = str(slot.resource_id) if slot is not None else ""
    placed = msgspec.structs.replace(failure, task=vertex.name, task_manager=place)
    return TaskReport(vertex.current.attempt, ExecutionState.FAILED.value, failure=placed)
