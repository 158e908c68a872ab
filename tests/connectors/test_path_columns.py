"""Columns in the paths of files, of every format: typed, pruned, in a schema's order; files whose columns differ."""

import datetime
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset, orc

from engine import Environment, col, count, lit
from engine.connectors.path_source import PathOptions, path_source
from engine.errors import ConfigurationError, DataError, PlanError, SchemaError
from engine.files.hive import NULL_FOLDER
from engine.formats.registry import format_named
from engine.formats.source_format import ReadRequest
from engine.graph.source_spec import PathSource


@pytest.fixture
def env():
    with Environment(config={"parallelism.default": 2}) as environment:
        yield environment


def place(folder, rows, suffix="parquet"):
    """Write files of a column n by the name of their folder."""
    for name, values in rows.items():
        (folder / name).mkdir(parents=True)
        path = folder / name / f"a.{suffix}"
        table = pa.table({"n": pa.array(values, pa.int64())})
        if suffix == "parquet":
            pq.write_table(table, path)
        elif suffix == "orc":
            orc.write_table(table, path)
        elif suffix == "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        elif suffix == "json":
            path.write_text("".join(f'{{"n": {value}}}\n' for value in values))
        else:
            path.write_text("".join(f"{value}\n" for value in values))


ROWS = {"year=2023/kind=a%2Fb": [1, 2], "year=2024/kind=01": [3], f"year=2024/kind={NULL_FOLDER}": [4, 5, 6]}
EXPECTED = [(1, 2023, "a/b"), (2, 2023, "a/b"), (3, 2024, "01"), (4, 2024, None), (5, 2024, None), (6, 2024, None)]


@pytest.mark.parametrize("suffix", ["parquet", "orc", "arrow", "json", "csv"])
def test_every_format_has_the_columns_of_its_folders(env, tmp_path, suffix):
    place(tmp_path, ROWS, suffix)
    reads = {"arrow": env.read_ipc, "csv": lambda path: env.read_csv(path, pa.schema([("n", pa.int64())]))}
    data = reads.get(suffix, getattr(env, f"read_{suffix}", None))(tmp_path)
    assert data.schema == pa.schema([("n", pa.int64()), ("year", pa.int64()), ("kind", pa.string())])
    assert [tuple(row) for row in data.sort("n").collect()] == EXPECTED
    found = data.filter((col("year") == 2024) & col("kind").is_null()).select("kind", "n").sort("n").collect()
    assert [tuple(row) for row in found] == [(None, 4), (None, 5), (None, 6)]
    assert data.select("year").group_by("year").agg(n=count()).sort("year").collect()[1].n == 4
    if suffix == "parquet":
        same = duckdb.sql(f"SELECT n, year, kind FROM read_parquet('{tmp_path}/**/*.parquet', hive_partitioning=true)")
        assert sorted(same.fetchall(), key=lambda row: row[0]) == EXPECTED
        arrow = dataset.dataset(tmp_path, partitioning=dataset.partitioning(flavor="hive")).to_table().sort_by("n")
        assert arrow.column("kind").to_pylist() == [row[2] for row in EXPECTED]


def test_types_are_inferred_or_given_and_01_stays_text(env, tmp_path):
    place(tmp_path / "a", {"d=2024-01-01": [1], "d=2024-02-30": [2]})
    assert env.read_parquet(tmp_path / "a").schema.field("d").type == pa.string()
    place(tmp_path / "b", {"d=2024-01-01": [1], f"d={NULL_FOLDER}": [2]})
    data = env.read_parquet(tmp_path / "b")
    assert [row.d for row in data.sort("n").collect()] == [datetime.date(2024, 1, 1), None]
    place(tmp_path / "c", {"x=1": [1], "x=01": [2]})
    assert env.read_parquet(tmp_path / "c").schema.field("x").type == pa.string()
    typed = env.read_parquet(tmp_path / "c", partitioning=pa.schema([("x", pa.int8())]))
    assert [tuple(row) for row in typed.sort("n").collect()] == [(1, 1), (2, 1)]
    assert typed.schema.field("x").type == pa.int8()
    place(tmp_path / "e", {f"x={2**63 - 1}": [1], f"x={-(2**63)}": [2]})
    assert [row.x for row in env.read_parquet(tmp_path / "e").sort("n").collect()] == [2**63 - 1, -(2**63)]
    for name, values, wanted in [
        ("f", [2**64 - 1, 1], pa.uint64()),
        ("g", [2**64 - 1, -1], pa.decimal128(38, 0)),
        ("h", [10**38 - 1, 2**64], pa.decimal128(38, 0)),
        ("i", [10**38, 1], pa.string()),
    ]:
        place(tmp_path / name, {f"x={value}": [index] for index, value in enumerate(values)})
        found = env.read_parquet(tmp_path / name).sort("n")
        assert found.schema.field("x").type == wanted
        assert [int(row.x) for row in found.collect()] == values
        assert found.filter(col("x") == lit(str(values[0])).cast(wanted)).count() == 1
    for encoded in (
        pa.dictionary(pa.int8(), pa.string()),
        pa.string_view(),
        pa.run_end_encoded(pa.int32(), pa.string()),
    ):
        plain = env.read_parquet(tmp_path / "c", partitioning=pa.schema([("x", encoded)]))
        assert plain.schema.field("x").type == pa.string()
        assert plain.filter(col("x") == "01").select("n").collect() == [(2,)]
    place(tmp_path / "d", {"x=7": [1]}, "csv")
    given = env.read_csv(tmp_path / "d", pa.schema([("x", pa.string()), ("n", pa.int64())]))
    assert [tuple(row) for row in given.collect()] == [("7", 1)]
    with pytest.raises(SchemaError, match=r"x=01 is not timestamp|x=1 is not timestamp"):
        env.read_parquet(tmp_path / "c", partitioning=pa.schema([("x", pa.timestamp("us"))]))
    with pytest.raises(SchemaError, match=r"x=01 is not list<item: int8>|x=1 is not list<item: int8>"):
        env.read_parquet(tmp_path / "c", partitioning=pa.schema([("x", pa.list_(pa.int8()))]))
    with pytest.raises(ConfigurationError, match="partitioning='spark': choose 'hive'"):
        env.read_parquet(tmp_path / "c", partitioning="spark")


def test_folders_that_a_filter_rules_out_are_not_read(env, tmp_path):
    place(tmp_path, {f"day=2024-01-{day:02d}": [day] for day in range(1, 29)})
    # Were they read, the job would fail.
    for day in range(1, 28):
        path = tmp_path / f"day=2024-01-{day:02d}" / "a.parquet"
        data = bytearray(path.read_bytes())
        data[4:20] = b"\xff" * 16
        path.write_bytes(data)
    source = env.read_parquet(tmp_path)
    wanted = source.filter(col("day") > "2024-01-27")
    assert "1 of 28 files" in wanted.explain()
    assert wanted.collect()[0].n == 28


def test_row_groups_that_a_filter_on_another_column_rules_out_are_not_read(env, tmp_path):
    for kind in ("a", "b"):
        (tmp_path / f"kind={kind}").mkdir()
        table = pa.table({"n": range(1000), "s": [kind] * 1000})
        pq.write_table(table, tmp_path / f"kind={kind}" / "a.parquet", row_group_size=100)
    wanted = env.read_parquet(tmp_path).filter((col("n") >= 950) & (col("kind") == "b"))
    assert "1 of 2 files, 1 of 10 row groups" in wanted.explain()
    assert [row.n for row in wanted.sort("n").collect()] == list(range(950, 1000))


def test_files_in_folders_keep_the_name_of_their_file_and_its_own_column_gives_way(env, tmp_path):
    place(tmp_path, {"n=9": [1, 2], "n=8": [3]})
    data = env.read_parquet(tmp_path, file_name_column="file").sort("n")
    assert [(row.n, row.file.rpartition("/")[0][-3:]) for row in data.collect()] == [(8, "n=8"), (9, "n=9"), (9, "n=9")]
    plain = env.read_parquet(tmp_path / "n=9", file_name_column="file")
    assert [tuple(row) for row in plain.sort("n").collect()] == [
        (1, str(tmp_path / "n=9" / "a.parquet")),
        (2, str(tmp_path / "n=9" / "a.parquet")),
    ]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_columns_that_a_file_has_not_are_null_in_a_union(env, tmp_path, suffix):
    tables = [pa.table({"a": [1], "b": ["x"]}), pa.table({"c": [2.5], "a": [2]}), pa.table({"d": [True]})]
    for index, table in enumerate(tables):
        path = tmp_path / f"{index}.{suffix}"
        if suffix == "parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
    read = env.read_parquet if suffix == "parquet" else env.read_ipc
    with pytest.raises(SchemaError, match=r"columns differ from those of .*; schema_mode='union' reads null"):
        read(tmp_path)
    with pytest.raises(ConfigurationError, match="schema_mode='any': choose strict or union"):
        read(tmp_path, schema_mode="any")
    data = read(tmp_path, schema_mode="union")
    assert data.schema.names == ["a", "b", "c", "d"]
    expected = [(1, "x", None, None), (2, None, 2.5, None), (None, None, None, True)]
    assert sorted(map(tuple, data.collect()), key=str) == sorted(expected, key=str)
    assert [row.d for row in data.filter(col("c") > 1).select("d", "c").collect()] == [None]


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_numbers_of_two_kinds_are_the_type_that_holds_both_in_a_union(env, tmp_path, suffix):
    def write(index, values):
        table = pa.table({"a": values})
        if suffix == "parquet":
            pq.write_table(table, tmp_path / f"{index}.parquet")
        else:
            with pa.ipc.new_file(tmp_path / f"{index}.arrow", table.schema) as writer:
                writer.write_table(table)

    read = env.read_parquet if suffix == "parquet" else env.read_ipc
    write(0, pa.array([1, 2, None]))
    write(1, pa.array([2.5, -1.0]))
    write(2, pa.array([7], pa.int16()))
    with pytest.raises(SchemaError, match=r"column 'a' is double, in .* it is int64; schema_mode='union' reads both"):
        read(tmp_path)
    data = read(tmp_path, schema_mode="union")
    assert data.schema == pa.schema({"a": pa.float64()})
    assert sorted(row.a for row in data.filter(col("a").is_not_null()).collect()) == [-1.0, 1.0, 2.0, 2.5, 7.0]
    assert [row.a for row in data.filter((col("a") > 2) & (col("a") < 7)).collect()] == [2.5]
    assert data.count() == 6
    write(3, pa.array([2**53 + 1]))
    whole = read(tmp_path, schema_mode="union")
    with pytest.raises(DataError, match=r"3\.(parquet|arrow).*9007199254740993 not in range"):
        whole.filter(col("a") > 3).collect()
    write(4, pa.array(["x"]))
    with pytest.raises(SchemaError, match=r"column 'a' is string, .* cast one and unite them"):
        read(tmp_path, schema_mode="union")


def test_whole_numbers_and_decimals_are_decimals_with_room_for_both_in_a_union(env, tmp_path):
    pq.write_table(pa.table({"a": [2]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [Decimal("3.25")]}), tmp_path / "1.parquet")
    data = env.read_parquet(tmp_path, schema_mode="union")
    assert data.schema == pa.schema({"a": pa.decimal128(21, 2)})
    assert sorted(row.a for row in data.collect()) == [Decimal(2), Decimal("3.25")]


def test_many_small_files_are_shared_out_by_bytes(tmp_path):
    place(tmp_path, {f"k={index}": [index] for index in range(300)})
    spec, statistics, _ = path_source(format_named("parquet"), tmp_path, PathOptions(), ReadRequest())
    assert isinstance(spec, PathSource)
    assert len(spec.splits) == len(spec.values) == 300
    assert statistics.columns["k"].distinct_count == 300


def test_a_schema_of_the_columns_of_paths_alone_is_an_error(tmp_path, env):
    place(tmp_path, {"v=1": [1]}, "csv")
    with pytest.raises(SchemaError, match=r"read_csv: schema= names v alone, which comes from the path; it leaves no"):
        env.read_csv(tmp_path, schema=pa.schema({"v": pa.int64()}))


def test_an_output_without_rows_says_so_when_it_is_read(tmp_path, env):
    none = env.from_arrow(pa.table({"x": pa.array([], pa.int64()), "y": pa.array([], pa.int64())}))
    none.write_parquet(tmp_path / "none", partition_by="y")
    env.execute()
    with pytest.raises(PlanError, match="holds no files; an output with partition_by= and without rows is such"):
        env.read_parquet(tmp_path / "none")


def test_names_that_mean_nothing_or_two_things_are_errors(tmp_path, env):
    (tmp_path / "year=2024").mkdir()
    pq.write_table(pa.table({"v": [1]}), tmp_path / "year=2024" / "a.parquet")
    with pytest.raises(SchemaError, match="file_name_column='v': the files have a column of that name; choose another"):
        env.read_parquet(tmp_path, file_name_column="v")
    with pytest.raises(SchemaError, match=r"names 'yaer', but no folder above .* does: they are named after year"):
        env.read_parquet(tmp_path, partitioning=pa.schema([("yaer", pa.int32())]))
    (tmp_path / "plain.parquet").write_bytes((tmp_path / "year=2024" / "a.parquet").read_bytes())
    with pytest.raises(SchemaError, match=r"names 'x', but no folder above .* does: none is named key=value"):
        env.read_parquet(tmp_path / "plain.parquet", partitioning=pa.schema([("x", pa.int32())]))
