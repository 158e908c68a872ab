"""Text and record data sets through whole jobs; sources that are held back or read by everyone."""

import json
import time

import pyarrow as pa
import pytest

from engine import DataError, JobExecutionError, PlanError, SchemaError, col
from tests.integration.conftest import left_over
from tests.integration.row_oracle import assert_same_rows, rows_of

SCHEMA = pa.schema([("k", pa.int64()), ("name", pa.string())])


def numbered(count, keys=7):
    return pa.table({"k": [i % keys for i in range(count)], "name": [f"n{i}" for i in range(count)]}, schema=SCHEMA)


# text ---------------------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_text_goes_round(any_environment, tmp_path):
    lines = ["first", "", "ä", "last"] * 100
    data = any_environment.from_arrow(pa.table({"x": lines}))
    data.write_text(tmp_path / "out")
    any_environment.execute()
    assert all(path.name.startswith("part-") and path.suffix == ".txt" for path in (tmp_path / "out").iterdir())
    back = any_environment.read_text(tmp_path / "out")
    assert back.schema == pa.schema([("line", pa.string())])
    assert sorted(back.to_arrow().column("line").to_pylist()) == sorted(lines)
    assert back.filter(col("line") == "").count() == 100


def test_large_text_is_read_by_all_subtasks(any_environment, tmp_path):
    with (tmp_path / "t.txt").open("w") as file:
        file.writelines(f"line {index} of many\r\n" for index in range(120_000))
    data = any_environment.read_text(tmp_path / "t.txt")
    assert data.count() == 120_000
    assert data.filter(col("line").str.ends_with("many")).count() == 120_000


def test_text_is_cut_for_the_parallelism_and_the_size_it_has_when_it_runs(environment, tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("a\n")
    data = environment.read_text(path).set_parallelism(4)
    path.write_text("a line of text\n" * 300_000)
    data.name("lines").write_text(tmp_path / "out")
    result = environment.execute()
    assert sum(rows_out(result, "lines")) == 300_000
    assert all(rows_out(result, "lines"))
    path.unlink()
    with pytest.raises(PlanError, match=r"read_text: .*t\.txt"):
        data.count()


def test_text_that_is_not_utf8_fails_with_its_line(environment, tmp_path):
    (tmp_path / "t.txt").write_bytes(b"ok\nno\xfft\n")
    with pytest.raises(DataError, match=r"t\.txt, line 2"):
        environment.read_text(tmp_path / "t.txt").count()


@pytest.mark.quick
def test_only_one_string_column_is_written_as_text(environment):
    data = environment.from_arrow(numbered(1))
    for wrong in (data, data.select("k")):
        with pytest.raises(SchemaError, match="write_text"):
            wrong.write_text("out")


# records ------------------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_records_go_round_with_their_statistics(any_environment, tmp_path):
    rows = numbered(20_000)
    any_environment.from_arrow(rows).rebalance().write_records(tmp_path / "out")
    any_environment.execute()
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_bytes())
    assert manifest["row_count"] == 20_000
    assert sum(file["rows"] for file in manifest["files"]) == 20_000
    assert manifest["columns"]["k"]["distinct_estimate"] == 7
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "_manifest.json",
        *(file["name"] for file in manifest["files"]),
    }
    assert not left_over(tmp_path)
    back = any_environment.read_records(tmp_path / "out")
    assert back.schema == SCHEMA
    assert "manifest" in back.explain()
    assert_same_rows(rows_of(back.to_arrow()), rows_of(rows))
    assert "7 rows" in back.select("k").distinct().explain()


def test_records_overwrite_at_once_and_refuse_otherwise(environment, tmp_path):
    environment.from_arrow(numbered(10)).write_records(tmp_path / "out")
    environment.execute()
    environment.from_arrow(numbered(20)).write_records(tmp_path / "out")
    with pytest.raises(PlanError, match="already exists"):
        environment.execute()
    environment.from_arrow(numbered(20)).write_records(tmp_path / "out", overwrite=True)
    environment.execute()
    assert environment.read_records(tmp_path / "out").count() == 20
    assert not left_over(tmp_path)


def test_records_keep_types_that_parquet_does_not_have(environment, tmp_path):
    types = {
        "d": pa.date64(),
        "t": pa.time32("s"),
        "s": pa.timestamp("s"),
        "u": pa.timestamp("s", "Europe/Berlin"),
        "z": pa.timestamp("us", "UTC"),
        "l": pa.list_(pa.timestamp("s")),
    }
    schema = pa.schema(types)
    rows = pa.table({"d": [0], "t": [1], "s": [-7], "u": [4], "z": [2], "l": [[3, None]]}, schema=schema)
    environment.from_arrow(rows).write_records(tmp_path / "out")
    environment.execute()
    found = environment.read_records(tmp_path / "out")
    assert found.schema.types == schema.types
    assert found.to_arrow().cast(schema).equals(rows)
    assert found.select("s", "d").sort("s").to_arrow().equals(rows.select(["s", "d"]))
    empty = environment.from_arrow(rows.slice(0, 0))
    empty.write_records(tmp_path / "empty")
    environment.execute()
    assert environment.read_records(tmp_path / "empty").schema.types == schema.types


@pytest.mark.parametrize("writer", ["write_parquet", "write_records"])
def test_lists_of_a_fixed_size_of_0_are_refused_where_the_sink_is_declared(environment, tmp_path, writer):
    for item in (pa.int32(), pa.string(), pa.struct([("x", pa.int32())]), pa.list_(pa.int8(), 2)):
        for data_type in (pa.list_(item, 0), pa.struct([("f", pa.list_(item, 0))]), pa.list_(pa.list_(item, 0), 3)):
            data = environment.from_arrow(pa.table({"a": pa.nulls(2, data_type)}))
            with pytest.raises(SchemaError, match=rf"^{writer}: column 'a' is .*no lists of a fixed size of 0"):
                getattr(data, writer)(tmp_path / "out")


@pytest.mark.parametrize("writer", ["write_parquet", "write_records"])
def test_a_column_that_parquet_does_not_have_is_refused_where_the_sink_is_declared(environment, tmp_path, writer):
    refused = {
        "w": pa.binary(0),
        "l": pa.list_(pa.binary(0)),
        "s": pa.struct([]),
        "m": pa.struct([("x", pa.binary(0))]),
    }
    for name, data_type in refused.items():
        rows = pa.table({"k": pa.array([1, 2]), name: pa.nulls(2, data_type)})
        data = environment.from_arrow(rows)
        with pytest.raises(SchemaError) as error:
            getattr(data, writer)(tmp_path / "out")
        assert str(error.value).startswith(f"{writer}: column {name!r} is {data_type}, which Parquet cannot store (")
        assert str(error.value).endswith("; drop or cast it")
        assert data.collect() == [(1, None), (2, None)]
    with pytest.raises(PlanError, match="nothing to execute"):
        environment.execute()


def test_records_without_rows_have_their_columns(environment, tmp_path):
    environment.from_arrow(numbered(0)).write_records(tmp_path / "out")
    environment.execute()
    back = environment.read_records(tmp_path / "out")
    assert (back.schema, back.count()) == (SCHEMA, 0)


# sources that are held back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("splits", [1, 3])
def test_a_rate_limit_is_of_all_subtasks_together(open_environment, tmp_path, splits):
    environment = open_environment(parallelism__default=splits)
    for index in range(splits):
        (tmp_path / f"{index}.txt").write_text("".join(f"{line}\n" for line in range(300)))
    count = 300 * splits
    rate = count / 0.6
    started = time.monotonic()
    rows = environment.read_text(tmp_path, rate_limit=rate).to_arrow().num_rows
    elapsed = time.monotonic() - started
    assert rows == count
    # the job's own time comes on top; no upper bound is safe on a loaded machine
    assert elapsed > 0.95 * count / rate


def test_every_source_takes_a_rate_limit(environment, tmp_path):
    rows = numbered(50)
    data = environment.from_arrow(rows)
    data.write_csv(tmp_path / "csv")
    data.write_parquet(tmp_path / "parquet")
    data.write_records(tmp_path / "records")
    environment.execute()
    for source in (
        environment.read_csv(tmp_path / "csv", schema=SCHEMA, rate_limit=1e5),
        environment.read_parquet(tmp_path / "parquet", rate_limit=1e5),
        environment.read_records(tmp_path / "records", rate_limit=1e5),
        environment.from_arrow(rows, rate_limit=1e5),
        environment.from_rows([(1, "a")] * 50, SCHEMA, rate_limit=1e5),
    ):
        assert source.count() == 50


def test_a_source_that_waits_ends_with_its_job(environment):
    slow = environment.from_arrow(numbered(3_600), rate_limit=1)
    failing = environment.from_arrow(numbered(10)).map(lambda row: (1 // row.k, row.name), SCHEMA)
    started = time.monotonic()
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        slow.union(failing).to_arrow()
    assert time.monotonic() - started < 600


@pytest.mark.quick
@pytest.mark.parametrize("rate", [0, -1, "10", True, float("nan"), float("inf")])
def test_a_rate_that_is_none_is_refused(environment, rate):
    with pytest.raises(PlanError, match="rate_limit"):
        environment.from_arrow(numbered(1), rate_limit=rate)


# sources that everyone reads ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sides(environment, tmp_path_factory):
    """Return (a data set of 4000 rows, a replicated one of 40 rows in several splits)."""
    folder = tmp_path_factory.mktemp("sides")
    for index in range(4):
        part = numbered(10, keys=10).select(["k"]).append_column("code", [[f"c{index}"] * 10])
        environment.from_arrow(part).write_parquet(folder / f"small{index}")
    environment.execute()
    small = environment.read_parquet([folder / f"small{index}" for index in range(4)])
    return environment.from_arrow(numbered(4_000, keys=10)).rebalance().set_parallelism(4), small.replicated()


def rows_out(result, word):
    (vertex,) = (vertex for vertex in result.vertices if word in vertex.name)
    return [subtask.rows_out for subtask in vertex.subtasks]


def test_every_subtask_of_a_join_reads_a_replicated_side(environment, sides, tmp_path):
    large, small = sides
    joined = large.join(small, on="k")
    lines = [line for line in joined.explain().splitlines() if "─ " in line]
    assert len([line for line in lines if "build: FORWARD (every subtask reads all of it)" in line]) == 1
    assert "BROADCAST (" not in "".join(lines)
    assert "REPLICATED" in joined.explain()
    joined.write_parquet(tmp_path / "out")
    result = environment.execute()
    assert rows_out(result, "parquet source") == [40] * 4
    assert environment.read_parquet(tmp_path / "out").count() == 16_000


def test_a_replicated_side_may_be_selected_and_filtered(environment, sides):
    large, small = sides
    picked = small.filter(col("code") == "c1").select("k", col("code").alias("c"))
    joined = large.join(picked, on="k")
    assert "every subtask reads all of it" in joined.explain()
    assert joined.count() == 4_000
    assert picked.join(large, on="k").count() == 4_000


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti", "cross"])
def test_replication_never_makes_rows_twice(environment, sides, how):
    _, small = sides
    large = environment.from_arrow(numbered(200, keys=10)).rebalance().set_parallelism(4)
    other = small.rename(k="r").filter(col("r") > 2)
    keys = {} if how == "cross" else {"left_on": "k", "right_on": "r"}
    plain = environment.from_arrow(other.to_arrow())
    for left, right, plain_left, plain_right in [(large, other, large, plain), (other, large, plain, large)]:
        if left is other and keys:
            keys = {"left_on": "r", "right_on": "k"}
        found = left.join(right, how=how, **keys).to_arrow()
        expected = plain_left.join(plain_right, how=how, **keys).to_arrow()
        assert_same_rows(rows_of(found), rows_of(expected))


def test_what_is_no_join_reads_a_replicated_source_once(environment, sides, tmp_path):
    _, small = sides
    assert small.count() == 40
    assert len(small.collect()) == 40
    assert small.select("k").distinct().count() == 10
    assert small.union(small).count() == 80
    assert small.sort("k").limit(3).count() == 3
    assert small.map(lambda row: row, small.schema).count() == 40
    assert small.join(small.rename(code="other"), on="k").count() == 160
    small.write_csv(tmp_path / "csv")
    environment.execute()
    assert environment.read_csv(tmp_path / "csv", schema=small.schema).count() == 40


def test_a_join_hint_wins_over_replication(environment, sides):
    large, small = sides
    joined = large.join(small, on="k", hint="REPARTITION_HASH_SECOND")
    assert "every subtask" not in joined.explain()
    assert joined.count() == 16_000


def test_only_sources_are_replicated(environment):
    with pytest.raises(PlanError, match="for a source"):
        environment.from_arrow(numbered(1)).filter(col("k") > 1).replicated()
