"""PartitionTracker: the BLOCKING partitions that no consumer needs any more.

A BLOCKING partition can be read again and again; it is dropped when all of its consumers are FINISHED. Consumers
that failed or may still run keep it. PIPELINED partitions are dropped by their last reader, not here. Pure.

Source: Flink's JobMasterPartitionTracker.
Held by: tests/jobmaster/test_execution_graph.py
"""

from __future__ import annotations

from collections import defaultdict

from engine.ids import ResultPartitionId
from engine.jobmaster.execution_vertex import ExecutionVertex


def partitions_to_release(finished: ExecutionVertex) -> dict[str, tuple[ResultPartitionId, ...]]:
    """Mark the partitions that only waited for ``finished`` as released; return their ids by TaskExecutor address."""
    by_address: dict[str, list[ResultPartitionId]] = defaultdict(list)
    for edges in finished.inputs:
        if not edges.partitions or not edges.partitions[0].data_set.result_type.is_persistent:
            continue
        if not any(partition.is_read for partition in edges.read_alike):
            continue
        for partition in edges.partitions:
            if partition.is_released:
                continue
            if partition.is_read:
                partition.is_released = True
                slot = partition.producer.current.slot
                assert slot is not None, f"{partition.producer.name} finished without a slot"
                by_address[slot.address].append(partition.id)
                if all(each.is_released for each in partition.producer.partitions):
                    partition.producer.current.subpartition_bytes = ()
    return {address: tuple(ids) for address, ids in by_address.items()} if by_address else {}
