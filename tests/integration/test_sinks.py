"""Outputs are there exactly once or not at all; plans whose inputs are read more than once."""

import errno
import json
import os
import signal
import textwrap
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import EngineError, Environment, JobExecutionError, JoinHint, PlanError, col, count, lit, sum_
from engine.operators import sink_operator
from engine.parquet import writer as parquet_writer
from tests.folders import files_below
from tests.integration.conftest import SETTINGS, left_over, wait_until
from tests.integration.row_oracle import assert_same_rows, duck, rows_of

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])


@pytest.fixture
def env(open_environment):
    """A fresh Environment each time: sinks that a test leaves unexecuted are its own."""
    with Environment(config={**SETTINGS, "parallelism.default": 3}) as environment:
        yield environment


def numbers(env, row_count=10):
    return env.from_arrow(pa.table({"a": range(row_count), "s": [f"s{n}" for n in range(row_count)]}))


def text_of(folder):
    return "".join(path.read_text() for path in sorted(folder.iterdir()))


# ---- what is there before


@pytest.mark.quick
@pytest.mark.parametrize("existing", ["full folder", "empty folder", "file", "dangling link"])
@pytest.mark.parametrize("sink", ["write_csv", "write_parquet"])
def test_an_output_that_exists_is_an_error_before_anything_starts(env, tmp_path, existing, sink):
    target = tmp_path / "out"
    if existing == "file":
        target.write_text("mine")
    elif existing == "dangling link":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
        if existing == "full folder":
            (target / "part-00000.csv").write_text("mine")
    started = tmp_path / "started"

    def touch(row, path=str(started)):
        Path(path).touch()
        return row

    with pytest.raises(PlanError, match="exists"):
        getattr(numbers(env).map(touch, SCHEMA), sink)(str(target))
        env.execute()
    assert not started.exists()
    assert os.path.lexists(target)
    assert left_over(tmp_path) == []
    if existing == "full folder":
        assert text_of(target) == "mine"


@pytest.mark.quick
def test_overwrite_replaces_everything_that_was_there(env, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    for name in ("part-00000.csv", "part-00099.csv", "notes.txt"):
        (target / name).write_text("old\n")
    numbers(env).write_csv(str(target), overwrite=True)
    env.execute()
    assert sorted(text_of(target).split()) == sorted(f"{n},s{n}" for n in range(10))
    assert not (target / "notes.txt").exists()
    assert left_over(tmp_path) == []


def test_overwrite_of_nothing_and_twice(env, tmp_path):
    for row_count in (5, 2):
        numbers(env, row_count).write_csv(str(tmp_path / "out"), overwrite=True)
        env.execute()
        assert len(text_of(tmp_path / "out").split()) == row_count


def test_a_job_that_fails_leaves_the_output_it_would_have_replaced(env, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    (target / "part-00000.csv").write_text("old\n")
    numbers(env).filter(lit(1) // (col("a") - 5) > 0).write_csv(str(target), overwrite=True)
    with pytest.raises(JobExecutionError):
        env.execute()
    assert text_of(target) == "old\n"
    assert left_over(tmp_path) == []


def test_a_job_may_overwrite_its_own_input(env, tmp_path):
    target = tmp_path / "data"
    numbers(env, 100).write_csv(str(target))
    env.execute()
    data = env.read_csv(str(target), schema=SCHEMA)
    data.with_columns(a=col("a") + 1).write_csv(str(target), overwrite=True)
    env.execute()
    assert sorted(env.read_csv(str(target), schema=SCHEMA).collect()) == [(n + 1, f"s{n}") for n in range(100)]


# ---- failure


@pytest.mark.quick
@pytest.mark.parametrize("sink", ["write_csv", "write_parquet"])
def test_a_failing_job_leaves_neither_output_nor_staging_nor_parents(env, tmp_path, sink):
    data = numbers(env, 1000).filter(lit(1) // (col("a") - 999) < 2)
    getattr(data, sink)(str(tmp_path / "new" / "parents" / "out"))
    with pytest.raises(JobExecutionError, match=r"(?i)zero"):
        env.execute()
    assert list(tmp_path.iterdir()) == []
    assert numbers(env).count() == 10, "the environment still works"


def test_a_full_disk_of_an_output_is_named_with_what_to_do(env, tmp_path, monkeypatch):
    class Full:
        def write(self, batch):
            raise OSError(errno.ENOSPC, "No space left on device")

        def abort(self):
            pass

    monkeypatch.setattr(sink_operator, "open_sink_writer", lambda *_: Full())
    numbers(env).write_csv(tmp_path / "out")
    with pytest.raises(JobExecutionError) as failure:
        env.execute()
    text = str(failure.value)
    assert text.startswith(f"ResourceError: output {tmp_path / 'out'} cannot be written: no space left on its disk (")
    assert "free some, or write to another disk" in text
    assert list(tmp_path.iterdir()) == []


def test_all_sinks_of_a_failing_job_stay_away(env, tmp_path):
    numbers(env).write_csv(str(tmp_path / "good"))
    numbers(env).filter(lit(1) // (col("a") - 9) < 2).write_csv(str(tmp_path / "bad"))
    with pytest.raises(JobExecutionError):
        env.execute()
    assert list(tmp_path.iterdir()) == []


def test_sinks_of_a_failed_job_are_not_run_again(env, tmp_path):
    numbers(env).filter(lit(1) // (col("a") - 9) < 2).write_csv(str(tmp_path / "bad"))
    with pytest.raises(JobExecutionError):
        env.execute()
    numbers(env).write_csv(str(tmp_path / "good"))
    env.execute()
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


@pytest.mark.quick
def test_two_sinks_to_one_place_or_one_into_the_other_are_an_error(env, tmp_path):
    for other in ("out", "out/inner"):
        with pytest.raises(PlanError):
            numbers(env).write_csv(str(tmp_path / "out"))
            numbers(env).write_csv(str(tmp_path / other))
            env.execute()
        assert list(tmp_path.iterdir()) == []
        with Environment(config={**SETTINGS, "parallelism.default": 3}) as env:
            pass
        env = Environment(config={**SETTINGS, "parallelism.default": 3})
    env.close()


# ---- what is written


@pytest.mark.parametrize("sink", ["write_parquet", "write_records"])
def test_rows_of_many_row_groups_are_in_several_files_in_their_order(env, tmp_path, monkeypatch, sink):
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_ROWS", 1000)
    monkeypatch.setattr(parquet_writer, "CHUNKS_MAX", 5 * len(SCHEMA))
    getattr(numbers(env, 200_000).sort("a", descending=True), sink)(str(tmp_path / "out"))
    env.execute()
    parts = sorted((tmp_path / "out").glob("part-*"))
    assert len(parts) > 3
    assert [part.name for part in parts] == [f"part-{index:05d}.parquet" for index in range(len(parts))]
    found = [value for part in parts for value in pq.read_table(part).column("a").to_pylist()]
    assert found == list(range(200_000))[::-1]
    if sink == "write_records":
        manifest = json.loads((tmp_path / "out" / "_manifest.json").read_bytes())
        assert sum(file["rows"] for file in manifest["files"]) == manifest["row_count"] == 200_000
        column = manifest["columns"]["a"]
        assert (column["min"], column["max"], column["null_count"]) == (0, 199_999, 0)
        assert column["distinct_estimate"] == pytest.approx(200_000, rel=0.05)
    read = env.read_parquet if sink == "write_parquet" else env.read_records
    assert sorted(read(str(tmp_path / "out")).select(["a"]).collect()) == [(value,) for value in range(200_000)]


@pytest.mark.quick
def test_part_files_are_numbered_from_zero_and_nothing_else_is_there(env, tmp_path):
    for sink, ending in (("write_csv", "csv"), ("write_parquet", "parquet")):
        getattr(numbers(env, 1000), sink)(str(tmp_path / ending))
        env.execute()
        names = sorted(path.name for path in (tmp_path / ending).iterdir())
        assert names == [f"part-{index:05d}.{ending}" for index in range(len(names))]
        assert names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["csv", "parquet"]


def test_the_numbering_of_part_files_follows_the_sort(env, tmp_path):
    numbers(env, 5000).sort("a", descending=True).write_csv(str(tmp_path / "out"))
    env.execute()
    lines = text_of(tmp_path / "out").splitlines()
    assert lines == [f"{n},s{n}" for n in reversed(range(5000))]


@pytest.mark.parametrize("sink", ["write_csv", "write_parquet"])
def test_an_empty_result_is_an_output_that_reads_back_empty(env, tmp_path, sink):
    getattr(numbers(env).filter(col("a") < 0), sink)(str(tmp_path / "out"))
    result = env.execute()
    assert result.state == "FINISHED"
    assert (tmp_path / "out").is_dir()
    if sink == "write_parquet":
        assert env.read_parquet(str(tmp_path / "out")).to_arrow().schema.equals(SCHEMA)
    else:
        assert env.read_csv(str(tmp_path / "out"), schema=SCHEMA).count() == 0


@pytest.mark.quick
def test_csv_keeps_null_and_empty_string_apart_and_quotes_what_needs_it(env, tmp_path):
    texts = [None, "", "a,b", 'say "x"', "two\nlines", "cr\rlf\r\n", " padded ", "'", "\\N", "null", "NaN", "é"]
    table = pa.table({"a": range(len(texts)), "s": texts})
    env.from_arrow(table).write_csv(str(tmp_path / "out"))
    env.execute()
    read = env.read_csv(str(tmp_path / "out"), schema=SCHEMA)
    assert_same_rows(read.collect(), rows_of(table))
    assert '"0"' not in text_of(tmp_path / "out")
    assert "0,\n" in text_of(tmp_path / "out")
    assert '1,""\n' in text_of(tmp_path / "out")


def test_one_nullable_column_of_csv_comes_back_with_its_nulls(env, tmp_path):
    schema = pa.schema([("s", pa.string())])
    rows = [("x",), (None,), ("",), (None,)]
    env.from_rows(rows, schema).write_csv(str(tmp_path / "out"))
    env.execute()
    assert_same_rows(env.read_csv(str(tmp_path / "out"), schema=schema).collect(), rows)


def test_numbers_and_times_come_back_from_csv_with_the_same_value(env, tmp_path):
    import datetime
    import decimal

    table = pa.table(
        {
            "f": pa.array([0.1, 1e300, -0.0, float("nan"), float("inf"), 5e-324, None, 1 / 3]),
            "i": pa.array([2**63 - 1, -(2**63), 0, 1, 2, 3, None, 4]),
            "b": pa.array([True, False, None, True, True, True, True, True]),
            "d": pa.array([decimal.Decimal("1.20"), None, *[decimal.Decimal("-9.99")] * 6], pa.decimal128(5, 2)),
            "t": pa.array([datetime.datetime(2024, 2, 29, 1, 2, 3, 456789), None] * 4, pa.timestamp("us")),
            "y": pa.array([datetime.date(1969, 12, 31), None] * 4),
        }
    )
    env.from_arrow(table).write_csv(str(tmp_path / "out"))
    env.execute()
    assert_same_rows(env.read_csv(str(tmp_path / "out"), schema=table.schema).collect(), rows_of(table))


def test_a_header_is_in_every_part_and_is_read_again(env, tmp_path):
    numbers(env, 50).write_csv(str(tmp_path / "out"), header=True)
    env.execute()
    for part in (tmp_path / "out").iterdir():
        assert part.read_text().splitlines()[0] == "a,s"
    assert env.read_csv(str(tmp_path / "out"), schema=SCHEMA, header=True).count() == 50
    assert env.read_csv(str(tmp_path / "out"), header=True).to_arrow().schema.equals(SCHEMA)


@pytest.mark.quick
def test_parquet_keeps_every_type(env, tmp_path):
    from tests.integration.row_oracle import KEY_VALUES

    columns = {f"c{i}": pa.array([values[0], None, values[-1]], t) for i, (t, values) in enumerate(KEY_VALUES.items())}
    table = pa.table({**columns, "l": [[1], None, []], "m": [{"x": 1}, None, {"x": None}]})
    env.from_arrow(table).write_parquet(str(tmp_path / "out"))
    env.execute()
    read = env.read_parquet(str(tmp_path / "out")).to_arrow()
    assert read.schema.equals(table.schema)
    assert_same_rows(rows_of(read), rows_of(table))
    by_arrow = pa.concat_tables(map(pq.read_table, sorted((tmp_path / "out").iterdir())))
    assert_same_rows(rows_of(by_arrow), rows_of(table))


def test_a_csv_sink_refuses_nested_columns_by_name(env, tmp_path):
    with pytest.raises(EngineError, match="nested"):
        env.from_arrow(pa.table({"nested": [[1]]})).write_csv(str(tmp_path / "out"))
        env.execute()
    assert list(tmp_path.iterdir()) == []


def test_the_job_result_counts_rows_and_each_execute_is_one_job(env, tmp_path):
    ids = set()
    for name in ("one", "two"):
        numbers(env, 100).write_csv(str(tmp_path / name))
        result = env.execute(name)
        ids.add(str(result.job_id))
        report = result.to_json_dict()
        assert report["state"] == "FINISHED"
        assert report["runtime_ms"] >= 0
        assert len(report["job_id"]) == 32
        assert all(set(subtask) == SUBTASK_KEYS for vertex in report["vertices"] for subtask in vertex["subtasks"])
    assert len(ids) == 2


SUBTASK_KEYS = {"index", "rows_in", "rows_out", "bytes_in", "bytes_out", "spilled_bytes"}


# ---- several consumers


@pytest.mark.quick
def test_two_sinks_of_one_source_in_one_job(env, tmp_path):
    data = numbers(env, 1000)
    data.filter(col("a") % 2 == 0).write_csv(str(tmp_path / "even"))
    data.filter(col("a") % 2 == 1).write_parquet(str(tmp_path / "odd"))
    data.write_csv(str(tmp_path / "all"))
    env.execute()
    assert env.read_csv(str(tmp_path / "even"), schema=SCHEMA).count() == 500
    assert sorted(row.a for row in env.read_parquet(str(tmp_path / "odd")).collect()) == list(range(1, 1000, 2))
    assert env.read_csv(str(tmp_path / "all"), schema=SCHEMA).count() == 1000


@pytest.mark.sample("values")
@pytest.mark.parametrize("settings", [{}, {"execution.mode": "BATCH"}, {"debug.force-spill": True}], ids=str)
@pytest.mark.parametrize("hint", [JoinHint.OPTIMIZER_CHOOSES, JoinHint.REPARTITION_HASH_SECOND], ids=lambda h: h.value)
def test_diamonds_neither_hang_nor_lose_rows(open_environment, settings, hint):
    env = open_environment(**{"parallelism.default": 3, **settings})
    table = pa.table({"a": [n % 100 for n in range(20_000)], "b": range(20_000)})
    data = env.from_arrow(table)
    totals = data.group_by("a").agg(total=sum_(col("b")))
    diamond = data.join(totals, on="a", hint=hint).filter(col("b") < 50)
    sql = "SELECT a, b, total FROM t JOIN (SELECT a, sum(b)::BIGINT total FROM t GROUP BY a) USING (a) WHERE b < 50"
    assert_same_rows(diamond.collect(), duck(sql, t=table))
    few = data.filter(col("b") < 200)
    self_join = few.join(few.select("a", col("b").alias("c")), on="a", hint=hint)
    assert_same_rows(
        self_join.collect(),
        duck("SELECT l.a, l.b, r.b FROM t l JOIN t r ON l.a = r.a WHERE l.b < 200 AND r.b < 200", t=table),
    )
    both = data.filter(col("a") < 10).union(data.filter(col("a") >= 90)).group_by().agg(n=count(), s=sum_(col("b")))
    assert both.collect() == duck("SELECT count(*), sum(b)::BIGINT FROM t WHERE a < 10 OR a >= 90", t=table)


def test_a_union_of_both_branches_of_a_sort(env):
    ordered = numbers(env, 100).sort("a").limit(10)
    assert_same_rows(ordered.union(ordered).collect(), [(n, f"s{n}") for n in range(10)] * 2)


# ---- Ctrl-C

LONG_JOB = """
    import pyarrow as pa, sys, time
    from engine import Environment, col
    env = Environment()
    data = env.from_arrow(pa.table({"a": range(60_000), "b": ["some text"] * 60_000}))
    def slow(row):
        time.sleep(0.01)
        return row
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    data.sort("a", descending=True).map(slow, schema).write_csv("results/out")
    env.execute("long")
    print("finished")
"""
NATIVE_JOB = """
    import pyarrow as pa
    from engine import Environment, col, sum_, JoinHint
    env = Environment()
    left = env.from_arrow(pa.table({"a": [n % 3 for n in range(60_000)], "b": range(60_000)}))
    right = left.select("a", col("b").alias("c"))
    pairs = left.join(right, on="a", hint=JoinHint.REPARTITION_HASH_SECOND)
    pairs.group_by("b").agg(total=sum_(col("c"))).sort("b").write_csv("results/out")
    env.execute("long")
    print("finished")
"""


WAYS = ["python twice", "flink-run terminated"]
_MORE_WAYS = ["python", "python terminated", "python hung up", "flink-run", "flink-run hung up"]
WAYS += [pytest.param(way, marks=pytest.mark.thorough) for way in _MORE_WAYS]


@pytest.mark.sample("values")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("job", ["python function after a spilled sort", "native join"])
def test_an_interrupt_leaves_nothing_behind(start, tmp_path, way, job):
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(NATIVE_JOB if job == "native join" else LONG_JOB))
    command = ["-m", "engine.cli.main", script] if "flink" in way else [script]
    process = start(*command, DREY_DEBUG_FORCE_SPILL="true")
    results = tmp_path / "results"
    spilling = tmp_path / "spill"
    assert wait_until(lambda: process.poll() is not None or (results.is_dir() and left_over(results)), 60), "no staging"
    assert wait_until(lambda: files_below(spilling) or process.poll() is not None, 60)
    time.sleep(0.2)
    assert process.poll() is None, process.communicate()
    children = psutil.Process(process.pid).children(recursive=True)
    number = {"terminated": signal.SIGTERM, "hung up": signal.SIGHUP}.get(way.partition(" ")[2], signal.SIGINT)
    process.send_signal(number)
    if "twice" in way:
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    interrupted = (130, -signal.SIGINT, 1) if "python" in way else (130,)
    assert process.returncode in (interrupted if number == signal.SIGINT else (128 + number,)), stderr
    assert "finished" not in stdout.splitlines()
    assert len(stderr.splitlines()) <= 30, stderr
    assert wait_until(lambda: not any(child.is_running() and child.status() != "zombie" for child in children)), (
        "children"
    )
    assert not [path for path in spilling.rglob("*") if path.is_file()], "spill files left"
    assert not results.exists() or list(results.iterdir()) == []
