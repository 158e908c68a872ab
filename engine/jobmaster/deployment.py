"""ExecutionVertex -> TaskDeploymentDescriptor: what a TaskExecutor is told about one attempt.

    pages of the slot    ── by weight ──► operators of the subtasks in the slot (``memory.page_budget``)
    input edges          ── one gate for each JobEdge: the places of its producers, LOCAL or REMOTE, and what is read
    data sets            ── one ResultPartitionDescriptor each
    sinks                ── staging folder of each

A producer on the same TaskExecutor is LOCAL, on another one REMOTE with its data address. Each has a slot by then: a
pipelined region is deployed when it has all its slots, and what it reads was written by attempts that had theirs.

What subtasks of a region have in common (places of producers, weights in a slot, whether splits are shared) is made
once, ``Described``: their descriptors refer to it. Pure.

Source: Flink's TaskDeploymentDescriptorFactory.
Held by: tests/jobmaster/test_scheduler.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from types import MappingProxyType

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
from engine.graph.runtime_filter import RuntimeFilter
from engine.graph.ship_strategy import SORTED_RUNS
from engine.ids import ResourceId
from engine.jobmaster.execution_vertex import ExecutionVertex, IntermediateResultPartition, SubtaskInput
from engine.jobmaster.range_bounds import consumer_range
from engine.jobmaster.shared_splits import may_share_splits
from engine.jobmaster.slot_pool import AllocatedSlot
from engine.memory.page_budget import SlotWeights, operator_pages


def build_descriptor(
    vertex: ExecutionVertex,
    job_graph: JobGraph,
    neighbours: Sequence[ExecutionVertex],
    staging: Mapping[int, Staging],
    held_states: Mapping[str, str] = MappingProxyType({}),
    described: Described | None = None,
) -> TaskDeploymentDescriptor:
    """Return the descriptor of the current attempt, which has a slot.

    ``neighbours`` are all subtasks of the region; ``staging`` is the place of each sink's files by its index;
    ``held_states`` has the name of each place's state; ``described`` what others of the region have in common.
    Raises MemoryBudgetError when the slot has fewer pages than its operators need at least.
    """
    slot = vertex.current.slot
    assert slot is not None, f"{vertex.name} has no slot"
    job_vertex = vertex.job_vertex
    slot_pages = ceil((slot.pages + (0 if job_graph.has_functions else slot.spare_pages)) * job_graph.page_share)
    described = described or Described()
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
        gates=tuple(_gate(edges, job_graph, slot, described) for edges in vertex.inputs),
        partitions=tuple(
            ResultPartitionDescriptor(
                id=partition.id,
                result_type=partition.data_set.result_type,
                partitioner=partition.data_set.partitioner,
                subpartition_count=partition.subpartition_count,
                consumer_parallelism=job_graph.vertex(partition.data_set.consumer).parallelism,
                schema=partition.data_set.partitioner.travelling(job_vertex.chain[-1].output_schema),
                filters=_filters_of_consumers(vertex, partition, slot),
            )
            for partition in vertex.partitions
        ),
        sinks=tuple(
            SinkStaging(step.operator.sink_index, place.path, place.target)
            for step in job_vertex.chain
            if isinstance(step.operator, SinkOperator)
            for place in (staging[step.operator.sink_index],)
        ),
        pages=tuple(operator_pages(step.memory_weight, weights, slot_pages) for step in job_vertex.chain),
        configuration=job_graph.configuration,
        artifacts=job_graph.artifacts,
        feed=job_vertex.feed,
        shares_splits=described.shares_splits(job_graph, job_vertex, neighbours),
        held_states=dict(held_states) if job_vertex.source is not None else {},
    )


class Described:
    """Parts of descriptors that subtasks of one region have in common while it runs."""

    def __init__(self) -> None:
        self._weights: dict[int, SlotWeights] = {}
        self._shares: dict[int, bool] = {}
        self._places: dict[tuple[int, ResourceId], tuple[ProducerPlace, ...]] = {}

    def begin(self) -> None:
        """Forget what may have changed since the last subtasks were described: the places of stored results."""
        self._places.clear()

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
            count = sum(other.job_vertex is job_vertex for other in neighbours) if may_share else 0
            self._shares[key] = may_share and count == job_vertex.parallelism
        return self._shares[key]

    def places(self, partitions: list[IntermediateResultPartition], slot: AllocatedSlot) -> tuple[ProducerPlace, ...]:
        """Return the places of producers, seen from a slot; all readers of a whole result have one list of them."""
        key = id(partitions), slot.resource_id
        if key not in self._places:
            self._places[key] = tuple(_place(partition, slot) for partition in partitions)
        return self._places[key]


def _filters_of_consumers(
    vertex: ExecutionVertex, partition: IntermediateResultPartition, slot: AllocatedSlot
) -> tuple[RuntimeFilter, ...]:
    """Return the run-time filters that all consumers of a result make for the source of its rows; () where they cannot.

    They run while it is produced, in the process that produces it, and what they do not probe with is not read.
    """
    source = vertex.job_vertex.source
    is_pipelined = partition.data_set.result_type.is_pipelined
    if source is None or not source.filters or not is_pipelined or len(vertex.partitions) != 1:
        return ()
    heads = []
    for edge in partition.consumers:
        head, place = edge.consumer.job_vertex.chain[0].operator, edge.consumer.current.slot
        is_here = place is not None and place.resource_id == slot.resource_id
        if not is_here or not isinstance(head, HashJoinOperator) or edge.job_edge.input_index == head.first_input:
            return ()
        heads.append(head)
    return tuple(each for each in source.filters if heads and each in heads[0].filters)


def _gate(edges: SubtaskInput, job_graph: JobGraph, slot: AllocatedSlot, described: Described) -> InputGateDescriptor:
    job_edge = edges[0].job_edge
    producer = job_graph.vertex(job_edge.data_set.producer)
    data_set = job_graph.data_set(job_edge.data_set)
    return InputGateDescriptor(
        input_index=job_edge.input_index,
        schema=data_set.partitioner.travelling(producer.chain[-1].output_schema),
        result_type=data_set.result_type,
        producers=described.places(edges.partitions, slot),
        reads=tuple(tuple(own) for own in edges.reads),
        key_range=consumer_range(edges) if data_set.partitioner.kind == SORTED_RUNS else None,
        in_order=data_set.partitioner.in_order,
        is_broadcast=data_set.partitioner.kind == "BROADCAST",
    )


def _place(partition: IntermediateResultPartition, slot: AllocatedSlot) -> ProducerPlace:
    producer_slot = partition.producer.current.slot
    assert producer_slot is not None, f"{partition.producer.name} is read before it has a slot"
    if producer_slot.resource_id == slot.resource_id:
        return ProducerPlace(partition.id, PartitionLocation.LOCAL)
    return ProducerPlace(partition.id, PartitionLocation.REMOTE, producer_slot.data_address)
