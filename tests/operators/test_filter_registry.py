"""Filters of all who read a partition come together, or none do; and whoever waits can be ended."""

import functools
import threading

import pyarrow as pa
import pytest

from engine.errors import TaskCancelledError
from engine.ids import ExecutionAttemptId, IntermediateDataSetId, JobVertexId, ResultPartitionId
from engine.operators.filter_registry import FilterRegistry
from engine.operators.runtime_filters import RuntimeFilters, together
from engine.records.key_filter import key_filter

END_S = 60


@functools.cache
def partition(attempt=0):
    return ResultPartitionId(
        IntermediateDataSetId(JobVertexId(1), 0), ExecutionAttemptId.create(JobVertexId(1), 0, attempt)
    )


def filters(*keys):
    return RuntimeFilters({(3, 0): key_filter([pa.array(keys, pa.int64())], 1 << 10)})


def never():
    """The task runs on."""


def cancelled():
    raise TaskCancelledError("cancelled")


def waiting(board, count):
    """Wait in a thread; return it and what it gets."""
    got, asked = [], partition()
    thread = threading.Thread(target=lambda: got.append(board.wait(asked, count, never)), daemon=True)
    thread.start()
    return thread, got


def test_a_producer_has_the_filters_when_all_are_there():
    board = FilterRegistry()
    thread, got = waiting(board, 2)
    board.offer(partition(), 0, filters(1))
    thread.join(0.2)
    assert thread.is_alive()
    board.offer(partition(), 1, filters(2))
    thread.join(END_S)
    whole = together(got[0])
    assert whole.filters[3, 0].mask(pa.array([1, 2, 3])).array().to_pylist() == [True, True, False]
    whole.close()


def test_one_consumer_without_filters_is_enough_to_have_none():
    board = FilterRegistry()
    thread, got = waiting(board, 3)
    board.offer(partition(), 2, None)
    thread.join(END_S)
    assert got == [None]


def test_a_filter_that_one_part_has_not_is_none_of_the_whole():
    one = filters(1)
    two = RuntimeFilters({})
    assert together([one, two]) is None


def test_what_an_earlier_attempt_offered_is_none_of_the_next_ones():
    board = FilterRegistry()
    board.offer(partition(attempt=0), 0, filters(1))
    with pytest.raises(TaskCancelledError):
        board.wait(partition(attempt=1), 1, cancelled)


def test_a_cancelled_producer_stops_to_wait():
    with pytest.raises(TaskCancelledError):
        FilterRegistry().wait(partition(), 1, cancelled)


def test_offers_are_forgotten_when_they_are_withdrawn():
    board = FilterRegistry()
    board.offer(partition(), 0, filters(1))
    board.offer(partition(), 1, None)
    for subpartition in (0, 1, 1):
        board.withdraw(partition(), subpartition)
    assert board.partition_count == 0


def test_a_producer_that_waits_is_not_woken_before_the_last_offer(monkeypatch):
    monkeypatch.setattr("engine.operators.filter_registry._CHECK_EVERY_S", END_S)
    board, looks = FilterRegistry(), []
    thread = threading.Thread(target=lambda: board.wait(partition(), 5, lambda: looks.append(1)), daemon=True)
    thread.start()
    while not looks:
        thread.join(0.001)
    for part in range(4):
        board.offer(partition(), part, filters(part))
        thread.join(0.01)
    assert looks == [1]
    board.offer(partition(), 4, filters(4))
    thread.join(END_S)
    assert not thread.is_alive() and looks == [1]
