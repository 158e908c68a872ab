"""Result partitions of all kinds: life cycle, end event, failure and cancellation."""

from __future__ import annotations

import time
from typing import Any

import pytest

from engine.errors import (
    IllegalTransitionError,
    PartitionReleasedError,
    PlanError,
    ProducerFailedError,
    TaskCancelledError,
)
from engine.exchange.blocking_partition import BlockingPartition
from engine.exchange.buffer_pool import Buffer
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.partition_builder import new_partition
from engine.exchange.partition_life import PartitionState
from engine.exchange.pipelined_partition import PipelinedPartition
from engine.exchange.ready_queue import ReadyQueue
from engine.exchange.sorted_partition import SortedPartition
from engine.graph.ship_strategy import SORTED_RUNS, ResultPartitionType
from tests.exchange.world import BLOCKING, PIPELINED, World, descriptor, partition_id


def filled(partition: Any, content: bytes = b"12345678") -> Buffer:
    buffer = partition.request_buffer()
    assert buffer is not None
    buffer.fill(content)
    return buffer


@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
def test_two_producers_of_two_consumers_make_two_partitions_of_two(world: World, result_type: str) -> None:
    partitions = [
        world.partition(descriptor(2, identity=partition_id(subtask), result_type=result_type)) for subtask in range(2)
    ]
    assert [partition.subpartition_count for partition in partitions] == [2, 2]
    with pytest.raises(AttributeError):
        partitions[0].subpartition_count = 3  # type: ignore[misc]


def test_the_type_that_is_only_a_name_is_refused(world: World) -> None:
    persistent = descriptor(1, result_type=ResultPartitionType.PIPELINED_PERSISTENT)
    with pytest.raises(PlanError, match=r"Unsupported result partition type\."):
        new_partition(persistent, world.network)


@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
def test_adding_after_finish_or_release_raises_and_gives_the_buffer_back(world: World, result_type: str) -> None:
    partition = world.partition(descriptor(1, result_type=result_type))
    late = filled(partition)
    partition.add(filled(partition), 0)
    partition.finish()
    assert partition.state is PartitionState.FINISHED
    with pytest.raises(IllegalTransitionError, match="FINISHED"):
        partition.add(late, 0)
    assert late.is_recycled
    with pytest.raises(IllegalTransitionError):
        partition.finish()
    other = world.partition(descriptor(1, result_type=result_type, identity=partition_id(1)))
    late = filled(other)
    other.add(filled(other), 0)
    other.release()
    other.release()
    with pytest.raises(PartitionReleasedError):
        other.add(late, 0)
    assert late.is_recycled
    assert other.pool.in_use == 0
    with pytest.raises(PartitionReleasedError):
        other.create_view(0, ReadyQueue(1), 0)


@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
def test_a_reader_sees_one_end_event_and_it_is_last(world: World, result_type: str) -> None:
    partition = world.partition(descriptor(2, result_type=result_type))
    partition.add(filled(partition), 0)
    partition.add(filled(partition), 0)
    partition.finish()
    for subpartition, count in ((0, 2), (1, 0)):
        reader = partition.create_view(subpartition, ReadyQueue(1), 0)
        elements = [reader.poll()[0] for _ in range(count + 1)]
        assert elements[-1] is END_OF_PARTITION
        for buffer in elements[:-1]:
            buffer.recycle()


@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
def test_failure_reaches_every_consumer(world: World, result_type: str) -> None:
    partition = world.partition(descriptor(2, result_type=result_type))
    readers = [partition.create_view(index, ReadyQueue(1), 0) for index in range(2)]
    partition.add(filled(partition), 0)
    partition.fail(ValueError("line 7"))
    for reader in readers:
        with pytest.raises(ProducerFailedError, match="line 7"):
            reader.poll()
    partition.fail(ValueError("again"))
    assert partition.state is PartitionState.FAILED


@pytest.mark.parametrize("result_type", [PIPELINED, BLOCKING])
def test_cancel_wakes_a_producer_that_waits_for_a_buffer(world: World, result_type: str) -> None:
    partition = world.partition(descriptor(1, result_type=result_type), bounds=(2, 2))
    held = [filled(partition), filled(partition)]
    world.run(lambda: partition.request_buffer(-1))
    while not partition.pool.is_waiting:
        time.sleep(0.001)
    partition.cancel()
    world.join()
    assert isinstance(world.failures[0], TaskCancelledError)
    for buffer in held:
        with pytest.raises(TaskCancelledError):
            partition.add(buffer, 0)


def test_an_unknown_subpartition_is_an_index_error(world: World) -> None:
    with pytest.raises(IndexError):
        world.partition(descriptor(2)).create_view(2, ReadyQueue(1), 0)


def test_the_kind_of_partition_follows_type_and_partitioner(world: World) -> None:
    kinds = [
        type(world.partition(descriptor(2, kind, result_type=result_type, identity=partition_id(number))))
        for number, (kind, result_type) in enumerate(
            [("HASH", PIPELINED), ("HASH", BLOCKING), ("BROADCAST", BLOCKING), (SORTED_RUNS, BLOCKING)]
        )
    ]
    assert kinds == [PipelinedPartition, BlockingPartition, BlockingPartition, SortedPartition]
    assert len(world.network.pools) == 3, "sorted runs lie in managed memory: they need no buffers"
