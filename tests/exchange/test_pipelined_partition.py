"""PIPELINED partitions: exact counters, one pool, released by the last consumer."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from engine.errors import IllegalTransitionError, PartitionReleasedError, TaskCancelledError
from engine.exchange.buffer_pool import Buffer
from engine.exchange.partition_life import PartitionState
from engine.exchange.ready_queue import ReadyQueue
from engine.graph.ship_strategy import ResultPartitionType
from tests.exchange.test_result_partition import filled
from tests.exchange.world import BLOCKING, PIPELINED, World, descriptor
from tests.rpc.served import until

BATCH = pa.record_batch({"a": [1, 2, 3]})


def test_counters_are_exact(world: World) -> None:
    partition = world.partition(descriptor(2))
    for size in (8, 16, 24):
        partition.add(filled(partition, bytes(size)), size % 2)
    partition.add_batch(BATCH, 100)
    assert (partition.total_buffers, partition.total_bytes) == (5, 248)
    late = filled(partition)
    partition.finish()
    with pytest.raises(IllegalTransitionError):
        partition.add(late, 0)
    assert (partition.total_buffers, partition.total_bytes) == (5, 248)


def test_the_last_consumed_subpartition_releases_a_pipelined_partition(world: World) -> None:
    partition = world.partition(descriptor(3))
    partition.finish()
    for pending in (2, 1):
        partition.on_consumed_subpartition()
        assert partition._pending_references == pending
        assert partition.state is PartitionState.FINISHED
    partition.on_consumed_subpartition()
    assert partition.state is PartitionState.RELEASED
    assert world.manager.find(partition.id) is None
    with pytest.raises(IllegalTransitionError, match=r"^All references released\.$"):
        partition.on_consumed_subpartition()


def test_a_producer_that_ends_when_its_consumer_has_gone_hears_that(world: World) -> None:
    partition = world.partition(descriptor(2))
    view = partition.create_view(1, ReadyQueue(1), 0)
    view.release()
    with pytest.raises(PartitionReleasedError):
        partition.finish()


def test_consuming_a_released_partition_changes_nothing(world: World) -> None:
    partition = world.partition(descriptor(2))
    partition.release()
    partition.on_consumed_subpartition()
    assert partition._pending_references == 2


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


def test_a_producer_that_waits_with_a_batch_says_for_which_consumer(world: World) -> None:
    partition = world.partition(descriptor(3, "BROADCAST"))
    for queue in partition.queues[:2]:
        queue.attach(ReadyQueue(1), 0)
    for _ in range(4):
        partition.add_batch(BATCH, 10)
        for queue in partition.queues[:2]:
            queue.poll()
    assert not partition.is_waiting
    world.run(lambda: partition.add_batch(BATCH, 10))
    until(lambda: partition.is_waiting)
    assert partition.full_subpartitions() == [2]
    partition.queues[2].attach(ReadyQueue(1), 0)
    partition.queues[2].poll()
    world.join()
    assert not partition.is_waiting
    assert not world.failures


def test_cancel_wakes_a_producer_that_waits_with_a_batch(world: World) -> None:
    partition = world.partition(descriptor(1, "FORWARD"))
    for _ in range(4):
        partition.add_batch(BATCH, 10)
    world.run(lambda: partition.add_batch(BATCH, 10))
    time.sleep(0.02)
    partition.cancel()
    world.join()
    assert isinstance(world.failures[0], TaskCancelledError)


def test_all_subpartitions_draw_on_the_partition_s_one_pool(world: World) -> None:
    partition = world.partition(descriptor(2))
    partition.add(filled(partition), 0)
    partition.add(filled(partition), 1)
    assert partition.pool.in_use == 2
    assert not any(isinstance(value, Buffer) for value in vars(partition).values())


@pytest.mark.parametrize("kind", [PIPELINED, BLOCKING])
def test_a_finished_partition_requires_no_buffers_any_more(world: World, kind: ResultPartitionType) -> None:
    partition = world.partition(descriptor(2, result_type=kind))
    assert partition.pool.required > 0
    partition.finish()
    assert partition.pool.required == 0
