"""Parquet, record data sets, Arrow data and Python rows as sources."""

import base64
import json
from datetime import datetime
from decimal import Decimal

import duckdb
import msgspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import engine.connectors.arrow_source as arrow_source_module
from engine.connectors.arrow_source import INLINE_BYTES, arrow_source
from engine.connectors.records_manifest import (
    RecordsColumn,
    RecordsFile,
    RecordsManifest,
    encode_manifest,
    read_manifest,
    write_manifest,
)
from engine.connectors.records_source import records_source
from engine.connectors.row_source import rows_to_table
from engine.errors import DataError, DiskFullError, PlanError, SchemaError
from engine.expressions.schema_bridge import to_plan_schema
from engine.formats.registry import open_source
from engine.parquet import sample
from engine.parquet.key_sample import key_statistics
from engine.parquet.sample import with_sample
from engine.parquet.source import parquet_source
from engine.records.batch_limits import ARROW_ROWS_MAX, BATCH_BYTES_MAX
from engine.storage.file_systems import LOCAL


def table_of(spec, schema):
    batches = list(open_source(spec, spec.splits))
    assert all(batch.num_rows <= 32768 for batch in batches)
    return pa.Table.from_batches(batches, schema=schema)


def refuse_folder():
    raise AssertionError("small data needs no folder")


# Parquet


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


def test_only_columns_that_are_read_are_sampled(tmp_path):
    table = pa.table(
        {
            "n": list(range(10_000)),
            "s": ["x" * (number % 10) for number in range(10_000)],
            "decimal": pa.array([Decimal(number) for number in range(10_000)], pa.decimal128(15, 2)),
            "wide": [b"x" * 20_000, *[None] * 9_999],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2500)
    spec, footers, schema = parquet_source(tmp_path)
    statistics = with_sample(spec, footers, to_plan_schema(schema), {"s", "decimal"})
    assert statistics.origin == "parquet metadata, sample of 8192 rows"
    assert 4 < statistics.columns["s"].average_width_bytes < 5
    assert statistics.columns["decimal"].distinct_count == pytest.approx(10_000, rel=0.01)
    assert statistics.columns["n"] == footers.columns["n"]
    assert (footers.columns["n"].maximum, footers.columns["n"].distinct_count) == (9999, None)
    assert 8 + 4 + 4.5 + 16 < statistics.size_bytes / 10_000 < 8 + 4 + 4.5 + 16 + 4
    again = with_sample(spec, statistics, to_plan_schema(schema), {"s"})
    assert again.columns == statistics.columns
    (tmp_path / "a.parquet").unlink()
    assert with_sample(spec, footers, to_plan_schema(schema), {"s"}) == footers


def test_columns_that_are_carried_along_are_sampled_in_half_as_many_row_groups(tmp_path, monkeypatch):
    read, own = [], sample._group_sample

    def group_sample(files, group, rows, columns):
        read.append((group.start, rows, columns))
        return own(files, group, rows, columns)

    monkeypatch.setattr(sample, "_group_sample", group_sample)
    table = pa.table({"k": list(range(10_000)), "s": [f"{row % 10:04}" for row in range(10_000)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2500)
    spec, footers, schema = parquet_source(tmp_path)
    statistics = with_sample(spec, footers, to_plan_schema(schema), {"k", "s"}, carried={"s"})
    assert read == [*((group, 2048, ["k"]) for group in range(4)), (0, 1024, ["s"]), (2, 1024, ["s"])]
    assert statistics.origin == "parquet metadata, sample of 8192 rows"
    assert statistics.columns["k"].distinct_count == 10_000
    assert (statistics.columns["s"].average_width_bytes, statistics.columns["s"].distinct_count) == (4, 10)
    assert 8 + 4 + 4 <= statistics.size_bytes / 10_000 < 8 + 4 + 8 + 1
    alone = with_sample(spec, footers, to_plan_schema(schema), {"s"}, carried={"s"})
    assert alone.origin == "parquet metadata, sample of 2048 rows"
    assert with_sample(spec, footers, to_plan_schema(schema), {"s"}).columns["s"].distinct_count == 10


def test_columns_of_wide_values_are_not_sampled(tmp_path):
    table = pa.table(
        {"n": [1, 2], "wide": [b"x" * 40_000, None], "fixed": pa.array([b"y" * 20_000] * 2, pa.binary(20_000))}
    )
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    spec, footers, schema = parquet_source(tmp_path)
    assert 20_000 < footers.columns["wide"].average_width_bytes < 20_100
    statistics = with_sample(spec, footers, to_plan_schema(schema), {"n", "wide", "fixed"})
    assert statistics.columns["n"].distinct_count == 2
    assert statistics.columns["wide"] == footers.columns["wide"]
    assert statistics.columns["fixed"] == footers.columns["fixed"]
    assert 2 * 40_000 < statistics.size_bytes < 2 * 40_200


def test_a_damaged_page_of_a_sample_is_told_and_one_that_is_not_read_is_not(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": list(range(5000)), "s": ["text"] * 5000}), path, write_page_checksum=True)
    spec, footers, schema = parquet_source(path)
    damaged = bytearray(path.read_bytes())
    column = pq.read_metadata(path).row_group(0).column(0)
    damaged[column.dictionary_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(damaged)
    assert with_sample(spec, footers, to_plan_schema(schema), {"s"}).columns["s"].distinct_count == 1
    with pytest.raises(DataError, match=f"file {path}, row group 0: "):
        with_sample(spec, footers, to_plan_schema(schema), {"n"})


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


# Record data sets


def manifest_of(table, path):
    return RecordsManifest(
        schema=table.schema.serialize().to_pybytes(),
        files=(RecordsFile("part-00000.parquet", table.num_rows, path.stat().st_size),),
        row_count=table.num_rows,
        size_bytes=path.stat().st_size,
        columns={"k": RecordsColumn(min=1, max=3, null_count=0, distinct_estimate=3.0, heavy_keys=(("1", 0.5),))},
    )


@pytest.fixture
def records(tmp_path):
    folder = tmp_path / "records"
    folder.mkdir()
    table = pa.table({"k": [1, 1, 2, 3], "v": ["a", None, "c", "d"]})
    pq.write_table(table, folder / "part-00000.parquet")
    write_manifest(folder, manifest_of(table, folder / "part-00000.parquet"))
    return folder, table


def test_the_manifest_is_plain_json():
    manifest = RecordsManifest(
        schema=b"\x01\x02",
        files=(RecordsFile("part-00000.parquet", 2, 10),),
        row_count=2,
        size_bytes=10,
        columns={"k": RecordsColumn(min="a", max="b", null_count=1, distinct_estimate=1.5, heavy_keys=(("a", 0.5),))},
    )
    assert json.loads(encode_manifest(manifest)) == {
        "schema": base64.b64encode(b"\x01\x02").decode(),
        "files": [{"name": "part-00000.parquet", "rows": 2, "bytes": 10, "crc32": None, "footer_crc32": None}],
        "row_count": 2,
        "size_bytes": 10,
        "columns": {
            "k": {"min": "a", "max": "b", "null_count": 1, "distinct_estimate": 1.5, "heavy_keys": [["a", 0.5]]}
        },
        "producer": "",
        "bad_rows": 0,
        "sorted_by": [],
        "partitioned_by": [],
        "format": "drey-records",
        "version": 1,
    }


def test_records_are_read_with_the_statistics_of_their_manifest(records):
    folder, table = records
    spec, statistics, schema = records_source(folder)
    assert table_of(spec, schema).equals(table)
    assert statistics.origin.startswith("manifest")
    assert statistics.columns["k"].heavy_keys == (("1", 0.5),)
    assert (statistics.columns["k"].minimum, statistics.columns["k"].maximum) == (1, 3)
    assert statistics.columns["v"].null_fraction == 0.25
    assert sorted(path.name for path in folder.iterdir()) == ["_manifest.json", "part-00000.parquet"]


def test_damaged_record_data_sets_are_refused(records, tmp_path):
    folder, _ = records
    manifest = (folder / "_manifest.json").read_bytes()
    part = folder / "part-00000.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole + b"x")
    with pytest.raises(DataError, match=r"bytes, the manifest says"):
        read_manifest(folder)
    part.unlink()
    with pytest.raises(DataError, match="is missing"):
        read_manifest(folder)
    part.write_bytes(whole)
    (folder / "_manifest.json").write_bytes(manifest.replace(b'"version": 1', b'"version": 9'))
    with pytest.raises(DataError, match="version 9"):
        read_manifest(folder)
    (folder / "_manifest.json").write_bytes(b"{}")
    with pytest.raises(DataError, match="not a manifest"):
        read_manifest(folder)
    (folder / "_manifest.json").unlink()
    with pytest.raises(PlanError, match="did not finish"):
        read_manifest(folder)
    with pytest.raises(PlanError, match="no such folder"):
        read_manifest(tmp_path / "none")


# Arrow data

TABLE = pa.table({"a": [1, 2, None], "b": ["x", None, ""]})


def sources_of_arrow():
    frame = TABLE.to_pandas(types_mapper=pd.ArrowDtype)
    relation = duckdb.connect().from_arrow(TABLE)
    return {
        "table": TABLE,
        "batch": TABLE.to_batches()[0],
        "reader": TABLE.to_reader(),
        "polars": pl.from_arrow(TABLE),
        "duckdb": relation,
        "pandas": frame,
    }


@pytest.mark.parametrize("kind", ["table", "batch", "reader", "polars", "duckdb", "pandas"])
def test_everything_with_an_arrow_interface_is_taken(kind):
    spec, statistics, schema = arrow_source(sources_of_arrow()[kind], refuse_folder)
    assert schema.names == ["a", "b"]
    found = table_of(spec, schema)
    assert found.to_pydict() == TABLE.to_pydict()
    assert (statistics.row_count, statistics.is_exact) == (3.0, True)
    assert found.schema.field("a").type == pa.int64()
    assert found.schema.field("b").type in (pa.string(), pa.large_string())


def test_small_data_travels_in_the_plan_and_large_data_in_a_file(tmp_path):
    rows = 100_000
    table = pa.table({"n": list(range(rows)), "s": ["x" * 10] * rows})
    assert table.nbytes > INLINE_BYTES
    spec, statistics, schema = arrow_source(table, lambda: tmp_path)
    assert spec.inline is None
    assert [str(path) for path in tmp_path.iterdir()] == list(spec.paths)
    assert len(spec.splits) > 2
    assert sum(split.row_count for split in spec.splits) == statistics.row_count == rows
    assert table_of(spec, schema).equals(table)
    half = msgspec.structs.replace(spec, columns=("s",), splits=spec.splits[:1])
    assert table_of(half, pa.schema([("s", pa.string())])).num_rows == spec.splits[0].row_count


@pytest.mark.parametrize("columns", [("c",), ("d", "a"), ("c", "b", "a", "d"), ()])
def test_only_wanted_columns_of_arrow_files_are_read(tmp_path, columns):
    rows = INLINE_BYTES // 32
    texts = [f"text {number}" for number in range(rows)]
    table = pa.table({"a": range(rows), "b": texts, "c": [[1, number] for number in range(rows)], "d": texts})
    spec, _statistics, _schema = arrow_source(table, lambda: tmp_path)
    assert spec.inline is None
    found = list(open_source(msgspec.structs.replace(spec, columns=columns), spec.splits))
    assert sum(batch.num_rows for batch in found) == rows
    if columns:
        assert pa.Table.from_batches(found).equals(table.select(columns))


def test_many_small_batches_are_read_once_each(monkeypatch):
    # Not so the batches before those of a split: their number would count twice over.
    table = pa.table({"n": list(range(40))})
    spec, _, schema = arrow_source(pa.Table.from_batches(table.to_batches(1)), refuse_folder)
    assert len(spec.splits) == 40
    opened, read = pa.ipc.open_file, []

    class CountingReader:
        def __init__(self, file, **options):
            self._reader = opened(file, **options)
            self.schema = self._reader.schema

        def get_batch(self, index):
            read.append(index)
            return self._reader.get_batch(index)

    monkeypatch.setattr(pa.ipc, "open_file", CountingReader)
    assert table_of(spec, schema).equals(table)
    assert read == list(range(40))
    assert pa.Table.from_batches(open_source(spec, spec.splits[30:32]), schema).to_pydict() == {"n": [30, 31]}


def test_what_offers_no_arrow_data_is_refused():
    with pytest.raises(SchemaError, match="a list offers no Arrow data"):
        arrow_source([1, 2], refuse_folder)
    with pytest.raises(SchemaError, match="no columns, or one twice"):
        arrow_source(pa.table([[1], [2]], names=["a", "a"]), refuse_folder)
    with pytest.raises(SchemaError, match="a column of the DataFrame has a type that Arrow"):
        arrow_source(pl.DataFrame({"v": pl.Series([1], dtype=pl.Int128)}), refuse_folder)


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b"])], ids=str)
def test_categories_of_polars_are_texts(dtype):
    spec, _, schema = arrow_source(pl.DataFrame({"v": pl.Series(["b", None, "a"], dtype=dtype)}), refuse_folder)
    assert table_of(spec, schema).to_pydict() == {"v": ["b", None, "a"]}


# Rows

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("value", "data_type", "reason"),
    [
        (1e300, pa.float32(), "is not float: it is beyond the range of float"),
        (datetime(2024, 1, 1, 12), pa.date32(), r"is not date32\[day\]: it has a time of day"),
        ({"a": 1, "b": 2}, pa.struct([("a", pa.int8())]), "the type has no member 'b'"),
        ([1.5], pa.list_(pa.int8()), "a fraction is no integer"),
    ],
)
def test_rows_with_a_value_that_would_be_cut_are_refused(value, data_type, reason):
    with pytest.raises(DataError, match=rf"row 1, column 'x': .*{reason}"):
        rows_to_table([(None,), (value,)], pa.schema([("x", data_type)]))


def test_rows_are_tuples_lists_or_dicts():
    table = rows_to_table([(1, "x"), [2, None], {"b": "z", "a": 3}], SCHEMA)
    assert table.to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "z"}]
    assert rows_to_table([], SCHEMA).schema == SCHEMA
    assert rows_to_table(iter([(1, "x")]), SCHEMA).num_rows == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1, "x"), (2, 3)], "row 1, column 'b': 3 (int) is not string"),
        ([(1, "x"), ("1", "x")], "row 1, column 'a': '1' (str) is not int64"),
        ([(1.5, "x")], "row 0, column 'a': 1.5 (float) is not int64"),
        ([(2**70, "x")], "row 0, column 'a'"),
        ([(1,)], "row 0 has 1 values; the schema has 2: a, b"),
        ([{"a": 1}], "row 0: missing ['b']"),
        ([{"a": 1, "b": "x", "c": 2}], "row 0: unknown ['c']"),
        (["ab"], "row 0 is a str"),
    ],
)
def test_a_row_that_does_not_fit_is_named(rows, message):
    with pytest.raises(DataError) as error:
        rows_to_table(rows, SCHEMA)
    assert message in str(error.value)


def test_a_null_where_none_may_be_is_named():
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    with pytest.raises(DataError, match="row 1, column 'a': null"):
        rows_to_table([(1,), (None,)], schema)


def test_wide_rows_come_in_small_batches_and_narrow_ones_in_large(tmp_path):
    rows = 40_000
    texts = pa.array([f"{index:05d}" * 100 for index in range(rows)])
    pq.write_table(pa.table({"n": range(rows), "text": texts}), tmp_path / "wide.parquet", row_group_size=20_000)
    spec, _, schema = parquet_source(tmp_path / "wide.parquet")
    batches = list(open_source(spec, spec.splits))
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


def test_data_for_which_the_folder_has_no_room_is_an_error_that_names_it(tmp_path, monkeypatch):
    def on_a_full_disk(path):
        LOCAL.create(path).close()
        return pa.OSFile("/dev/full", "wb")

    monkeypatch.setattr(arrow_source_module, "native_output", on_a_full_disk)
    table = pa.table({"a": pa.nulls(INLINE_BYTES, pa.int64())})
    with pytest.raises(DiskFullError, match=rf"from_arrow: no room in {tmp_path} .* let TMPDIR name"):
        arrow_source(table, lambda: tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("width", "rows_of_a_split"), [(1, ARROW_ROWS_MAX), (4096, 1024)])
def test_a_split_of_a_table_has_many_light_rows_or_few_heavy_ones(tmp_path, width, rows_of_a_split):
    rows = 5 * ARROW_ROWS_MAX if width == 1 else 5000
    table = pa.table({"n": range(rows), "s": pa.array(["x" * width]).take(pa.array([0] * rows))})
    spec, _, schema = arrow_source(table, lambda: tmp_path)
    assert sum(split.row_count for split in spec.splits) == rows
    assert all(rows_of_a_split / 2 <= split.row_count <= rows_of_a_split for split in spec.splits[:-1])
    batches = list(open_source(spec, spec.splits))
    assert max(batch.num_rows for batch in batches) <= ARROW_ROWS_MAX
    assert max(batch.nbytes for batch in batches) <= 1.1 * BATCH_BYTES_MAX
    assert pa.Table.from_batches(batches, schema).equals(table)
