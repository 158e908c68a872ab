"""Parquet files as a source: splits, statistics, types."""

from contextlib import closing
from datetime import datetime

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import DataError, PlanError, SchemaError
from engine.expressions.schema_bridge import to_plan_schema
from engine.formats.registry import open_source
from engine.parquet.key_sample import key_statistics
from engine.parquet.sample import with_sample
from engine.parquet.source import parquet_source


def table_of(spec, schema):
    with closing(open_source(spec, spec.splits)) as reader:
        batches = list(reader)
    assert all(batch.num_rows <= 32768 for batch in batches)
    return pa.Table.from_batches(batches, schema=schema)


def test_row_groups_are_splits_and_the_footers_give_statistics(tmp_path):
    table = pa.table(
        {"n": list(range(10_000)), "s": ["x" * (number % 10) for number in range(10_000)], "o": [None, 1] * 5000}
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3000)
    pq.write_table(table.select(["s", "o", "n"]), tmp_path / "b.parquet")
    spec, statistics, schema = parquet_source(tmp_path)
    assert [(split.start, split.end, split.row_count) for split in spec.splits] == [
        (0, 1, 3000),
        (1, 2, 3000),
        (2, 3, 3000),
        (3, 4, 1000),
        (0, 1, 10_000),
    ]
    assert (statistics.row_count, statistics.is_exact) == (20_000.0, True)
    numbers = statistics.columns["n"]
    assert (numbers.minimum, numbers.maximum, numbers.null_fraction) == (0, 9999, 0.0)
    assert statistics.columns["o"].null_fraction == 0.5
    assert table_of(spec, schema).equals(pa.concat_tables([table, table]))


def test_only_wanted_columns_are_read_in_the_order_asked_for(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": ["x"], "c": [2.5]}), tmp_path / "a.parquet")
    spec, _, _ = parquet_source(tmp_path / "a.parquet")
    batches = list(open_source(msgspec.structs.replace(spec, columns=("c", "a")), spec.splits))
    assert batches[0].to_pydict() == {"c": [2.5], "a": [1]}
    batches = list(open_source(msgspec.structs.replace(spec, columns=()), spec.splits))
    assert [(batch.num_rows, batch.num_columns) for batch in batches] == [(1, 0)]


def test_encoded_types_are_read_as_plain_ones(tmp_path):
    table = pa.table({"d": pa.array(["x", "y", "x"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    spec, _, schema = parquet_source(tmp_path / "a.parquet")
    assert schema == pa.schema([("d", pa.string())])
    assert table_of(spec, schema).to_pydict() == {"d": ["x", "y", "x"]}


def test_uuids_are_their_bytes_and_json_is_its_text(tmp_path):
    path = tmp_path / "a.parquet"
    uuid = "00000000-0000-0000-0000-0000000000ff"
    duckdb.sql(f"COPY (SELECT '{uuid}'::UUID AS u, '{{\"a\":1}}'::JSON AS j FROM range(3)) TO '{path}'")
    spec, _, schema = parquet_source(path)
    assert schema == pa.schema([("u", pa.binary(16)), ("j", pa.string())])
    assert table_of(spec, schema).to_pydict() == {"u": [b"\0" * 15 + b"\xff"] * 3, "j": ['{"a":1}'] * 3}


def test_a_column_that_cannot_be_decoded_is_named(tmp_path):
    # Differences beyond 32 bits within lists, as DuckDB writes them; Arrow's decoder knows no such.
    path = tmp_path / "a.parquet"
    numbers = "((hash(i) % 4294967296)::BIGINT - 2147483648)::INT"
    query = f"SELECT i, [{numbers}] AS h, i AS k FROM range(100) t(i)"
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet, PARQUET_VERSION V2)")
    spec, _, schema = parquet_source(path)
    with pytest.raises(DataError, match=r"row groups 0 to 1: column 'h': .* written by DuckDB"):
        table_of(spec, schema)


def test_timestamps_of_96_bits_are_right_in_every_year(tmp_path):
    moments = [
        datetime(1, 1, 1),
        datetime(1600, 2, 29, 12),
        datetime(2024, 5, 6, 7, 8, 9, 123456),
        datetime(9999, 12, 31),
    ]
    table = pa.table({"t": pa.array([*moments, None], pa.timestamp("us")), "l": pa.array([moments] * 5)})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    spec, footers, schema = parquet_source(tmp_path / "a.parquet")
    assert schema == pa.schema([("t", pa.timestamp("us")), ("l", pa.list_(pa.field("element", pa.timestamp("us"))))])
    assert table_of(spec, schema).to_pydict() == table.to_pydict()
    assert with_sample(spec, footers, to_plan_schema(schema), {"t"}).columns["t"].distinct_count == 4


WIDENED = {
    "integers": ([pa.int32(), pa.int64(), pa.int8()], pa.int64()),
    "unsigned": ([pa.uint8(), pa.int8()], pa.int16()),
    "floats": ([pa.float32(), pa.float64()], pa.float64()),
    "texts": ([pa.string(), pa.large_string()], pa.large_string()),
    "bytes": ([pa.large_binary(), pa.binary()], pa.large_binary()),
    "nulls": ([pa.null(), pa.int32(), pa.null()], pa.int32()),
}


@pytest.mark.parametrize(("types", "wider"), WIDENED.values(), ids=WIDENED)
def test_files_whose_types_differ_in_width_are_read_as_the_wider_one(tmp_path, types, wider):
    texts = pa.types.is_large_string(wider) or pa.types.is_large_binary(wider)
    values = ["x", "yy", None] if texts else [1, 2, None]
    for number, data_type in enumerate(types):
        column = pa.nulls(3) if pa.types.is_null(data_type) else pa.array(values).cast(data_type)
        pq.write_table(pa.table({"k": [number] * 3, "a": column}), tmp_path / f"{number}.parquet")
    spec, footers, schema = parquet_source(tmp_path)
    assert schema == pa.schema([("k", pa.int64()), ("a", wider)])
    wanted = [None] * 3 if pa.types.is_null(types[0]) else pa.array(values).cast(wider).to_pylist()
    found = table_of(spec, schema)
    assert found.schema.field("a").type == wider
    assert found["a"].to_pylist()[:3] == wanted
    assert with_sample(spec, footers, to_plan_schema(schema), {"a", "k"}).columns["k"].distinct_count == len(types)
    key_statistics(spec, "a", 3.0 * len(types))


def test_files_whose_types_have_no_wider_one_are_named(tmp_path):
    both = "schema_mode='union' reads both as"
    for one, other, advice in (
        (pa.uint64(), pa.int64(), rf"{both} decimal128\(20, 0\)"),
        (pa.int64(), pa.float64(), f"{both} double"),
        (pa.string(), pa.binary(), "read the files"),
    ):
        pq.write_table(pa.table({"a": pa.nulls(1, one)}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"a": pa.nulls(1, other)}), tmp_path / "b.parquet")
        with pytest.raises(SchemaError, match=rf"b\.parquet: column 'a' is {other}, .* it is {one}; {advice}"):
            parquet_source(tmp_path)


def test_files_that_differ_are_named_with_the_column(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"b\.parquet: column 'a' is string, in .*a\.parquet it is int64"):
        parquet_source(tmp_path)
    pq.write_table(pa.table({"z": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"columns differ .*: a, z"):
        parquet_source(tmp_path)
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "b.parquet")
    with pytest.raises(SchemaError, match=r"b\.parquet has two columns 'a', which no name tells apart"):
        parquet_source(tmp_path / "b.parquet")
    (tmp_path / "b.parquet").write_text("no parquet at all")
    with pytest.raises(PlanError, match=r"b\.parquet is not a Parquet file"):
        parquet_source(tmp_path)


def test_a_parquet_file_without_rows_is_a_source(tmp_path):
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "a.parquet")
    spec, statistics, schema = parquet_source(tmp_path)
    assert (spec.splits, statistics.row_count) == ((), 0.0)
    assert table_of(spec, schema).num_rows == 0


def test_wide_rows_come_in_small_batches_and_narrow_ones_in_large(tmp_path):
    rows = 40_000
    texts = pa.array([f"{index:05d}" * 100 for index in range(rows)])
    pq.write_table(pa.table({"n": range(rows), "text": texts}), tmp_path / "wide.parquet", row_group_size=20_000)
    spec, _, schema = parquet_source(tmp_path / "wide.parquet")
    with closing(open_source(spec, spec.splits)) as reader:
        batches = list(reader)
    assert pa.Table.from_batches(batches, schema=schema).column("text").combine_chunks() == texts
    assert max(batch.nbytes for batch in batches) < 3 << 20
    narrow = list(open_source(msgspec.structs.replace(spec, columns=("n",)), spec.splits))
    assert max(batch.num_rows for batch in narrow) > 8192
    assert pa.chunked_array([batch.column(0) for batch in narrow]).to_pylist() == list(range(rows))


def test_dates_and_times_that_python_has_none_of_are_read(tmp_path):
    days = pa.array([5_000_000, -5_000_000], pa.int32()).cast(pa.date32())
    times = pa.array([2**62, -(2**62)], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"day": days, "time": times})
    pq.write_table(table, tmp_path / "in.parquet")
    _, statistics, schema = parquet_source(tmp_path / "in.parquet")
    assert schema == table.schema
    assert statistics.columns["day"].minimum is statistics.columns["time"].maximum is None
