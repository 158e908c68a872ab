"""new_partition: the result partition that fits a descriptor, with its pool of buffers.

    result type   partitioner    partition             buffers that it must have       at most
    any           SORTED_RUNS    SortedPartition       none: rows lie in pages and in files
    PIPELINED     any other      PipelinedPartition    one open for each subpartition  two for each, and some floating
    BLOCKING      any other      BlockingPartition     and one on its way              and a quarter of all

Source: Flink's ResultPartitionFactory.
Held by: tests/exchange/test_result_partition.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from engine.errors import IllegalTransitionError
from engine.exchange.blocking_partition import BlockingPartition, PartitionFileSpace
from engine.exchange.pipelined_partition import PipelinedPartition
from engine.exchange.sorted_partition import SortedPartition
from engine.graph.ship_strategy import SORTED_RUNS

if TYPE_CHECKING:
    from engine.exchange.buffer_pool import NetworkBufferPool
    from engine.graph.deployment import ResultPartitionDescriptor

#: kinds of ResultPartitions
NewPartition: TypeAlias = PipelinedPartition | BlockingPartition | SortedPartition
#: buffers of a PIPELINED partition beyond two per subpartition; with a few, producer and consumer wake each other for
#: every batch
FLOATING_BUFFERS: Final = 64
#: least buffers of a BLOCKING partition beyond those it needs
BLOCKING_BUFFERS_MIN: Final = 8


def new_partition(
    descriptor: ResultPartitionDescriptor,
    network_pool: NetworkBufferPool,
    space: PartitionFileSpace | None = None,
    bounds: tuple[int, int] | None = None,
) -> NewPartition:
    """Return the partition of a descriptor.

    Args:
        descriptor: identity, type, number of subpartitions.
        network_pool: of the process; the partition has a pool of its own out of it, if it needs one.
        space: where a BLOCKING partition spills to.
        bounds: buffers that it must have and may have, if not those of ``pool_bounds``.

    Raises:
        PlanError: a type that is only a name.
        ConfigurationError: the process has too few buffers.
    """
    descriptor.result_type.check_supported()
    if descriptor.subpartition_count < 1:
        raise IllegalTransitionError(f"partition {descriptor.id} has no subpartition")
    if descriptor.partitioner.kind == SORTED_RUNS:
        return SortedPartition(descriptor)
    required, maximum = bounds or pool_bounds(descriptor, network_pool)
    pool = network_pool.local_pool(required, maximum, str(descriptor.id))
    if descriptor.result_type.has_back_pressure:
        return PipelinedPartition(descriptor, pool)
    return BlockingPartition(descriptor, pool, space)


def pool_bounds(descriptor: ResultPartitionDescriptor, network_pool: NetworkBufferPool) -> tuple[int, int]:
    """Return (required, maximum) buffers of a partition that is written in pages.

    Each subpartition needs an open buffer, and one may be on its way. Where a slow consumer makes the producer wait,
    there may be two per subpartition and some floating ones in flight; BLOCKING may hold a quarter of all buffers
    before it goes to its file.
    """
    open_buffers = 1 if descriptor.partitioner.kind == "BROADCAST" else descriptor.subpartition_count
    required = open_buffers + 1
    if descriptor.result_type.has_back_pressure:
        return required, max(required, 2 * open_buffers + FLOATING_BUFFERS)
    return required, required + max(BLOCKING_BUFFERS_MIN, network_pool.segment_count // 4)
