from __future__ import annotations

import time

import pyarrow as pa
import pytest

from engine.errors import (
    IllegalTransitionError,
    PartitionReleasedError,
    PlanError,
    ProducerFailedError,
    SpillError,
    TaskCancelledError,
)
from engine.exchange.blocking_data import BlockingData, DataState
from engine.exchange.buffer_pool import Buffer
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.pipelined_subpartition import PipelinedSubpartition
from engine.exchange.ready_queue import ReadyQueue
from engine.exchange.result_partition import PartitionState, ResultPartition
from engine.graph.ship_strategy import ResultPartitionType
from tests.exchange.world import BLOCKING, PIPELINED, World, descriptor, partition_id

BATCH = pa.record_batch({"a": [1, 2, 3]})


def filled(partition: ResultPartition, content: bytes = b"12345678") -> Buffer:
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


def test_all_subpartitions_draw_on_the_partition_s_one_pool(world: World) -> None:
    partition = world.partition(descriptor(2))
    partition.add(filled(partition), 0)
    partition.add(filled(partition), 1)
    assert partition.pool.in_use == 2
    assert not any(isinstance(value, Buffer) for value in vars(partition).values())


def test_the_kind_of_subpartition_follows_the_type(world: World) -> None:
    pipelined = world.partition(descriptor(2))
    blocking = world.partition(descriptor(2, result_type=BLOCKING, identity=partition_id(1)))
    assert [type(queue) for queue in pipelined.subpartitions] == [PipelinedSubpartition] * 2
    assert pipelined.data is None
    assert blocking.subpartitions == ()
    assert isinstance(blocking.data, BlockingData)


def test_the_type_that_is_only_a_name_is_refused(world: World) -> None:
    pool = world.network.local_pool(1, 1)
    persistent = descriptor(1, result_type=ResultPartitionType.PIPELINED_PERSISTENT)
    with pytest.raises(PlanError, match=r"Unsupported result partition type\."):
        ResultPartition(persistent, pool)


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


def test_counters_are_exact(world: World) -> None:
    partition = world.partition(descriptor(2))
    for size in (8, 16, 24):
        partition.add(filled(partition, bytes(size)), size % 2)
    partition.add_batch(BATCH, 1, 100)
    assert (partition.total_buffers, partition.total_bytes) == (4, 148)
    late = filled(partition)
    partition.finish()
    with pytest.raises(IllegalTransitionError):
        partition.add(late, 0)
    assert (partition.total_buffers, partition.total_bytes) == (4, 148)


def test_the_last_consumed_subpartition_releases_a_pipelined_partition(world: World) -> None:
    partition = world.partition(descriptor(3))
    partition.finish()
    for pending in (2, 1):
        partition.on_consumed_subpartition()
        assert partition.pending_references == pending
        assert partition.state is PartitionState.FINISHED
    partition.on_consumed_subpartition()
    assert partition.state is PartitionState.RELEASED
    assert world.manager.find(partition.id) is None
    with pytest.raises(IllegalTransitionError, match=r"^All references released\.$"):
        partition.on_consumed_subpartition()


def test_consuming_a_released_partition_changes_nothing(world: World) -> None:
    partition = world.partition(descriptor(2))
    partition.release()
    partition.on_consumed_subpartition()
    assert partition.pending_references == 2


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


def test_a_pipelined_broadcast_shares_one_segment(world: World) -> None:
    partition = world.partition(descriptor(4, "BROADCAST"))
    partition.broadcast(filled(partition))
    assert partition.pool.in_use == 1
    assert partition.total_buffers == 4
    readers = [partition.create_view(subpartition, ReadyQueue(1), 0) for subpartition in range(4)]
    for reader in readers:
        assert partition.pool.in_use == 1
        reader.poll()[0].recycle()
    assert partition.pool.in_use == 0


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


def test_batches_are_not_stored_in_a_blocking_partition(world: World) -> None:
    partition = world.partition(descriptor(1, "FORWARD", result_type=BLOCKING))
    with pytest.raises(IllegalTransitionError, match="row pages"):
        partition.add_batch(BATCH, 0, 1)


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


def test_cancel_wakes_a_producer_that_waits_with_a_batch(world: World) -> None:
    partition = world.partition(descriptor(1, "FORWARD"))
    for _ in range(4):
        partition.add_batch(BATCH, 0, 10)
    world.run(lambda: partition.add_batch(BATCH, 0, 10))
    time.sleep(0.02)
    partition.cancel()
    world.join()
    assert isinstance(world.failures[0], TaskCancelledError)


def test_without_a_folder_a_blocking_partition_says_so(world: World) -> None:
    described = descriptor(1, result_type=BLOCKING)
    partition = ResultPartition(described, world.network.local_pool(1, 1))
    partition.add(filled(partition), 0)
    with pytest.raises(SpillError, match="nowhere to spill"):
        partition.request_buffer()
    partition.release()


def test_an_unknown_subpartition_is_an_index_error(world: World) -> None:
    with pytest.raises(IndexError):
        world.partition(descriptor(2)).create_view(2, ReadyQueue(1), 0)


def test_a_blocking_partition_knows_the_bytes_of_each_subpartition_and_its_most_buffers(world: World) -> None:
    partition = world.partition(descriptor(3, result_type=BLOCKING))
    partition.add(filled(partition, b"1234"), 2)
    partition.add(filled(partition, b"12345678"), 0)
    partition.add(filled(partition, b"1"), 2)
    partition.finish()
    assert partition.subpartition_bytes == (8, 0, 5)
    assert sum(partition.subpartition_bytes) == partition.total_bytes
    assert partition.data is not None and partition.data.spill() == 3
    assert (partition.pool.in_use, partition.buffers_peak) == (0, 3)
    assert world.partition(descriptor(3, identity=partition_id(1))).subpartition_bytes == ()
