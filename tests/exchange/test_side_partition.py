"""Batches beside the rows of a task: all readers get all of them, those that came early and those that come late."""

import pyarrow as pa
import pytest

from engine.errors import IllegalTransitionError, PartitionReleasedError, TaskCancelledError
from engine.exchange.elements import END_OF_PARTITION
from engine.exchange.ready_queue import TIMED_OUT, ReadyQueue
from engine.exchange.side_partition import SidePartition
from tests.exchange.world import partition_id

BATCHES = [pa.RecordBatch.from_pydict({"n": [number]}) for number in range(3)]


def _rest(view):
    found = []
    while (element := view.poll()[0]) is not None:
        found.append(element)
    return found


def test_readers_before_and_after_the_end_have_all_batches_once():
    partition, ready = SidePartition(partition_id()), ReadyQueue(2)
    early = partition.create_view(0, ready, 0)
    assert (ready.pop_channel(0), early.poll(), early.backlog()) == (0, (None, False), 0)
    partition.complete(BATCHES)
    assert (ready.pop_channel(0), early.backlog()) == (0, 3)
    late = partition.create_view(7, ready, 1)
    assert (ready.pop_channel(0), ready.pop_channel(0)) == (1, TIMED_OUT)
    assert _rest(early) == [*BATCHES, END_OF_PARTITION] == _rest(late)
    for view in (early, late):
        assert (view.poll(), view.backlog()) == ((None, False), 0)
        view.consumed()
        view.release()


def test_none_is_told_as_well():
    partition = SidePartition(partition_id())
    partition.complete([])
    assert _rest(partition.create_view(0, ReadyQueue(1), 0)) == [END_OF_PARTITION]
    with pytest.raises(IllegalTransitionError):
        partition.complete([])


@pytest.mark.parametrize("is_complete", [False, True])
def test_a_reader_hears_that_the_partition_was_released(is_complete):
    partition, ready = SidePartition(partition_id()), ReadyQueue(1)
    view = partition.create_view(0, ready, 0)
    if is_complete:
        partition.complete(BATCHES)
    ready.pop_channel(0)
    partition.release()
    partition.release()
    assert (ready.pop_channel(0), partition.batches) == (0, None)
    for read in (view.poll, lambda: partition.create_view(0, ready, 0)):
        with pytest.raises(PartitionReleasedError):
            read()


def test_what_was_cancelled_cannot_be_completed():
    partition = SidePartition(partition_id())
    partition.cancel()
    with pytest.raises(TaskCancelledError):
        partition.complete(BATCHES)
    assert partition.batches is None


def test_a_reader_that_has_gone_is_not_woken():
    partition, ready = SidePartition(partition_id()), ReadyQueue(1)
    partition.create_view(0, ready, 0).release()
    ready.pop_channel(0)
    partition.complete(BATCHES)
    assert ready.pop_channel(0) == TIMED_OUT
