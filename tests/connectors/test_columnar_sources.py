"""Record data sets, Arrow data and Python rows as sources."""

import base64
import contextlib
import json
from datetime import datetime

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
from engine.formats.registry import open_source
from engine.records.batch_limits import ARROW_ROWS_MAX, BATCH_BYTES_MAX
from engine.storage.file_systems import LOCAL


def table_of(spec, schema):
    with contextlib.closing(open_source(spec, spec.splits)) as reader:
        batches = list(reader)
    assert all(batch.num_rows <= 32768 for batch in batches)
    return pa.Table.from_batches(batches, schema=schema)


def refuse_folder():
    raise AssertionError("small data needs no folder")


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
    with pytest.raises(SchemaError, match="the data has two columns of the name 'a'"):
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
