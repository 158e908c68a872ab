"""ExecutionVertex -> TaskDeploymentDescriptor: what a TaskExecutor is told about one attempt.

    pages of the slot    ── by weight ──► operators of the subtasks in the slot (``memory.page_budget``)
    input edges          ── one gate for each JobEdge: the places of its producers, LOCAL or REMOTE, and what is read
    data sets            ── one ResultPartitionDescriptor each
    sinks                ── staging folder of each

A producer on the same TaskExecutor is LOCAL, on another one REMOTE with its data address. Each has a slot by then: a
pipelined region is deployed when it has all its slots, and what it reads was written by attempts that had theirs.

What subtasks of a region have in common (weights in a slot, whether splits are shared) is made once, ``Described``, and
so are the places of the producers of a result, ``ProducerPlaces``: descriptors refer to them. Pure.

Source: Flink's TaskDeploymentDescriptorFactory.
Held by: tests/jobmaster/test_scheduler.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from engine.graph.deployment import (
    InputGateDescriptor,
    PartitionLocation,
    ProducerPlace,
    ResultPartitionDescriptor,
    SinkStaging,
    Staging,
    TaskDeploymentDescriptor,
)
from engine.graph.job_graph import JobGraph, JobVertex
from engine.graph.operator_descriptor import HashJoinOperator, SinkOperator
from engine.graph.runtime_filter import RuntimeFilter, filters_made_by
from engine.graph.ship_strategy import SORTED_RUNS
from engine.ids import ResourceId
from engine.jobmaster.execution_vertex import ExecutionVertex, IntermediateResultPartition, SubtaskInput
from engine.jobmaster.range_bounds import consumer_range
from engine.jobmaster.shared_splits import may_share_splits
from engine.jobmaster.slot_pool import AllocatedSlot
from engine.memory.page_budget import SlotWeights, operator_pages

#: results whose places are kept, and TaskExecutors for which they are as these see them
_RESULTS_MAX: Final = 16
_SEEN_MAX: Final = 8
#: consumers in other processes beyond which their filters are not worth reading, by each producer
FILTER_PLACES_MAX: Final = 64
_IS_RELEASED: Final = attrgetter("is_released")


def build_descriptor(
    vertex: ExecutionVertex,
    job_graph: JobGraph,
    neighbours: Sequence[ExecutionVertex],
    staging: Mapping[int, Staging],
    held_states: Mapping[str, str] = MappingProxyType({}),
    described: Described | None = None,
    places: ProducerPlaces | None = None,
) -> TaskDeploymentDescriptor:
    """Return the descriptor of the current attempt, which has a slot.

    ``neighbours`` are all subtasks of the region; ``staging`` is the place of each sink's files by its index;
    ``held_states`` has the name of each place's state; ``described`` what others of the region have in common, and
    ``places`` what others of the job have.
    Raises MemoryBudgetError when the slot has fewer pages than its operators need at least.
    """
    slot = vertex.current.slot
    assert isinstance(slot, AllocatedSlot), f"{vertex.name} has no slot"
    job_vertex = vertex.job_vertex
    slot_pages = ceil((slot.pages + (0 if job_graph.has_functions else slot.spare_pages)) * job_graph.page_share)
    described, places = described or Described(), places or ProducerPlaces()
    weights = described.weights_in(slot, neighbours)
    return TaskDeploymentDescriptor(
        job_id=job_graph.job_id,
        job_name=job_graph.name,
        attempt=vertex.current.attempt,
        allocation_id=slot.allocation_id,
        vertex_name=job_vertex.name,
        subtask_index=vertex.subtask_index,
        parallelism=job_vertex.parallelism,
        max_parallelism=job_vertex.max_parallelism,
        chain=job_vertex.chain,
        splits=vertex.splits,
        gates=tuple([_gate(edges, job_graph, slot, places) for edges in vertex.inputs]),
        partitions=tuple([_result(vertex, partition, job_graph, slot) for partition in vertex.partitions]),
        sinks=tuple(
            [
                SinkStaging(step.operator.sink_index, place.path, place.target)
                for step in job_vertex.chain
                if isinstance(step.operator, SinkOperator)
                for place in (staging[step.operator.sink_index],)
            ]
        ),
        pages=described.pages_of(job_vertex, weights, slot_pages),
        configuration=job_graph.configuration,
        artifacts=job_graph.artifacts,
        feed=job_vertex.feed,
        build_feed=job_vertex.build_feed,
        shares_splits=described.shares_splits(job_graph, job_vertex, neighbours),
        held_states=dict(held_states) if held_states and job_vertex.source is not None else {},
    )


class Described:
    """Parts of descriptors that subtasks of one region have in common while it runs."""

    def __init__(self) -> None:
        self._weights: dict[int, SlotWeights] = {}
        self._shares: dict[int, bool] = {}
        self._pages: dict[tuple[int, SlotWeights, int], tuple[int, ...]] = {}

    def pages_of(self, job_vertex: JobVertex, weights: SlotWeights, slot_pages: int) -> tuple[int, ...]:
        """Return the pages of each operator of a vertex in a slot of some pages and weights."""
        key = job_vertex.id.index, weights, slot_pages
        pages = self._pages.get(key)
        if pages is None:
            pages = tuple([operator_pages(step.memory_weight, weights, slot_pages) for step in job_vertex.chain])
            self._pages[key] = pages
        return pages

    def weights_in(self, slot: AllocatedSlot, neighbours: Sequence[ExecutionVertex]) -> SlotWeights:
        """Return the weights of all operators of the region in a slot."""
        if not self._weights:
            by_slot: dict[int, list[float]] = defaultdict(list)
            for each in neighbours:
                by_slot[id(each.current.slot)] += [step.memory_weight for step in each.job_vertex.chain]
            self._weights = {key: SlotWeights.of(weights) for key, weights in by_slot.items()}
        return self._weights[id(slot)]

    def shares_splits(self, job_graph: JobGraph, job_vertex: JobVertex, neighbours: Sequence[ExecutionVertex]) -> bool:
        """Whether subtasks may read each other's splits, which takes that all of them run again when one does."""
        key = job_vertex.id.index
        if key not in self._shares:
            may_share = may_share_splits(job_graph, job_vertex)
            same = [None for other in neighbours if other.job_vertex is job_vertex] if may_share else ()
            self._shares[key] = may_share and len(same) == job_vertex.parallelism
        return self._shares[key]


class ProducerPlaces:
    """The places of the producers of a job's results, which all readers of a whole result have in common."""

    def __init__(self) -> None:
        self._known: dict[int, _Places] = {}
        self._version = 0

    def begin(self, version: int) -> None:
        """Forget the places of other versions of the graph: attempts may be others."""
        if version != self._version:
            self._known.clear()
            self._version = version

    def of(self, partitions: list[IntermediateResultPartition], slot: AllocatedSlot) -> tuple[ProducerPlace, ...]:
        """Return the places of the producers of partitions, seen from a slot."""
        known = self._known.get(id(partitions))
        if known is None:
            if len(self._known) >= _RESULTS_MAX:
                self._known = {key: each for key, each in self._known.items() if not each.is_read}
            while len(self._known) >= _RESULTS_MAX:
                del self._known[next(iter(self._known))]
            known = self._known[id(partitions)] = _Places(partitions)
        return known.seen_from(slot.resource_id)


class _Places:
    """The producers of one list of partitions, which it keeps: its identity names it."""

    def __init__(self, partitions: list[IntermediateResultPartition]) -> None:
        self._partitions = partitions
        self._here: dict[ResourceId, list[int]] = defaultdict(list)
        remote = []
        for index, partition in enumerate(partitions):
            slot = partition.producer.current.slot
            assert slot is not None, f"{partition.producer.name} is read before it has a slot"
            self._here[slot.resource_id].append(index)
            remote.append(ProducerPlace(partition.id, PartitionLocation.REMOTE, slot.data_address))
        self._remote = tuple(remote)
        self._seen: dict[ResourceId, tuple[ProducerPlace, ...]] = {}

    @property
    def is_read(self) -> bool:
        """Whether all partitions were dropped, having been read."""
        return all(map(_IS_RELEASED, self._partitions))

    def seen_from(self, resource_id: ResourceId) -> tuple[ProducerPlace, ...]:
        """Return the places, LOCAL on a TaskExecutor."""
        here = self._here.get(resource_id)
        if here is None:
            return self._remote
        if resource_id not in self._seen:
            places = list(self._remote)
            for index in here:
                places[index] = ProducerPlace(places[index].partition, PartitionLocation.LOCAL)
            if len(self._seen) >= _SEEN_MAX:
                self._seen.clear()
            self._seen[resource_id] = tuple(places)
        return self._seen[resource_id]


def _result(
    vertex: ExecutionVertex, partition: IntermediateResultPartition, job_graph: JobGraph, slot: AllocatedSlot
) -> ResultPartitionDescriptor:
    data_set = partition.data_set
    filters, filter_places = _filters_of_consumers(vertex, partition, slot)
    return ResultPartitionDescriptor(
        id=partition.id,
        result_type=data_set.result_type,
        partitioner=data_set.partitioner,
        subpartition_count=partition.subpartition_count,
        consumer_parallelism=job_graph.vertex(data_set.consumer).parallelism,
        schema=data_set.partitioner.travelling(vertex.job_vertex.chain[-1].output_schema),
        filters=filters,
        filter_places=filter_places,
    )


def _filters_of_consumers(
    vertex: ExecutionVertex, partition: IntermediateResultPartition, slot: AllocatedSlot
) -> tuple[tuple[RuntimeFilter, ...], tuple[ProducerPlace, ...]]:
    """Return the run-time filters that all consumers of a result have for the source of its rows; () where they cannot.

    They run while it is produced, and what they do not probe with is not read. Those in other processes have a place.
    """
    source, producer = vertex.job_vertex.source, vertex.job_vertex.chain[0].operator
    is_pipelined = partition.data_set.result_type.is_pipelined
    asked = producer.passes if source is None and isinstance(producer, HashJoinOperator) else ()
    asked = asked if source is None else source.filters
    if not asked or not is_pipelined or len(vertex.partitions) != 1:
        return (), ()
    heads, places = [], []
    for edge in partition.consumers:
        head, place = edge.consumer.job_vertex.chain[0].operator, edge.consumer.current.slot
        if place is None or not isinstance(head, HashJoinOperator) or edge.job_edge.input_index == head.first_input:
            return (), ()
        heads.append(head)
        if place.resource_id != slot.resource_id:
            made = filters_made_by(edge.consumer.current.attempt)
            places.append(ProducerPlace(made, PartitionLocation.REMOTE, place.data_address))
    if len(places) > FILTER_PLACES_MAX:
        return (), ()
    return tuple(each for each in asked if heads and each in (*heads[0].filters, *heads[0].passes)), tuple(places)


def _gate(edges: SubtaskInput, job_graph: JobGraph, slot: AllocatedSlot, places: ProducerPlaces) -> InputGateDescriptor:
    job_edge = edges.job_edge
    producer = job_graph.vertex(job_edge.data_set.producer)
    data_set = job_graph.data_set(job_edge.data_set)
    return InputGateDescriptor(
        input_index=job_edge.input_index,
        schema=data_set.partitioner.travelling(producer.chain[-1].output_schema),
        result_type=data_set.result_type,
        producers=places.of(edges.partitions, slot),
        reads=tuple(map(tuple, edges.reads)),
        key_range=consumer_range(edges) if data_set.partitioner.kind == SORTED_RUNS else None,
        in_order=data_set.partitioner.in_order,
        is_broadcast=data_set.partitioner.kind == "BROADCAST",
    )
