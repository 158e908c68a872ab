"""Sorted runs as a result partition: who holds them, and until when."""

import pytest

from engine.errors import IllegalTransitionError, PartitionReleasedError, TaskCancelledError
from engine.exchange.ready_queue import ReadyQueue
from engine.exchange.record_writer_builder import RecordWriterBuilder
from engine.exchange.sorted_partition import SAMPLES_MAX, SortedPartition
from engine.exchange.sorted_runs_writer import SortedRunsWriter
from engine.graph.deployment import RangeSamples
from engine.graph.ship_strategy import SORTED_RUNS
from tests.exchange.world import BLOCKING, descriptor


class Runs:
    """Runs of so many rows of ten bytes."""

    spilled_bytes = 7

    def __init__(self, rows):
        self.row_count = rows
        self.row_bytes = 10 * rows
        self.releases = 0

    def samples(self, count):
        keys = [bytes([index >> 8, index & 255]) for index in range(self.row_count)]
        return keys[::-1], [10] * self.row_count

    def belong_to(self, partition):
        self.partition = partition

    def release(self):
        self.releases += 1


@pytest.fixture
def partition(world):
    described = descriptor(3, SORTED_RUNS, ("k",), BLOCKING)
    return world.partition(described)


def test_runs_are_kept_counted_and_readable_once_the_producer_has_finished(world, partition):
    assert isinstance(partition, SortedPartition)
    writer = RecordWriterBuilder(partition, None).build()
    assert isinstance(writer, SortedRunsWriter)
    with pytest.raises(IllegalTransitionError, match="PRODUCING"):
        _ = partition.runs
    runs = Runs(5)
    writer.keep(runs)
    assert (writer.rows, writer.bytes, partition.rows, partition.total_bytes) == (5, 50, 5, 50)
    assert partition.spilled_bytes == 0, "what the sort spilled is its operator's"
    runs.spilled_bytes += 50
    assert partition.spilled_bytes == 50
    writer.finish()
    assert world.manager.find(partition.id).runs is runs
    world.manager.release(partition.id)
    assert runs.releases == 1
    with pytest.raises(PartitionReleasedError):
        _ = partition.runs


@pytest.mark.parametrize("end", ["fail", "cancel"])
def test_runs_of_a_producer_that_fails_or_is_cancelled_are_released(partition, end):
    runs = Runs(2)
    partition.keep(runs)
    partition.fail(ValueError("x")) if end == "fail" else partition.cancel()
    assert runs.releases == 1
    late = Runs(1)
    with pytest.raises((IllegalTransitionError, TaskCancelledError)):
        partition.keep(late)
    assert late.releases == 1
    partition.release()


@pytest.mark.parametrize("rows", [0, 1, SAMPLES_MAX, 3 * SAMPLES_MAX + 1])
def test_samples_are_in_order_few_and_weigh_all_rows(partition, rows):
    assert partition.samples() == RangeSamples()
    partition.keep(Runs(rows))
    samples = partition.samples()
    assert list(samples.keys) == sorted(samples.keys)
    assert len(samples.keys) == min(rows, len(samples.keys)) <= SAMPLES_MAX
    assert sum(samples.weights) == 10 * rows
    partition.release()


def test_batches_and_subpartitions_are_refused(partition):
    writer = SortedRunsWriter(partition)
    with pytest.raises(IllegalTransitionError, match="not batches"):
        writer.emit(None)
    writer.flush()
    assert not writer.flush_if_older_than(0)
    partition.keep(Runs(1))
    writer.finish()
    with pytest.raises(IllegalTransitionError, match="ranges of keys"):
        partition.create_view(0, ReadyQueue(1), 0)
    assert partition.subpartition_bytes == b""
    writer.close()
    partition.release()
