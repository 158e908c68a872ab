"""One build side for the subtasks of a broadcast join: shared, copied, and what happens when one of them ends early."""

import threading
import time
from collections import Counter
from types import SimpleNamespace

import msgspec
import pyarrow as pa
import pyarrow.csv
import pytest

from engine.errors import ProducerFailedError, TaskCancelledError
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.operator_descriptor import HashJoinOperator, LimitOperator, OperatorDescriptor
from engine.graph.said_operators import JoinType
from engine.ids import ExecutionAttemptId, JobId, JobVertexId
from engine.memory.budget import Kind, process_budget
from engine.operators.chained_source import ChainedSource
from engine.operators.hash_join_driver import AHEAD_BYTES_MAX, HashJoinDriver
from engine.operators.shared_builds import SharedBuilds
from engine.records.arrow_batch import batch_bytes
from tests.operators.task_world import TaskWorld, described, gate, in_thread, partition

SUBTASKS = 3
LEFT = pa.table({"k": [n % 5000 for n in range(9000)], "v": list(range(9000))})
END_S = 60


def right(rows, size):
    return pa.table({"k2": list(range(rows)), "w": [f"{n}" * (size // len(str(n))) for n in range(rows)]})


class JoinWorld:
    """Producers and subtasks of one broadcast join."""

    def __init__(self, folder, how=JoinType.INNER, build_left=False):
        self.world = TaskWorld(folder)
        self.job_id = JobId.random()
        self.how = how
        self.build_left = build_left
        self.shares_marks = False
        self.started = []
        self.late = []

    @property
    def member_count(self):
        return self.world.services.shared_builds.member_count

    def start(self, work):
        thread, errors = in_thread(work)
        self.started.append(thread)
        return thread, errors

    def produced(self, table, number, consumers, kind, run=True):
        """Start a producer; return its partition."""
        descriptor, attempt = partition(table.schema, consumers, kind, "PIPELINED", number)
        head, splits = self.world.source(table)
        task = self.world.task((head,), splits, partitions=(descriptor,), attempt=attempt)
        if run:
            self.start(task.run)
        else:
            self.late.append(task.run)
        return descriptor

    def subtask(self, index, build, build_channel, *, probed=LEFT, run=True, limit=None, **configuration):
        """Return a subtask that joins a table with a broadcast partition, and passes so many rows on."""
        probe = self.produced(probed, 10 + index, 1, "FORWARD", run=run)
        columns = ((0, 0), (0, 1), (1, 1))
        operator = HashJoinOperator(self.how, ("k",), ("k2",), self.build_left, columns, shares_marks=self.shares_marks)
        output = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("w", pa.string())])
        schemas = (to_plan_schema(LEFT.schema), build.schema)
        join = OperatorDescriptor(0, "join", operator, schemas, to_plan_schema(output), 1.0)
        build_gate = msgspec.structs.replace(gate(build, build_channel), input_index=1, is_broadcast=True)
        limited = () if limit is None else (described(LimitOperator(limit), output),)
        return self.world.task(
            (join, *limited, self.world.sink(output)),
            gates=(gate(probe), build_gate),
            attempt=ExecutionAttemptId.create(JobVertexId(3), index, 0),
            slot_pages=self.world.resources.sizes.pages // SUBTASKS,
            fields={"job_id": self.job_id, "subtask_index": index, "parallelism": SUBTASKS},
            **configuration,
        )

    def rows(self):
        """Count the rows that all subtasks have written."""
        rows = Counter()
        for file in (each for each in self.world.staged() if each.stat().st_size):
            table = pa.csv.read_csv(file, pa.csv.ReadOptions(column_names=["k", "v", "w"]),
                                    convert_options=pa.csv.ConvertOptions(column_types={"w": pa.string()}))  # fmt: skip
            rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return rows

    def close(self):
        for thread in self.started:
            thread.join(END_S)
            assert not thread.is_alive()
        assert self.member_count == 0
        self.world.services.partition_manager.close()
        self.world.close()


@pytest.fixture
def join_world(tmp_path):
    world = JoinWorld(tmp_path)
    yield world
    world.close()


def wait_until(condition):
    deadline = time.monotonic() + END_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def run_all(join_world, tasks):
    """Run subtasks to their end; what they share is sent when all of them are there."""
    runs = [join_world.start(task.run) for task in tasks]
    wait_until(lambda: join_world.member_count == len(tasks))
    for work in join_world.late:
        join_world.start(work)
    for thread, _ in runs:
        thread.join(END_S)
    assert [errors for _, errors in runs] == [[]] * len(tasks)
    return [task.counters() for task in tasks]


@pytest.mark.parametrize("how", [JoinType.INNER, JoinType.LEFT])
def test_subtasks_of_a_process_build_once(join_world, how):
    join_world.how = how
    table = right(3000, 20)
    build = join_world.produced(table, 2, SUBTASKS, "BROADCAST", run=False)
    counters = run_all(join_world, [join_world.subtask(index, build, index) for index in range(SUBTASKS)])
    assert sorted(each.managed_bytes_peak > 0 for each in counters) == [False, False, True]
    assert [each.spilled_bytes for each in counters] == [0] * SUBTASKS
    assert [each.rows_in for each in counters] == [9000 + 3000] * SUBTASKS
    texts = table.column("w").to_pylist()
    rows = {(k, v): texts[k] if k < 3000 else "" for k, v in zip(*LEFT.to_pydict().values(), strict=True)}
    assert join_world.rows() == Counter(
        {(k, v, w): SUBTASKS for (k, v), w in rows.items() if k < 3000 or how is JoinType.LEFT}
    )


@pytest.mark.parametrize("force_spill", ["false", "true"])
def test_a_build_side_that_does_not_fit_is_copied_and_each_spills(join_world, force_spill):
    table = right(300, 20) if force_spill == "true" else right(3000, 400)
    build = join_world.produced(table, 2, SUBTASKS, "BROADCAST", run=False)
    tasks = [join_world.subtask(index, build, index, debug__force_spill=force_spill) for index in range(SUBTASKS)]
    counters = run_all(join_world, tasks)
    assert all(each.spilled_bytes > 0 for each in counters)
    texts = table.column("w").to_pylist()
    rows = zip(*LEFT.to_pydict().values(), strict=True)
    assert join_world.rows() == Counter({(k, v, texts[k]): SUBTASKS for k, v in rows if k < len(texts)})


MARKING = [JoinType.RIGHT, JoinType.FULL]


@pytest.mark.parametrize("how", MARKING)
@pytest.mark.parametrize("memory", ["whole", "too little", "force-spill"])
def test_subtasks_mark_one_build_side_and_the_last_one_returns_what_has_no_match(join_world, how, memory):
    """Build rows from 5000 on have no match: each comes out once, of whichever subtask."""
    join_world.how, join_world.shares_marks = how, True
    rows, size = (5300, 20) if memory != "too little" else (5300, 300)
    table = right(rows, size)
    build = join_world.produced(table, 2, SUBTASKS, "BROADCAST", run=False)
    force_spill = "true" if memory == "force-spill" else "false"
    tasks = [join_world.subtask(index, build, index, debug__force_spill=force_spill) for index in range(SUBTASKS)]
    counters = run_all(join_world, tasks)
    assert any(each.spilled_bytes > 0 for each in counters) == (memory != "whole")
    assert sorted(each.managed_bytes_peak > 0 for each in counters) == [False, False, True]
    texts = table.column("w").to_pylist()
    expected = Counter({(k, v, texts[k]): SUBTASKS for k, v in zip(*LEFT.to_pydict().values(), strict=True)})
    expected.update((None, None, texts[k]) for k in range(5000, rows))
    assert join_world.rows() == expected


def test_those_who_have_probed_wait_for_those_who_have_not_come_and_end_with_them(join_world):
    join_world.how, join_world.shares_marks = JoinType.RIGHT, True
    build = join_world.produced(right(10, 5), 2, SUBTASKS, "BROADCAST")
    first = join_world.subtask(0, build, 0)
    thread, errors = join_world.start(first.run)
    wait_until(lambda: first.counters().rows_in == 9000 + 10)
    thread.join(0.05)
    assert thread.is_alive()
    others = [join_world.subtask(index, build, index) for index in (1, 2)]
    runs = [join_world.start(task.run) for task in others]
    for each, _ in (*runs, (thread, errors)):
        each.join(END_S)
    assert [errors, *(each for _, each in runs)] == [[], [], []]
    assert sum(count for (k, _, _), count in join_world.rows().items() if k is None) == 0


def test_a_subtask_whose_rows_are_not_needed_any_more_goes_on_marking(join_world):
    join_world.how, join_world.shares_marks = JoinType.RIGHT, True
    build = join_world.produced(right(5300, 20), 2, SUBTASKS, "BROADCAST")
    long = pa.table({"k": [n // 40 for n in range(200_000)], "v": list(range(200_000))})  # of many batches
    tasks = [join_world.subtask(0, build, 0, probed=long, limit=1)]
    other = LEFT.set_column(0, "k", pa.array([-1] * LEFT.num_rows))
    tasks += [join_world.subtask(index, build, index, probed=other, run=False) for index in (1, 2)]
    runs = [join_world.start(task.run) for task in tasks]
    runs[0][0].join(END_S)
    for work in join_world.late:
        join_world.start(work)
    for thread, _ in runs:
        thread.join(END_S)
    assert [errors for _, errors in runs] == [[]] * SUBTASKS
    rows = join_world.rows()
    assert sum(count for (k, _, _), count in rows.items() if k is not None) == 1
    assert sorted(int(w[:4]) for k, _, w in rows if k is None) == list(range(5000, 5300))


def endless(join_world):
    """A broadcast partition whose producer never comes."""
    return join_world.produced(right(10, 5), 4, 1, "BROADCAST", run=False)


def test_those_who_wait_end_when_the_builder_is_cancelled(join_world):
    builder = join_world.subtask(0, endless(join_world), 0)
    building, builder_errors = join_world.start(builder.run)
    wait_until(lambda: join_world.member_count == 1)
    waiter = join_world.subtask(1, join_world.produced(right(10, 5), 5, 1, "BROADCAST"), 0)
    waiting, errors = join_world.start(waiter.run)
    wait_until(lambda: waiter.counters().bytes_in > 0)
    builder.cancel()
    for thread in (building, waiting):
        thread.join(END_S)
    assert [type(error) for error in (*builder_errors, *errors)] == [TaskCancelledError, ProducerFailedError]


def test_one_who_waits_can_be_cancelled(join_world):
    builder = join_world.subtask(0, endless(join_world), 0)
    _, builder_errors = join_world.start(builder.run)
    wait_until(lambda: join_world.member_count == 1)
    waiter = join_world.subtask(1, join_world.produced(right(10, 5), 5, 1, "BROADCAST"), 0)
    thread, errors = join_world.start(waiter.run)
    wait_until(lambda: waiter.counters().bytes_in > 0)
    waiter.cancel()
    thread.join(END_S)
    assert [type(error) for error in errors] == [TaskCancelledError]
    assert builder_errors == []
    builder.cancel()


def nothing():
    """A check that finds nothing."""


class Feed(ChainedSource):
    """Rows that a join reads itself, and what is done before the last of them."""

    def __init__(self, batches, before_last=nothing):
        self.rows, self.before_last = batches, before_last

    def batches(self, _router=None):
        yield from self.rows[:-1]
        self.before_last()
        yield self.rows[-1]


def read_ahead(member, feed):
    """Return the driver of a join that has read ahead."""
    operator = HashJoinOperator(JoinType.INNER, ("k",), ("k2",), False, ((0, 0),))
    driver = HashJoinDriver(
        OperatorDescriptor(0, "join", operator, (), to_plan_schema(LEFT.schema), 1.0), {1: None}, feed
    )
    driver._context = SimpleNamespace(check_cancelled=nothing)
    driver._read_ahead(member)
    return driver


def test_one_who_waits_reads_ahead_until_there_is_a_table_or_enough():
    builds = SharedBuilds()
    builder, waiter = builds.enter("key"), builds.enter("key")
    large = LEFT.to_batches()[0]
    many = [large] * (3 * AHEAD_BYTES_MAX // batch_bytes(large))
    driver = read_ahead(waiter, Feed(many))
    assert AHEAD_BYTES_MAX <= sum(batch_bytes(batch) for batch in driver._ahead) < 2 * AHEAD_BYTES_MAX
    held = process_budget.held(Kind.ARROW)
    assert len(list(driver._probe_batches(None))) == len(many)
    assert held - process_budget.held(Kind.ARROW) > AHEAD_BYTES_MAX // 2
    few = [large.slice(start, 10) for start in range(0, 50, 10)]
    driver = read_ahead(waiter, Feed(few, lambda: builder.share("join", nothing)))
    assert not waiter.is_awaited
    assert len(driver._ahead) == 5, "the one that was being read is kept"
    assert list(driver._probe_batches(None)) == few
    driver = read_ahead(waiter, Feed(few))
    assert driver._ahead == []
    assert list(driver._probe_batches(None)) == few
    for member in (builder, waiter):
        member.leave()


def test_filters_are_told_before_there_is_a_table_and_not_waited_for_when_the_builder_fails():
    builds = SharedBuilds()
    builder, waiter = builds.enter("key"), builds.enter("key")
    builder.tell("filters")
    assert waiter.wait_for_filters(nothing) == "filters"
    assert waiter.is_awaited
    builder.fail(ValueError("no room"))
    builder.leave()
    waiter.leave()
    builder, waiter = builds.enter("key"), builds.enter("key")
    builder.fail(ValueError("no room"))
    assert waiter.wait_for_filters(nothing) is None
    with pytest.raises(ProducerFailedError):
        waiter.wait(nothing)
    for member in (builder, waiter):
        member.leave()


def test_what_is_shared_goes_back_with_the_last_one():
    builds = SharedBuilds()
    first, second = builds.enter("key"), builds.enter("key")
    assert (first.is_builder, second.is_builder) == (True, False)
    closed = []
    first.share("join", lambda: closed.append(True))
    assert second.wait(nothing) == "join"
    late = builds.enter("key")
    assert not late.is_builder
    assert late.wait(nothing) == "join"
    for member in (first, second, second):
        member.leave()
    assert closed == []
    late.leave()
    assert closed == [True]
    assert builds.member_count == 0
    assert builds.enter("key").is_builder


def test_the_builder_waits_for_those_who_copy_and_late_ones_build_for_themselves():
    builds = SharedBuilds()
    builder, waiter = builds.enter("key"), builds.enter("key")
    builder.offer_copy("join")
    assert builds.enter("key") is None
    assert waiter.wait(nothing) == "join"
    waiting, errors = in_thread(lambda: builder.wait_for_copies(nothing))
    assert waiter.step(lambda: True)
    assert not waiter.step(lambda: False)
    assert waiting.is_alive()
    waiter.end_copy()
    waiting.join(END_S)
    assert errors == []
    builder.leave()
    waiter.leave()
    assert builds.member_count == 0


def test_a_builder_that_ends_waits_for_the_chunk_in_work_only():
    builds = SharedBuilds()
    builder, waiter = builds.enter("key"), builds.enter("key")
    builder.offer_copy("join")
    inside, go_on = threading.Event(), threading.Event()

    def chunk():
        inside.set()
        return go_on.wait(END_S)

    copying, errors = in_thread(lambda: waiter.step(chunk))
    inside.wait(END_S)
    leaving, _ = in_thread(builder.leave)
    leaving.join(0.05)
    assert leaving.is_alive()
    go_on.set()
    leaving.join(END_S)
    copying.join(END_S)
    assert errors == []
    with pytest.raises(ProducerFailedError):
        waiter.step(lambda: True)
    waiter.leave()
    assert builds.member_count == 0


def test_the_builders_error_is_the_cause_of_the_others():
    builds = SharedBuilds()
    builder, waiter = builds.enter("key"), builds.enter("key")
    error = ValueError("bad row")
    builder.fail(error)
    with pytest.raises(ProducerFailedError) as caught:
        waiter.wait(nothing)
    assert caught.value.__cause__ is error
    assert builds.enter("key").is_builder
    builder.leave()
    waiter.leave()


def test_the_last_of_those_who_mark_rows_finishes_the_join():
    builds = SharedBuilds()
    first, second = builds.enter("key", 2), builds.enter("key", 2)
    closed = []
    first.share("join", lambda: closed.append(True))
    assert second.wait(nothing) == "join"
    assert second.end_probe(nothing) is None
    second.leave()
    assert first.end_probe(nothing) == "join"
    assert closed == []
    first.leave()
    assert closed == [True]
    assert builds.member_count == 0


def test_marks_of_one_who_left_before_it_had_probed_are_missing():
    builds = SharedBuilds()
    first, second = builds.enter("key", 2), builds.enter("key", 2)
    closed = []
    first.share("join", lambda: closed.append(True))
    second.leave()
    with pytest.raises(ProducerFailedError):
        first.end_probe(nothing)
    first.leave()
    assert closed == [True]
    assert builds.member_count == 0


def test_one_who_has_probed_ends_when_it_is_cancelled_while_others_have_not_come():
    builds = SharedBuilds()
    only = builds.enter("key", 2)
    only.share("join", lambda: None)

    def cancelled():
        raise TaskCancelledError("cancelled")

    with pytest.raises(TaskCancelledError):
        only.end_probe(cancelled)
    only.leave()
    assert builds.member_count == 0
