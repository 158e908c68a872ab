"""BLOCKING partitions: their share of the pool, their file, and broadcasts that are stored once."""

from __future__ import annotations

import pytest

from engine.errors import SpillError
from engine.exchange.blocking_data import DataState
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.partition_builder import new_partition
from engine.exchange.partition_life import PartitionState
from engine.exchange.ready_queue import ReadyQueue
from engine.graph.packed_sizes import sizes_of
from tests.exchange.test_result_partition import filled
from tests.exchange.world import BLOCKING, World, descriptor, partition_id


def test_blocking_results_take_a_share_of_the_pool_and_then_the_file(world: World) -> None:
    partition = world.partition(descriptor(2, result_type=BLOCKING))
    for number in range(200):
        partition.add(filled(partition, b"%08d" % number), number % 2)
    assert world.network.peak_count <= 3 + 64 // 4
    assert partition.data.state is DataState.FILE
    assert partition.pool.in_use == 0
    partition.finish()
    for _ in range(2):
        reader = partition.create_view(1, ReadyQueue(1), 0)
        numbers = []
        while (element := reader.poll()[0]) is not END_OF_PARTITION:
            numbers.append(int(element.to_bytes()))
            element.recycle()
        reader.consumed()
        reader.release()
        assert numbers == list(range(1, 200, 2))
    assert partition.state is PartitionState.FINISHED


def test_finished_blocking_data_makes_room_for_a_new_pool(world: World) -> None:
    partition = world.partition(descriptor(1, result_type=BLOCKING), bounds=(2, 64))
    for _ in range(40):
        partition.add(filled(partition), 0)
    partition.finish()
    assert partition.pool.in_use == 40
    newcomer = world.network.local_pool(60, 60)
    assert partition.pool.in_use == 0
    assert partition.data.state is DataState.FILE
    buffers = [newcomer.request(0) for _ in range(60)]
    assert world.network.in_use == 60
    for buffer in buffers:
        buffer.recycle()


def test_a_file_is_read_without_any_buffer_of_the_pool(world: World) -> None:
    partition = world.partition(descriptor(1, result_type=BLOCKING))
    for _ in range(30):
        partition.add(filled(partition), 0)
    partition.finish()
    partition.data.spill()
    greedy = world.network.local_pool(64, 64)
    held = [greedy.request(0) for _ in range(64)]
    reader = partition.create_view(0, ReadyQueue(1), 0)
    for _ in range(30):
        reader.poll()[0].recycle()
    assert reader.poll()[0] is END_OF_PARTITION
    assert world.network.in_use == 64
    for buffer in held:
        buffer.recycle()


def test_a_blocking_broadcast_is_stored_once_and_read_by_all(world: World) -> None:
    partition = world.partition(descriptor(4, "BROADCAST", result_type=BLOCKING))
    partition.broadcast(filled(partition))
    assert partition.pool.in_use == 1
    assert partition.total_buffers == 1
    partition.finish()
    for subpartition in range(4):
        buffer = partition.create_view(subpartition, ReadyQueue(1), 0).poll()[0]
        assert buffer.to_bytes() == b"12345678"
        buffer.recycle()


def test_without_a_folder_a_blocking_partition_says_so(world: World) -> None:
    described = descriptor(1, result_type=BLOCKING)
    partition = new_partition(described, world.network, bounds=(1, 1))
    partition.add(filled(partition), 0)
    with pytest.raises(SpillError, match="nowhere to spill"):
        partition.request_buffer()
    partition.release()


def test_a_blocking_partition_knows_the_bytes_of_each_subpartition_and_its_most_buffers(world: World) -> None:
    partition = world.partition(descriptor(3, result_type=BLOCKING))
    partition.add(filled(partition, b"1234"), 2)
    partition.add(filled(partition, b"12345678"), 0)
    partition.add(filled(partition, b"1"), 2)
    partition.finish()
    assert list(sizes_of(partition.subpartition_bytes)) == [8, 0, 5]
    assert sum(sizes_of(partition.subpartition_bytes)) == partition.total_bytes
    assert partition.data is not None and partition.data.spill() == 3
    assert (partition.pool.in_use, partition.buffers_peak) == (0, 3)
    assert world.partition(descriptor(3, identity=partition_id(1))).subpartition_bytes == b""
