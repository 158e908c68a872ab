"""Rows while their job runs: all of them once, sorted ones in order; who reads slowly holds back, who goes cancels."""

import threading
import time
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col, lit
from engine.api import result_stream
from engine.api.result_stream import ResultStream
from engine.connectors import stream_writer
from engine.connectors.stream_writer import AHEAD, TURN_OF_ANY, StreamWriter, turn_of
from engine.errors import JobExecutionError, PlanError, ResourceError

#: many more batches than are written ahead
ROWS = 4 * 200_000
SCHEMA = pa.schema([("n", pa.int64())])


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


@pytest.fixture
def numbers(env):
    return env.from_arrow(pa.table({"n": pa.array(range(ROWS), pa.int64())}))


def test_rows_come_once_and_sorted_ones_in_order(env, numbers):
    with numbers.select((col("n") * 2).alias("n")).to_batches() as batches:
        assert sorted(value for batch in batches for value in batch.column(0).to_pylist()) == list(
            range(0, 2 * ROWS, 2)
        )
        assert batches.schema == SCHEMA
    in_order = [row.n for row in numbers.sort("n", descending=True).filter(col("n") >= 10).iter_rows()]
    assert in_order == list(range(ROWS - 1, 9, -1))
    assert [row.n for row in numbers.filter(col("n") < 0).iter_rows()] == []


def test_other_libraries_take_the_stream(env, numbers):
    few = numbers.sort("n").limit(3)
    assert pa.table(few).to_pydict() == {"n": [0, 1, 2]}
    assert polars.DataFrame(few)["n"].to_list() == [0, 1, 2]
    assert few.to_polars()["n"].to_list() == [0, 1, 2]
    assert env.from_arrow(few).count() == 3


def folder_of(stream):
    return [path.name for path in Path(stream._folder).iterdir() if path.name.endswith(".arrow")]


def test_who_reads_slowly_holds_the_job_back_and_who_leaves_ends_it(env, numbers, monkeypatch):
    monkeypatch.setattr(stream_writer, "_BYTES_MIN", 1)
    monkeypatch.setattr(stream_writer, "_BYTES_MAX", 1)
    stream = numbers.to_batches()
    first = next(stream)
    assert first.num_rows
    most = 0
    for _ in range(20):
        time.sleep(0.01)
        most = max(most, len(folder_of(stream)))
    assert 0 < most <= 2 * AHEAD
    assert stream._job.thread.is_alive()
    stream.close()
    stream.close()
    assert not stream._job.thread.is_alive()
    assert not Path(stream._folder).exists()
    with pytest.raises(JobExecutionError, match="the stream was closed before all of its rows were read"):
        next(stream)
    assert numbers.count() == ROWS


@pytest.mark.parametrize("is_sorted", [False, True])
def test_a_stream_that_nobody_reads_gives_way_to_a_job_that_waits_for_its_slot(is_sorted):
    with Environment(config={"parallelism.default": 1}) as env:
        numbers = env.from_arrow(pa.table({"n": range(ROWS)}))
        held = (numbers.sort("n") if is_sorted else numbers).to_batches()
        read = next(held).num_rows
        assert numbers.count() == ROWS
        assert sum(1 for _ in numbers.iter_rows()) == ROWS
        with numbers.to_batches() as other:
            assert next(other).num_rows
            assert read + sum(batch.num_rows for batch in held) == ROWS


def test_the_job_of_an_environment_that_is_closed_ends(numbers):
    with Environment(config={"parallelism.default": 1}) as env:
        stream = env.from_arrow(pa.table({"n": range(ROWS)})).to_batches()
        rows = env.from_arrow(pa.table({"n": range(ROWS)})).iter_rows()
        next(rows)
    assert not stream._job.thread.is_alive()
    for cut in (stream, rows):
        with pytest.raises(JobExecutionError, match=r"closed with its environment .* before all of its rows were read"):
            list(cut)
    rows.close()
    with pytest.raises(PlanError, match="closed"):
        env.from_arrow(pa.table({"n": [1]})).to_batches()


def test_a_reader_in_another_thread_does_not_take_a_close_for_the_end(env, numbers):
    for _ in range(5):
        stream = numbers.to_batches()
        found: list[object] = [next(stream).num_rows]

        def read(stream=stream, found=found):
            try:
                found.extend(batch.num_rows for batch in stream)
            except JobExecutionError as error:
                found.append(str(error))

        thread = threading.Thread(target=read)
        thread.start()
        stream.close()
        thread.join()
        assert sum(each for each in found if isinstance(each, int)) == ROWS or "was closed" in str(found[-1])


def test_behind_the_last_row_there_is_none_however_often_it_is_asked(env, numbers):
    with numbers.to_batches() as batches:
        assert sum(batch.num_rows for batch in batches) == ROWS
        assert next(batches, None) is None
    assert list(batches) == []


def test_the_error_of_the_job_is_raised_where_its_rows_are_read(numbers):
    def bad(row):
        return 1 // (row.n - ROWS + 1)

    with numbers.map(bad, SCHEMA).to_batches() as batches, pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        list(batches)


def writer_of(folder, subtask=0, nonce="a"):
    (folder / "staged").mkdir(exist_ok=True)
    (folder / "stream").mkdir(exist_ok=True)
    return StreamWriter(SCHEMA, folder / "staged" / f"0-{subtask:05d}-{nonce}-00000.none", folder / "stream")


def batch(*values):
    return pa.record_batch([pa.array(values, pa.int64())], schema=SCHEMA)


def read(folder, run, *, is_ordered):
    (folder / "stream").mkdir(exist_ok=True)
    return ResultStream(SCHEMA, folder / "stream", run, is_ordered=is_ordered)


def test_only_the_subtask_whose_turn_it_is_waits(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_writer, "_BYTES_MIN", 0)
    ended = []
    for turn, waits in ((turn_of("00000"), True), (turn_of("00001"), False), (TURN_OF_ANY, True)):
        writer = writer_of(tmp_path, nonce=turn.replace("-", ""))
        (tmp_path / "stream" / turn).touch()
        for value in range(AHEAD):
            writer.wait_for_room(lambda: False)
            writer.write(batch(value))
        asked = []
        writer.wait_for_room(lambda asked=asked: asked.append(1) or len(asked) > 2)
        ended.append(len(asked) > 1)
        assert ended[-1] is waits
        (tmp_path / "stream" / turn).unlink()
        writer.abort()
    (tmp_path / "stream").rename(tmp_path / "gone")
    with pytest.raises(ResourceError, match="the client that reads the rows of this job is gone"):
        writer.wait_for_room(lambda: False)


def test_subtasks_are_read_one_after_the_other_whatever_their_order(tmp_path):
    def run():
        for subtask in (2, 0, 1):
            writer = writer_of(tmp_path, subtask)
            for value in range(3) if subtask != 1 else ():
                writer.write(batch(10 * subtask + value))
            assert writer.finish()[0] == (0 if subtask == 1 else 3)

    with read(tmp_path, run, is_ordered=True) as stream:
        assert [value for each in stream for value in each.column(0).to_pylist()] == [0, 1, 2, 20, 21, 22]


def test_a_subtask_that_is_repeated_is_an_error_once_its_rows_were_read(tmp_path):
    go_on = threading.Event()

    def run():
        writer_of(tmp_path, 0, "a").write(batch(1))
        assert go_on.wait(10)
        writer_of(tmp_path, 0, "b").write(batch(1))

    stream = read(tmp_path, run, is_ordered=False)
    assert next(stream).to_pydict() == {"n": [1]}
    go_on.set()
    with pytest.raises(JobExecutionError, match="subtask 0 was repeated after some of its rows had been read"):
        next(stream)
    assert not (tmp_path / "stream").exists()


def test_a_stream_that_is_forgotten_ends_its_job(tmp_path, monkeypatch):
    monkeypatch.setattr(result_stream, "_LOOK_S", 0.0)
    listening = threading.Event()

    def run():
        from engine.client.job_listener import current_listener

        listening.set()
        while True:
            current_listener().on_progress(None)
            time.sleep(0.001)

    stream = read(tmp_path, run, is_ordered=False)
    assert listening.wait(10)
    thread = stream._job.thread
    del stream
    thread.join(10)
    assert not thread.is_alive()


def test_rows_that_become_wide_come_in_batches_of_some_megabytes(env, tmp_path):
    pq.write_table(pa.table({"id": range(200_000)}), tmp_path / "ids.parquet")
    numbers = env.read_parquet(tmp_path / "ids.parquet")
    wide = numbers.with_columns(pad=col("id").cast(pa.string()).str.pad_left(8, "-").str.repeat(110))
    row_count, seen, largest = 0, 0, 0
    with wide.to_batches() as batches:
        for batch in batches:
            row_count += batch.num_rows
            seen += sum(batch["id"].to_pylist())
            largest = max(largest, batch.nbytes)
    assert (row_count, seen) == (200_000, sum(range(200_000)))
    assert largest <= 20 << 20
    # a few rows that are wide among narrow ones cut one batch, and the rows behind them come together again
    few = env.from_arrow(pa.table({"n": [1] * 3000 + [4 << 20] * 2 + [1] * 3000}))
    lengths = few.select(text=lit("x").str.repeat(col("n"))).select(n=col("text").str.length()).to_arrow()
    assert sorted(lengths["n"].to_pylist()) == [1] * 6000 + [4 << 20] * 2
