"""Subtasks of a source that read each other's splits: every split once, whoever comes late, leaves early or is slow."""

import itertools
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.graph.operator_descriptor import LimitOperator, SourceOperator
from engine.graph.source_spec import SourceSplit
from engine.ids import ExecutionAttemptId, JobId, JobVertexId
from engine.operators.split_queues import SplitQueues
from engine.parquet.source import parquet_source
from tests.operators.task_world import TaskWorld, described, gate, in_thread, partition

END_S = 60


def splits(*sizes, path="t"):
    return [SourceSplit(path, index, index + 1, size) for index, size in enumerate(sizes)]


def starts(*taken):
    return [split.start for split in taken]


def test_own_splits_come_in_order_and_then_the_last_ones_of_who_has_most_left():
    queues = SplitQueues()
    done = queues.enter("source", splits(1))
    few, many = queues.enter("source", splits(1, 1, path="few")), queues.enter("source", splits(5, 4, 3, path="many"))
    queues.enter("another source", splits(100))
    assert starts(done.take(), many.take()) == [0, 0]
    assert [(split.path, split.start) for split in iter(done.take, None)] == [
        ("many", 2),  # of 7 bytes, against 2
        ("many", 1),  # of 4
        ("few", 1),
        ("few", 0),
    ]
    assert few.take() is many.take() is None


def test_what_somebody_leaves_is_read_by_nobody_and_nothing_stays_behind():
    queues = SplitQueues()
    one, other = queues.enter("source", splits(1)), queues.enter("source", splits(1, 1))
    other.leave()
    other.leave()
    assert starts(one.take()) == [0]
    assert one.take() is other.take() is None
    late = queues.enter("source", splits(1, 1, 1))
    assert starts(one.take(), late.take(), late.take()) == [2, 0, 1]
    one.leave()
    late.leave()
    assert queues.queue_count == 0


@given(st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1, max_size=4), st.data())
def test_in_whatever_turns_each_split_is_taken_once(sizes, data):
    queues = SplitQueues()
    given_splits = [splits(*each, path=str(number)) for number, each in enumerate(sizes)]
    waiting, present, taken = list(given_splits), [], []
    while waiting or present:
        if waiting and (not present or data.draw(st.booleans())):
            present.append(queues.enter("source", waiting.pop()))
            continue
        queue = data.draw(st.sampled_from(present))
        split = queue.take()
        if split is None:
            queue.leave()
            present.remove(queue)
        else:
            taken.append(split)
    assert sorted(taken, key=lambda split: (split.path, split.start)) == [
        split for each in given_splits for split in each
    ]
    assert queues.queue_count == 0


def test_threads_take_each_split_once():
    queues = SplitQueues()
    taken = [[] for _ in range(4)]

    present = threading.Barrier(4)

    def read(number):
        queue = queues.enter("source", splits(*[1] * 2000, path=str(number)))
        present.wait(END_S)
        for split in iter(queue.take, None):
            taken[number].append((split.path, split.start))
            if number == 0:
                time.sleep(0.0005)

    threads = [in_thread(lambda number=number: read(number)) for number in range(4)]
    for thread, errors in threads:
        thread.join(END_S)
        assert errors == []
    assert sorted(itertools.chain(*taken)) == sorted(itertools.product("0123", range(2000)))
    assert len(taken[0]) < 2000


@pytest.fixture
def world(tmp_path):
    world = TaskWorld(tmp_path)
    yield world
    world.services.partition_manager.close()
    world.close()


class SharedSource:
    """Subtasks of a source of ten row groups of 100 rows, two of whose tasks share splits."""

    def __init__(self, world, folder):
        self.world = world
        self.schema = pa.schema([("n", pa.int64())])
        pq.write_table(pa.table({"n": range(1000)}, self.schema), folder / "t.parquet", row_group_size=100)
        self.spec, _, _ = parquet_source(folder / "t.parquet")
        self.job_id = JobId.random()

    def task(self, index, chain=(), attempt_number=0, **fields):
        """Return a task of one half, and what reads it."""
        descriptor, _ = partition(self.schema, number=7 + index)
        half = len(self.spec.splits) // 2
        task = self.world.task(
            (described(SourceOperator(self.spec), self.schema), *chain),
            self.spec.splits[index * half :][:half],
            partitions=(descriptor,),
            attempt=ExecutionAttemptId.create(JobVertexId(0), index, attempt_number),
            fields={"job_id": self.job_id, "shares_splits": True, **fields},
        )
        return task, gate(descriptor)

    def queue(self, index, attempt_number=0):
        """Return the queue of a subtask that reads nothing by itself."""
        half = len(self.spec.splits) // 2
        key = (self.job_id, JobVertexId(0), attempt_number)
        return self.world.services.split_queues.enter(key, self.spec.splits[index * half :][:half])

    def rows(self, task):
        """Run a task; return the values that it sent."""
        sent, task_gate = task
        consumer = self.world.task(
            (described(LimitOperator(10_000), self.schema), self.world.sink(self.schema)), gates=(task_gate,)
        )
        thread, errors = in_thread(sent.run)
        before = set(self.world.staged())
        consumer.run()
        thread.join(END_S)
        assert errors == []
        return [
            int(line) for file in self.world.staged() if file not in before for line in file.read_text().splitlines()
        ]


@pytest.fixture
def shared(world, tmp_path):
    return SharedSource(world, tmp_path)


def test_a_task_reads_what_another_one_has_not_begun(shared):
    slow = shared.queue(1)
    begun = slow.take()
    rows = shared.rows(shared.task(0))
    assert rows[:500] == list(range(500))
    assert sorted(rows[500:]) == list(range(600, 1000))
    assert starts(begun) == [5] and slow.take() is None
    slow.leave()
    assert shared.world.services.split_queues.queue_count == 0


@pytest.mark.parametrize("how", ["alone", "another attempt", "not told"])
def test_a_task_reads_its_own_splits_where_it_shares_them_with_nobody(shared, how):
    other = shared.queue(1, attempt_number=how == "another attempt")
    if how == "alone":
        other.leave()
    assert shared.rows(shared.task(0, shares_splits=how != "not told")) == list(range(500))
    other.leave()


def test_who_needs_no_more_rows_leaves_its_splits_unread(shared):
    task = shared.task(0, chain=(described(LimitOperator(10), shared.schema),))
    assert shared.rows(task) == list(range(10))
    assert shared.rows(shared.task(1)) == list(range(500, 1000))
    assert shared.world.services.split_queues.queue_count == 0


def test_a_task_that_is_cancelled_leaves_nothing_behind(shared):
    task, _ = shared.task(0)
    task.cancel()
    with pytest.raises(Exception, match="cancelled"):
        task.run()
    assert shared.world.services.split_queues.queue_count == 0
