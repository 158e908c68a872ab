"""Scheduler: which pipelined regions may start, and in which slots their subtasks run.

    job graph ─► regions of vertices ─► regions of subtasks (connected by PIPELINED execution edges)

      WAITING ── all BLOCKING inputs finished, slots free ──► RUNNING ── all subtasks ended ──► DONE
         └──────────────────────────── restart (``region_failover``) ────────────────────────────┘

A region starts as a whole or not at all. It needs as many slots as its widest vertex has subtasks in it: a slot runs
one subtask of each vertex. Subtasks of a vertex without ALL_TO_ALL PIPELINED edges are regions of their own, so a job
of BLOCKING stages finishes on one slot, whatever its parallelism. Inside a region a subtask is deployed when all its
PIPELINED producers on other TaskExecutors run, so that the partitions it asks for are there. With those on its own it
is deployed at once: they begin first, and it hears in its process when their partitions are there.

Regions are tried in an order in which they can run, those that feed build sides first. A region whose plan may change
with the real size of a result that it does not read waits for that result too (``engine.adaptive.order``).
When the plan has changed, ``revise`` forms the regions anew; those that have begun stay. Pure.

Source: Flink's PipelinedRegionSchedulingStrategy and SlotSharingExecutionSlotAllocator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import Final

import msgspec

from engine.adaptive.order import waits
from engine.clock import Clock
from engine.graph.components import component_of
from engine.graph.pipelined_regions import pipelined_regions
from engine.ids import JobVertexId, ResourceId
from engine.jobmaster.deployment import Described
from engine.jobmaster.execution_graph import ExecutionGraph, IntermediateResult
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.slot_pool import AllocatedSlot, FormerSlot, SlotPool

#: states of a subtask from which others read
PRODUCING: Final = frozenset({ExecutionState.RUNNING, ExecutionState.FINISHED})
#: states of one from which others in its process may read soon
_BEGUN: Final = frozenset({ExecutionState.DEPLOYING, ExecutionState.INITIALIZING})


_IS_FINISHED: Final = attrgetter("is_finished")


class RegionState(StrEnum):
    """The states of a region."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    DONE = "DONE"


class RegionRun(msgspec.Struct, eq=False):
    """The run of a region: its slots, and which subtasks may be deployed."""

    slots: tuple[AllocatedSlot, ...]
    #: subtasks that may still be SCHEDULED and be deployable
    unsent: list[ExecutionVertex]
    #: others by the identity of a PIPELINED producer that does not run yet
    blocked: dict[int, list[ExecutionVertex]] = msgspec.field(default_factory=dict)
    #: parts that descriptors of its subtasks have in common
    described: Described = msgspec.field(default_factory=Described)
    #: number of subtasks, from the first one on, that are known to have ended
    ended_count: int = 0


class Stage(msgspec.Struct, eq=False):
    """The regions that wait for the same results."""

    results: tuple[IntermediateResult, ...]
    #: regions that have not started, and those of them without a request for slots, by their numbers
    waiting: dict[int, SchedulingRegion] = msgspec.field(default_factory=dict)
    unasked: dict[int, SchedulingRegion] = msgspec.field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        """Whether only slots are missing."""
        return all(map(_IS_FINISHED, self.results))

    def add(self, region: SchedulingRegion) -> None:
        """Have a region wait; it has asked for no slots."""
        for regions in (self.waiting, self.unasked):
            is_last = not regions or next(reversed(regions)) < region.number
            regions[region.number] = region
            if not is_last:
                ordered = sorted(regions.items())
                regions.clear()
                regions.update(ordered)

    def remove(self, region: SchedulingRegion) -> None:
        """Have a region wait no more."""
        self.waiting.pop(region.number, None)
        self.unasked.pop(region.number, None)
        if not self.waiting:  # an emptied dict is as large as it was
            self.waiting, self.unasked = {}, {}


#: stage of regions that no scheduler has yet
_NO_STAGE: Final = Stage(())


class SchedulingRegion(msgspec.Struct, eq=False):
    """Subtasks that must run at one time."""

    subtasks: tuple[ExecutionVertex, ...]
    #: results that it waits for: BLOCKING ones that it reads, and those whose sizes may change it
    results: tuple[IntermediateResult, ...]
    slot_count: int
    state: RegionState = RegionState.WAITING
    #: number of the pool's request for its slots
    request_id: int | None = None
    run: RegionRun | None = None
    #: place among all regions, and the stage that it waits in
    number: int = 0
    stage: Stage = msgspec.field(default_factory=lambda: _NO_STAGE)

    def begin(self, slots: tuple[AllocatedSlot, ...]) -> None:
        """Have slots, in which the subtasks may be deployed."""
        self.state = RegionState.RUNNING
        self.run = RegionRun(slots, list(self.subtasks))

    def end(self) -> tuple[AllocatedSlot, ...]:
        """Return the slots of a region that ran."""
        slots = self.run.slots if self.run is not None else ()
        self.state, self.run, self.request_id = RegionState.DONE, None, None
        return slots

    @property
    def has_ended(self) -> bool:
        """Whether all subtasks of a running region have."""
        run = self.run
        if run is None:
            return False
        while run.ended_count < len(self.subtasks) and self.subtasks[run.ended_count].current.state.is_terminal:
            run.ended_count += 1
        return run.ended_count == len(self.subtasks)


class Scheduler:
    """Regions of one job and their slots. Each call costs what it changes, however many regions there are."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        self._asking: dict[int | None, SchedulingRegion] = {}
        self._ready_stages: list[Stage] = []
        #: regions that run, by identity, and those of them that may have subtasks to deploy
        self._running: dict[int, SchedulingRegion] = {}
        self._sending: dict[int, SchedulingRegion] = {}
        self._places: dict[ResourceId, FormerSlot] = {}
        self._set(_regions_of_subtasks(graph))

    def _set(self, regions: tuple[SchedulingRegion, ...]) -> None:
        """Take regions in place of those before."""
        self.regions = regions
        #: regions by vertex and subtask
        self._region_of = [[regions[0]] * len(each.subtasks) for each in self._graph.vertices]
        for region in regions:
            for subtask in region.subtasks:
                self._region_of[subtask.job_vertex.id.index][subtask.subtask_index] = region
        stages: dict[tuple[int, ...], Stage] = {}
        for number, region in enumerate(regions):
            key = (region.subtasks[0].job_vertex.id.index, *map(id, region.results))
            region.number = number
            if key not in stages:
                stages[key] = Stage(region.results)
            region.stage = stages[key]
            region.results = region.stage.results
            if region.state is RegionState.WAITING:
                region.stage.add(region)
                if region.request_id is not None:
                    del region.stage.unasked[number]
        self._stages = tuple(stages.values())
        self._asking = {region.request_id: region for region in regions if region.request_id is not None}
        self._ready_version = -1

    def _ready(self) -> list[Stage]:
        """Return the stages for which only slots are missing."""
        if self._ready_version != self._graph.results_version:
            self._ready_version = self._graph.results_version
            self._ready_stages = [stage for stage in self._stages if stage.is_ready]
        return self._ready_stages

    @property
    def has_waiting(self) -> bool:
        """Whether only slots are missing for some region."""
        return any(stage.waiting for stage in self._ready())

    @property
    def awaits_results(self) -> bool:
        """Whether a region waits for results that others make."""
        return len(self._ready()) < len(self._stages)

    @property
    def waiting(self) -> list[SchedulingRegion]:
        """Regions for which only slots are missing, in order."""
        return [region for stage in self._ready() for region in stage.waiting.values()]

    @property
    def unasked(self) -> list[SchedulingRegion]:
        """Regions that wait and have not asked for slots, in order."""
        unasked: list[SchedulingRegion] = []
        for stage in self._ready():
            unasked += stage.unasked.values()
        return unasked

    def _candidates(self, pool: SlotPool) -> Iterable[SchedulingRegion]:
        """Return the regions for which only slots are missing, and for which there may be some, in order."""
        if pool.has_idle:
            waiting = (tuple(stage.waiting.values()) for stage in self._ready() if stage.waiting)
            return chain.from_iterable(waiting)
        asking = (self._asking[number] for number in pool.complete if number in self._asking)
        return sorted((region for region in asking if region.stage.is_ready), key=attrgetter("number"))

    def asks(self, region: SchedulingRegion, request_id: int) -> None:
        """Take note of a region's request for slots."""
        region.request_id = request_id
        self._asking[request_id] = region
        region.stage.unasked.pop(region.number, None)

    def asks_anew(self, region: SchedulingRegion) -> None:
        """Take note that the request of a region that waits was given up."""
        self._asking.pop(region.request_id, None)
        region.request_id = None
        region.stage.add(region)

    def region_of(self, vertex: ExecutionVertex) -> SchedulingRegion:
        """Return the region of a subtask."""
        return self._region_of[vertex.job_vertex.id.index][vertex.subtask_index]

    def revise(self) -> tuple[int, ...]:
        """Form the regions of a revised graph; return the slot requests of regions that are no more."""
        known = {_members(region.subtasks): region for region in self.regions}
        regions = []
        for region in _regions_of_subtasks(self._graph):
            old = known.pop(_members(region.subtasks), None)
            if old is not None:
                old.results = region.results
            regions.append(old or region)
        gone = known.values()
        assert all(region.state is RegionState.WAITING for region in gone), "a region that has begun changed"
        self._set(tuple(regions))
        return tuple(region.request_id for region in gone if region.request_id is not None)

    def start_regions(self, pool: SlotPool, clock: Clock) -> list[SchedulingRegion]:
        """Give slots to the regions that are ready and fit; their attempts become SCHEDULED. Return those started."""
        started: list[SchedulingRegion] = []
        for region in self._candidates(pool):
            slots = pool.take(region.slot_count, region.request_id)
            if slots is None:
                continue
            region.begin(slots)
            place: dict[JobVertexId, int] = defaultdict(int)
            for vertex in region.subtasks:
                vertex.current.slot = slots[place[vertex.job_vertex.id]]
                place[vertex.job_vertex.id] += 1
                vertex.current.transition(ExecutionState.SCHEDULED, clock)
            self._begin(region)
            started.append(region)
            if not pool.has_slots:
                break
        return started

    def _begin(self, region: SchedulingRegion) -> None:
        region.stage.remove(region)
        self._asking.pop(region.request_id, None)
        self._running[id(region)] = self._sending[id(region)] = region

    def hold(self, regions: Iterable[SchedulingRegion]) -> None:
        """Have nothing of regions deployed that have just started, until they are let go."""
        for region in regions:
            self._sending.pop(id(region), None)

    def let_go(self, regions: Iterable[SchedulingRegion]) -> None:
        """Have subtasks of regions that were held deployed."""
        for region in regions:
            if id(region) in self._running:
                self._sending[id(region)] = region

    def resume(self, subtasks: Sequence[ExecutionVertex]) -> None:
        """Take note of a region that was started before; its attempts are SCHEDULED and have their slots."""
        region = self.region_of(subtasks[0])
        if region.state is not RegionState.WAITING or _members(region.subtasks) != _members(subtasks):
            raise ValueError(f"{subtasks[0].name} and {len(subtasks) - 1} others are no region that waits")
        slots = [slot for slot in (subtask.current.slot for subtask in subtasks) if isinstance(slot, AllocatedSlot)]
        region.begin(tuple({slot.allocation_id: slot for slot in slots}.values()))
        self._begin(region)

    @property
    def used_slots(self) -> tuple[AllocatedSlot, ...]:
        """Slots of the regions that run."""
        return tuple(slot for region in self._running.values() if region.run for slot in region.run.slots)

    def deployable(self) -> list[ExecutionVertex]:
        """Return the SCHEDULED subtasks whose PIPELINED producers run or are deployed with them, in topological order.

        The others wait for one of them, until ``produces`` is called for it: each call looks at what may have changed.
        """
        found: list[ExecutionVertex] = []
        missing: dict[tuple[int, str], ExecutionVertex | None] = {}
        for region in tuple(self._sending.values()):
            run = region.run
            assert run is not None, "what is sent runs"
            unsent, run.unsent = sorted(run.unsent, key=_topological), []
            beside: set[int] = set()
            for vertex in unsent:
                if vertex.current.state is not ExecutionState.SCHEDULED:
                    continue
                producer = _missing_producer(vertex, missing, beside)
                if producer is None:
                    beside.add(id(vertex))
                    run.unsent.append(vertex)
                else:
                    run.blocked.setdefault(id(producer), []).append(vertex)
            found += run.unsent
            if not run.unsent:
                del self._sending[id(region)]
        return found

    def produces(self, vertex: ExecutionVertex) -> None:
        """Take note that a subtask runs, or has run: what reads from it may be deployed."""
        region = self.region_of(vertex)
        run = region.run
        freed = run.blocked.pop(id(vertex), None) if run is not None and run.blocked else None
        if run is not None and freed is not None:
            run.unsent += freed
            self._sending[id(region)] = region

    def withdraw_requests(self) -> tuple[int, ...]:
        """Return the slot requests of regions whose inputs are missing again; they ask anew when they are ready."""
        unready = [region for stage in self._stages if not stage.is_ready for region in stage.waiting.values()]
        asking = [(region, region.request_id) for region in unready if region.request_id is not None]
        for region, _ in asking:
            self.asks_anew(region)
        return tuple(request_id for _, request_id in asking)

    def restart(self, region: SchedulingRegion) -> None:
        """Queue a region whose attempts have all ended again, in its place."""
        assert region.state is not RegionState.RUNNING, "its slots were given back"
        region.state = RegionState.WAITING
        self.asks_anew(region)

    def subtask_ended(self, vertex: ExecutionVertex, pool: SlotPool) -> bool:
        """Give the region's slots back when its last subtask has ended; return whether that happened."""
        region = self.region_of(vertex)
        is_done = region.state is RegionState.RUNNING and region.has_ended
        if is_done:
            self._running.pop(id(region), None)
            self._sending.pop(id(region), None)
            for slot in region.end():
                pool.give_back(slot)
            for subtask in region.subtasks:
                subtask.current.slot = self._former(subtask.current.slot)
        return is_done

    def _former(self, slot: AllocatedSlot | FormerSlot | None) -> FormerSlot | None:
        """Return the place of a slot that is given back."""
        if slot is None or isinstance(slot, FormerSlot):
            return slot
        place = FormerSlot(slot.resource_id, slot.address, slot.data_address)
        return self._places.setdefault(slot.resource_id, place)


def _missing_producer(
    vertex: ExecutionVertex, missing: dict[tuple[int, str], ExecutionVertex | None], beside: Container[int]
) -> ExecutionVertex | None:
    """Return the last PIPELINED producer of a subtask that has to run first and does not yet.

    ``missing`` has those found, by the list of partitions, which many subtasks have in common, and the TaskExecutor;
    ``beside`` the subtasks that are deployed with this one.
    """
    slot = vertex.current.slot
    assert isinstance(slot, AllocatedSlot), f"{vertex.name} has no slot"
    for partitions in vertex.pipelined_inputs:
        key = id(partitions), slot.resource_id.value
        if key not in missing:
            missing[key] = None
            for partition in reversed(partitions):
                if not _is_there(partition.producer, slot, beside):
                    missing[key] = partition.producer
                    break
        producer = missing[key]
        if producer is not None:
            return producer
    return None


def _is_there(producer: ExecutionVertex, slot: AllocatedSlot, beside: Container[int]) -> bool:
    """Whether what reads a PIPELINED result in a slot may be deployed."""
    state, place = producer.current.state, producer.current.slot
    if state in PRODUCING:
        return True
    is_here = place is not None and place.resource_id == slot.resource_id
    return is_here and (state in _BEGUN or id(producer) in beside)


def _topological(vertex: ExecutionVertex) -> tuple[int, int]:
    return vertex.job_vertex.id.index, vertex.subtask_index


def _members(subtasks: Iterable[ExecutionVertex]) -> frozenset[int]:
    return frozenset(id(subtask) for subtask in subtasks)


def _regions_of_subtasks(graph: ExecutionGraph) -> tuple[SchedulingRegion, ...]:
    """Split the regions of vertices into connected components of subtasks."""
    regions: list[SchedulingRegion] = []
    awaited = waits(graph.job_graph)
    for vertex_region in pipelined_regions(graph.job_graph):
        subtasks: list[ExecutionVertex] = []
        for vertex_id in sorted(vertex_region.vertices):
            subtasks += graph.vertices[vertex_id.index].subtasks
        components = _components(subtasks)
        members: dict[int, list[ExecutionVertex]] = defaultdict(list)
        for subtask, component in zip(subtasks, components, strict=True):
            members[component].append(subtask)
        results = tuple([graph.results[data_set] for data_set in awaited.get(vertex_region.vertices[0], ())])
        regions += [_create_region(tuple(group), graph, results) for group in members.values()]
    return tuple(regions)


def _components(subtasks: list[ExecutionVertex]) -> list[int]:
    """Return the component of each subtask, named by the smallest position in it."""
    position = {id(subtask): index for index, subtask in enumerate(subtasks)}
    pairs: list[tuple[int, int]] = []
    united: set[int] = set()  # lists of partitions whose producers are one component
    for index, subtask in enumerate(subtasks):
        for partitions in subtask.pipelined_inputs:
            some = partitions[:1] if id(partitions) in united else partitions
            united.add(id(partitions))
            pairs += [(index, position[id(partition.producer)]) for partition in some]
    return component_of(len(subtasks), pairs)


def _create_region(
    subtasks: tuple[ExecutionVertex, ...], graph: ExecutionGraph, awaited: tuple[IntermediateResult, ...]
) -> SchedulingRegion:
    width: dict[JobVertexId, int] = defaultdict(int)
    inputs: dict[int, IntermediateResult] = {}
    for subtask in subtasks:
        width[subtask.job_vertex.id] += 1
        for job_edge in subtask.job_vertex.inputs:
            result = graph.results[job_edge.data_set]
            if not result.data_set.result_type.is_pipelined:
                inputs[id(result)] = result
    return SchedulingRegion(subtasks, (*inputs.values(), *awaited), max(width.values()))
