"""Partitioned folders out: one file open at a time, read back by us, DuckDB and pyarrow; append and replace."""

import datetime
import random
import warnings

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset

from engine import DreyWarning, Environment, col
from engine.connectors import sink_writer
from engine.errors import ConfigurationError, JobExecutionError, PlanError, SchemaError
from engine.files.hive import NULL_FOLDER

ROWS = 3000
KINDS = ["a/b", "", None, "ö=1%", "x"]
TABLE = pa.table(
    {
        "n": pa.array(range(ROWS), pa.int64()),
        "kind": [KINDS[index % 5] for index in range(ROWS)],
        "day": pa.array([datetime.date(2024, 1, 1 + index % 7) for index in range(ROWS)], pa.date32()),
    }
)

#: more than a small sort; nineteen of twenty rows are in one partition
HEAVY_ROWS = 600_000
HEAVY = pa.table({"n": pa.array(range(HEAVY_ROWS)), "k": [0 if n % 20 else n % 7 for n in range(HEAVY_ROWS)]})


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


def expected():
    return sorted((row["n"], row["day"], row["kind"] or None) for row in TABLE.to_pylist())


READS = {
    "parquet": lambda env, path: env.read_parquet(path),
    "csv": lambda env, path: env.read_csv(path, header=True),
    "json": lambda env, path: env.read_json(path),
    "ipc": lambda env, path: env.read_ipc(path),
    "orc": lambda env, path: env.read_orc(path),
}


@pytest.mark.parametrize("keys", [["_day"], [".hidden"], ["day", "_shard"], ["_day", ".hidden", "a=b"]], ids=str)
@pytest.mark.parametrize("kind", READS)
def test_columns_whose_names_look_hidden_come_back(env, tmp_path, kind, keys):
    rows = pa.table(
        {"n": range(6), **{key: [index % (2 + place) for index in range(6)] for place, key in enumerate(keys)}}
    )
    write = getattr(env.from_arrow(rows), f"write_{kind}")
    header = {"header": True} if kind == "csv" else {}
    for mode, times in (("error", 1), ("append", 2), ("overwrite_partitions", 1)):
        write(tmp_path / "out", partition_by=keys, mode=mode, **header)
        env.execute()
        back = READS[kind](env, tmp_path / "out").select("n", *keys).sort("n").to_arrow()
        assert back.to_pylist() == [row for row in rows.to_pylist() for _ in range(times)], mode
    if kind == "parquet" and ".hidden" not in keys:  # DuckDB has names of keys with their escapes
        found = duckdb.sql(f"SELECT * FROM read_parquet('{tmp_path}/out/**/*.parquet', hive_partitioning=1) ORDER BY n")
        assert found.to_arrow_table().select(rows.column_names).to_pylist() == rows.to_pylist()
    if kind == "parquet" and keys == [".hidden"]:  # and pyarrow passes over folders such as _day=1
        other = dataset.dataset(tmp_path / "out", partitioning="hive").to_table().sort_by("n")
        assert other.select(rows.column_names).to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("is_sorted", [False, True])
def test_a_large_partition_is_written_by_several_subtasks_in_files_of_the_size_asked_for(env, tmp_path, is_sorted):
    target = 512 << 10
    data = env.from_arrow(HEAVY)
    data = data.sort("n", descending=True) if is_sorted else data
    data.write_csv(tmp_path / "out", partition_by="k", target_file_size=target)
    result = env.execute("write")
    writers = [subtask.rows_in for subtask in result.vertices[-1].subtasks]
    assert len(writers) == 2
    assert min(writers) > 0.4 * HEAVY.num_rows
    large = sorted((tmp_path / "out" / "k=0").iterdir())
    small = [path for path in large if path.stat().st_size < 0.9 * target]
    assert len(large) > 4
    assert len(small) <= 2  # the last one of each writer
    read = [int(line) for path in large for line in path.read_text().split()]
    wanted = [n for n, k in zip(*HEAVY.to_pydict().values(), strict=True) if k == 0]
    assert read == (wanted[::-1] if is_sorted else wanted)
    assert all(len(list((tmp_path / "out" / f"k={key}").iterdir())) <= 2 for key in range(1, 7))
    assert env.read_csv(tmp_path / "out", pa.schema([("n", pa.int64()), ("k", pa.int64())])).count() == HEAVY.num_rows


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
def test_partitions_are_folders_that_every_reader_knows(env, tmp_path, suffix, monkeypatch):
    opened, most = [0], [0]
    open_real = sink_writer.open_sink_writer

    class Counting:
        def __init__(self, writer):
            self._writer = writer
            opened[0] += 1
            most[0] = max(most[0], opened[0])

        def __getattr__(self, name):
            if name == "finish":
                opened[0] -= 1
            return getattr(self._writer, name)

    import engine.operators.sink_operator as module

    monkeypatch.setattr(module, "open_sink_writer", lambda *args: Counting(open_real(*args)))
    data = env.from_arrow(TABLE)
    getattr(data, f"write_{suffix}")(tmp_path / "out", partition_by=["day", "kind"], sort_by="n")
    env.execute()
    assert most[0] <= 2
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert f"day=2024-01-07/kind=a%2Fb/part-00000.{suffix}" in names
    assert f"day=2024-01-01/kind={NULL_FOLDER}/part-00000.{suffix}" in names
    assert len({name.rpartition("/")[0] for name in names}) == 7 * 4
    if suffix == "csv":
        schema = pa.schema([("n", pa.int64()), ("day", pa.date32()), ("kind", pa.string())])
        back = env.read_csv(tmp_path / "out", schema)
    else:
        back = getattr(env, f"read_{suffix}")(tmp_path / "out")
    assert sorted(map(tuple, back.select("n", "day", "kind").collect())) == expected()
    if suffix == "parquet":
        glob = f"{tmp_path}/out/**/*.parquet"
        found = duckdb.sql(f"SELECT n, day, kind FROM read_parquet('{glob}', hive_partitioning=true)").fetchall()
        assert sorted(found) == expected()
        hive = dataset.partitioning(pa.schema([("day", pa.date32()), ("kind", pa.string())]), flavor="hive")
        table = dataset.dataset(tmp_path / "out", partitioning=hive).to_table(columns=["n", "day", "kind"])
        assert sorted(zip(*table.to_pydict().values(), strict=True)) == expected()
        # An empty text and null are two values in one folder.
        for path in (tmp_path / "out").glob("*/kind=[!_]*/*.parquet"):
            values = pq.ParquetFile(path).read().column("n").to_pylist()
            assert values == sorted(values)


def test_what_is_appended_is_beside_what_was_there_and_partitions_are_replaced(env, tmp_path):
    def write(rows, **options):
        table = pa.table({"k": [row[0] for row in rows], "n": [row[1] for row in rows]})
        env.from_arrow(table).write_parquet(tmp_path / "out", partition_by="k", **options)
        env.execute()
        return sorted((row.k, row.n) for row in env.read_parquet(tmp_path / "out").collect())

    assert write([(1, 10), (2, 20)], mode="append") == [(1, 10), (2, 20)]
    assert write([(2, 21), (3, 30)], mode="append") == [(1, 10), (2, 20), (2, 21), (3, 30)]
    assert write([(2, 99)], mode="overwrite_partitions") == [(1, 10), (2, 99), (3, 30)]
    with pytest.raises(PlanError, match="already exists; pass overwrite=True to replace it, or mode='append'"):
        write([(2, 99)])
    assert write([(5, 5)], mode="overwrite") == [(5, 5)]
    env.from_arrow(pa.table({"k": [1], "n": [2]})).filter(col("n") > 5).write_parquet(
        tmp_path / "out", partition_by="k", mode="append"
    )
    env.execute()
    assert env.read_parquet(tmp_path / "out").count() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda data: data.drop("n"), "has other columns: n; select those that are there"),
        (lambda data: data.with_columns(m=1), "has other columns: m"),
    ],
)
def test_who_adds_what_does_not_fit_is_warned(env, tmp_path, change, text):
    data = env.from_arrow(TABLE.slice(0, 20))
    data.write_parquet(tmp_path / "out", partition_by="day")
    env.execute()
    with pytest.warns(DreyWarning, match=f"^write_parquet.*mode='append': what is there .*{text}"):
        change(data).write_parquet(tmp_path / "out", partition_by="day", mode="append")
    env.execute()


def test_who_adds_what_fits_is_not_warned(env, tmp_path):
    data = env.from_arrow(TABLE.slice(0, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            data.write_parquet(tmp_path / "out", partition_by="day", mode="append")
            env.execute()
        data.with_columns(n=col("n").cast("int32")).write_parquet(tmp_path / "out", partition_by="day", mode="append")
        env.execute()
        assert env.read_parquet(tmp_path / "out").count() == 60
        data.write_csv(tmp_path / "text", mode="append")
        env.execute()
        (tmp_path / "text" / "README.txt").write_text("what this is")
        data.write_csv(tmp_path / "text", mode="append")
        env.execute()


@pytest.mark.parametrize("options", [{}, {"partition_by": "day"}, {"compression": "gzip", "delimiter": ";"}])
def test_a_header_is_in_all_csv_files_of_a_folder_or_in_none(env, tmp_path, options):
    data = env.from_arrow(TABLE.slice(0, 20))
    for header in (True, False):
        folder = tmp_path / str(header)
        for _ in range(2):
            data.write_csv(folder, header=header, mode="append", **options)
            env.execute()
        assert env.read_csv(folder, header=header, delimiter=options.get("delimiter", ",")).count() == 40
    with pytest.raises(ConfigurationError, match=r"header=False, mode='append': what is there .* with a header;"):
        data.write_csv(tmp_path / "True", mode="append", **options)
    with pytest.raises(ConfigurationError, match=r"begins with .*, not with the header; leave header=True out"):
        data.write_csv(tmp_path / "False", header=True, mode="append", **options)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "part-0.csv").touch()
    data.write_csv(tmp_path / "empty", header=True, mode="append", partition_by="day")


def test_a_job_that_fails_adds_nothing(env, tmp_path):
    env.from_arrow(TABLE.select(["n"])).write_csv(tmp_path / "out")
    env.execute()
    before = sorted(path.name for path in (tmp_path / "out").iterdir())
    schema = pa.schema([("n", pa.int64())])
    bad = env.from_arrow(TABLE.select(["n"])).map(lambda row: 1 // (row.n - 2000), schema)
    bad.write_csv(tmp_path / "out", mode="append")
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        env.execute()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_files_have_about_the_size_that_is_wanted(env, tmp_path):
    table = pa.table({"s": [f"{index:099d}" for index in range(40_000)]})
    env.from_arrow(table).sort("s").write_text(tmp_path / "out", target_file_size="256kb")
    env.execute()
    sizes = [path.stat().st_size for path in sorted((tmp_path / "out").iterdir())]
    assert sum(sizes) == 40_000 * 100
    small = [size for size in sizes if size < 0.9 * (256 << 10)]
    assert len(small) <= 2
    assert max(sizes) < 4 * (256 << 10)


def test_options_are_checked_where_they_are_given(env, tmp_path):
    data = env.from_arrow(TABLE)
    with pytest.raises(ConfigurationError, match="write_csv: mode='replace': choose one of error, overwrite"):
        data.write_csv(tmp_path / "out", mode="replace")
    with pytest.raises(ConfigurationError, match="overwrite=True is short for mode='overwrite'"):
        data.write_csv(tmp_path / "out", overwrite=True, mode="append")
    with pytest.raises(ConfigurationError, match="mode='overwrite_partitions' needs partition_by"):
        data.write_csv(tmp_path / "out", mode="overwrite_partitions")
    with pytest.raises(SchemaError, match="nope"):
        data.write_csv(tmp_path / "out", partition_by="nope")
    with pytest.raises(SchemaError, match="nope"):
        data.write_csv(tmp_path / "out", sort_by=["nope"])
    with pytest.raises(TypeError, match=r"write_csv\(\) has no option partitionby=: did you mean partition_by="):
        data.write_csv(tmp_path / "out", partitionby="kind")
    with pytest.raises(ConfigurationError, match="target_file_size"):
        data.write_csv(tmp_path / "out", target_file_size="many")
    for size in (0, "0"):
        with pytest.raises(ConfigurationError, match=rf"target_file_size={size!r}: give a size"):
            data.write_csv(tmp_path / "out", target_file_size=size)


def test_parquet_files_have_the_size_that_is_wanted(env, tmp_path):
    rows = 1_000_000
    noise = pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(random.Random(1).randbytes(8 * rows))])
    table = pa.table({"k": pa.array([0, 1] * (rows // 2)), "x": noise})
    wanted = 1 << 20
    env.from_arrow(table).write_parquet(tmp_path / "out", partition_by="k", target_file_size=wanted)
    env.execute()
    for folder in ("k=0", "k=1"):
        sizes = sorted(path.stat().st_size for path in (tmp_path / "out" / folder).iterdir())
        assert 0.9 * wanted <= sizes[2]
        assert sizes[-1] <= 2.2 * wanted  # a row group has a megabyte of rows at least
