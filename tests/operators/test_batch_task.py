"""Attempts that finish, fail and are cancelled wherever they are; nothing that was taken is kept."""

import threading
import time

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

from engine.connectors.records_parts import PartStatistics
from engine.connectors.records_writer import RecordsWriter
from engine.csv.writer import CsvWriter
from engine.errors import ProducerFailedError, TaskCancelledError
from engine.exchange.result_partition import ResultPartition
from engine.functions.function_error import UserFunctionError
from engine.graph.operator_descriptor import IdentityOperator, SortOperator
from engine.graph.sort_key import SortKey
from engine.operators import sink_operator
from tests.operators.task_world import TaskWorld, described, gate, in_thread, partition, python

pytestmark = pytest.mark.usefixtures("one_zygote")

TABLE = pa.table({"k": [(n * 7919) % 20011 for n in range(20000)], "s": [f"value {n}" for n in range(20000)]})
SCHEMA = TABLE.schema
SORT = SortOperator((SortKey("k"),))
END_S = 60


class Refusal(Exception):
    """What a sink meets in the tests."""


class SlowToLoad:
    """Unpickling it takes a minute, as an import that hangs."""

    def __reduce__(self):
        return time.sleep, (60,)


@pytest.fixture
def world(tmp_path):
    world = TaskWorld(tmp_path)
    yield world
    world.close()


def sorted_into_a_file(world, file_format="csv", **configuration):
    head, splits = world.source(TABLE)
    chain = (head, described(SORT, SCHEMA, weight=1.0), world.sink(SCHEMA, file_format))
    return world.task(chain, splits, **configuration)


@pytest.mark.parametrize("force_spill", ["false", "true"])
def test_a_chain_runs_from_source_to_staged_file(world, force_spill):
    task = sorted_into_a_file(world, debug__force_spill=force_spill)
    task.run()
    (file,) = world.staged()
    (staged,) = task.staged_files()
    rows = pyarrow.csv.read_csv(file, pyarrow.csv.ReadOptions(column_names=["k", "s"]))
    assert rows.column("k").to_pylist() == sorted(TABLE.column("k").to_pylist())
    assert (staged.name, staged.row_count, staged.size_bytes) == (file.name, 20000, file.stat().st_size)
    assert (task.counters().spilled_bytes > 0) == (force_spill == "true")
    assert task.counters().rows_out == 20000


def test_a_sink_whose_files_are_full_goes_on_in_others_in_the_order_of_its_rows(world, monkeypatch):
    monkeypatch.setattr(CsvWriter, "is_full", True)
    task = sorted_into_a_file(world)
    task.run()
    staged = task.staged_files()
    assert len(staged) > 1
    assert [file.name for file in staged] == [path.name for path in world.staged()]
    assert all(file.row_count for file in staged)
    text = "".join(path.read_text() for path in world.staged())
    keys = [int(line.partition(",")[0]) for line in text.splitlines()]
    assert keys == sorted(TABLE.column("k").to_pylist())


def test_an_empty_batch_behind_a_full_file_begins_no_other_one(world, monkeypatch):
    monkeypatch.setattr(CsvWriter, "is_full", True)
    process = sink_operator.FileSink.process

    def process_and_nothing(sink, batch):
        process(sink, batch)
        process(sink, batch.slice(0, 0))

    monkeypatch.setattr(sink_operator.FileSink, "process", process_and_nothing)
    task = sorted_into_a_file(world)
    task.run()
    assert all(file.row_count for file in task.staged_files())
    assert sum(file.row_count for file in task.staged_files()) == len(TABLE)


def test_of_the_full_files_of_records_only_the_last_reports_columns(world, monkeypatch):
    monkeypatch.setattr(RecordsWriter, "is_full", True)
    task = sorted_into_a_file(world, "records")
    task.run()
    staged = task.staged_files()
    assert len(staged) > 2
    assert all(len(file.statistics_json) < 100 for file in staged[:-1])
    statistics = msgspec.json.decode(staged[-1].statistics_json, type=PartStatistics)
    assert statistics.row_count == sum(file.row_count for file in staged) == len(TABLE)
    assert statistics.columns["k"].min == pc.min(TABLE.column("k")).as_py()


def test_a_sink_that_fails_removes_its_full_files_too(world, monkeypatch):
    monkeypatch.setattr(CsvWriter, "is_full", True)
    write = CsvWriter.write

    def refuses_the_third(writer, batch):
        if len(world.staged()) == 3:
            raise Refusal
        write(writer, batch)

    monkeypatch.setattr(CsvWriter, "write", refuses_the_third)
    with pytest.raises(Refusal):
        sorted_into_a_file(world).run()
    assert world.staged() == []


def test_a_sort_that_writes_its_output_ends_when_cancelled(world, monkeypatch):
    """No gate and no partition is there to wake: the loop itself has to look."""
    at_sink, go_on = threading.Event(), threading.Event()
    written = []

    def process(self, batch):
        written.append(batch.num_rows)
        at_sink.set()
        go_on.wait(END_S)

    monkeypatch.setattr(sink_operator.FileSink, "process", process)
    task = sorted_into_a_file(world)
    thread, errors = in_thread(task.run)
    assert at_sink.wait(END_S)
    task.cancel()
    go_on.set()
    thread.join(END_S)
    assert not thread.is_alive()
    assert [type(error) for error in errors] == [TaskCancelledError]
    assert len(written) == 1
    assert world.staged() == []


def test_a_sort_in_the_middle_of_its_spilling_ends_when_cancelled(world, monkeypatch):
    is_cancelled = threading.Event()
    # Its end is not reached before, however late who cancels it may be.
    monkeypatch.setattr(sink_operator.FileSink, "process", lambda sink, batch: is_cancelled.wait(END_S))
    task = sorted_into_a_file(world, debug__force_spill="true")
    thread, errors = in_thread(task.run)
    while thread.is_alive() and task.counters().spilled_bytes == 0:
        time.sleep(0.001)
    task.cancel()
    is_cancelled.set()
    thread.join(END_S)
    assert not thread.is_alive()
    assert [type(error) for error in errors] == [TaskCancelledError]
    assert world.staged() == []


def test_a_function_that_never_finishes_loading_is_cancelled(world):
    head, splits = world.source(TABLE)
    task = world.task((head, described(python(SlowToLoad()), SCHEMA), world.sink(SCHEMA)), splits)
    thread, errors = in_thread(task.run)
    thread.join(1.5)
    assert thread.is_alive()
    task.cancel()
    thread.join(END_S)
    assert not thread.is_alive()
    assert [type(error) for error in errors] == [TaskCancelledError]


def test_a_function_that_cannot_be_loaded_fails_the_attempt_also_without_rows(world):
    class Unloadable:
        def __reduce__(self):
            return int, ("no number",)

    head, splits = world.source(TABLE.slice(0, 0))
    task = world.task((head, described(python(Unloadable()), SCHEMA), world.sink(SCHEMA)), splits)
    with pytest.raises(UserFunctionError, match="could not be loaded"):
        task.run()


def test_a_consumer_that_waits_is_cancelled(world):
    produced, _ = partition(SCHEMA)
    task = world.task((described(IdentityOperator(), SCHEMA), world.sink(SCHEMA)), gates=(gate(produced),))
    thread, errors = in_thread(task.run)
    thread.join(0.2)
    task.cancel()
    thread.join(END_S)
    assert [type(error) for error in errors] == [TaskCancelledError]


@pytest.mark.parametrize("kind", ["FORWARD", "HASH"])
def test_a_producer_that_waits_for_its_consumer_is_cancelled(world, kind):
    produced, attempt = partition(SCHEMA, kind=kind)
    head, splits = world.source(pa.concat_tables([TABLE] * 20))
    task = world.task((head,), splits, partitions=(produced,), attempt=attempt)
    thread, errors = in_thread(task.run)
    thread.join(0.5)
    assert thread.is_alive(), "nobody reads, so it waits"
    task.cancel()
    thread.join(END_S)
    assert [type(error) for error in errors] == [TaskCancelledError]
    world.services.partition_manager.release(produced.id)


def test_cancelling_before_the_start_ends_the_attempt_at_once(world):
    produced, attempt = partition(SCHEMA, kind="HASH")
    head, splits = world.source(TABLE)
    task = world.task((head,), splits, partitions=(produced,), attempt=attempt)
    task.cancel()
    with pytest.raises(TaskCancelledError):
        task.run()
    world.services.partition_manager.release(produced.id)


@pytest.mark.parametrize("kind", ["FORWARD", "HASH"])
def test_a_failing_producer_tells_its_consumer_why(world, kind):
    def refuse(row):
        if row.k > 19_000:
            raise ValueError("too large")
        return row

    produced, attempt = partition(SCHEMA, kind=kind)
    head, splits = world.source(TABLE)
    chain = (head, described(python(refuse), SCHEMA))
    producer = world.task(chain, splits, partitions=(produced,), attempt=attempt)
    consumer = world.task((described(IdentityOperator(), SCHEMA), world.sink(SCHEMA)), gates=(gate(produced),))
    thread, errors = in_thread(consumer.run)
    with pytest.raises(UserFunctionError, match="too large"):
        producer.run()
    thread.join(END_S)
    assert [type(error) for error in errors] == [ProducerFailedError]
    assert "too large" in str(errors[0])
    assert world.staged() == []
    world.services.partition_manager.release(produced.id)


def test_a_failure_stays_the_failure_when_its_consequences_cancel_the_attempt(world, monkeypatch):
    """The consumer may hear of it, fail and have everything cancelled before the producer has ended."""

    def refuse(row):
        raise ValueError("too large")

    produced, attempt = partition(SCHEMA, kind="HASH")
    head, splits = world.source(TABLE)
    task = world.task((head, described(python(refuse), SCHEMA)), splits, partitions=(produced,), attempt=attempt)
    fail = ResultPartition.fail

    def fail_and_be_cancelled(self, error):
        fail(self, error)
        task.cancel()

    monkeypatch.setattr(ResultPartition, "fail", fail_and_be_cancelled)
    with pytest.raises(UserFunctionError, match="too large"):
        task.run()
    world.services.partition_manager.release(produced.id)


@pytest.mark.parametrize("kind", ["FORWARD", "HASH"])
def test_a_consumer_that_fails_first_ends_its_producer(world, kind):
    def refuse(row):
        raise ValueError("no")

    produced, attempt = partition(SCHEMA, kind=kind)
    head, splits = world.source(pa.concat_tables([TABLE] * 20))
    producer = world.task((head,), splits, partitions=(produced,), attempt=attempt)
    consumer = world.task((described(python(refuse), SCHEMA), world.sink(SCHEMA)), gates=(gate(produced),))
    thread, errors = in_thread(producer.run)
    with pytest.raises(UserFunctionError, match="no"):
        consumer.run()
    thread.join(END_S)
    assert not thread.is_alive()
    assert [type(error).__name__ for error in errors] == ["PartitionReleasedError"]
    world.services.partition_manager.release(produced.id)


def test_an_attempt_that_fails_while_it_opens_keeps_nothing(world):
    produced, attempt = partition(SCHEMA, kind="HASH")
    head, splits = world.source(TABLE)
    missing = described(SortOperator((SortKey("no such column"),)), SCHEMA, weight=1.0)
    task = world.task((head, missing), splits, partitions=(produced,), attempt=attempt)
    with pytest.raises(Exception, match="no such column"):
        task.run()
    world.services.partition_manager.release(produced.id)


class Flusher:
    """Notes what it is to flush."""

    def __init__(self):
        self.registered, self.unregistered = [], []

    def register(self, writer, timeout_ms):
        self.registered.append((writer, timeout_ms))

    def unregister(self, writer):
        self.unregistered.append(writer)


@pytest.mark.parametrize("result_type", ["PIPELINED", "BLOCKING"])
def test_only_what_is_read_while_it_is_written_is_flushed_by_time(world, result_type):
    flusher = Flusher()
    world.services = msgspec.structs.replace(world.services, output_flusher=flusher)
    head, splits = world.source(TABLE)
    produced, attempt = partition(SCHEMA, 1, "HASH", result_type)
    task = world.task([head], splits, partitions=[produced], attempt=attempt, execution__buffer_timeout="77 ms")
    thread, errors = in_thread(task.run)
    if result_type == "PIPELINED":
        reader = world.task([described(IdentityOperator(), SCHEMA), world.sink(SCHEMA)], gates=[gate(produced)])
        reader.run()
    thread.join(END_S)
    assert not errors and not thread.is_alive()
    assert [timeout_ms for _, timeout_ms in flusher.registered] == ([77] if result_type == "PIPELINED" else [])
    if result_type == "BLOCKING":
        world.services.partition_manager.release(produced.id)
