"""Decimals that are stored as integers come in 64 bits where who takes them said so, with the same values."""

import random
from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.column_expressions.expressions import col, lit
from engine.graph.sort_key import SortKey
from engine.parquet.reader import ParquetReader
from engine.parquet.source import parquet_source
from engine.records.narrow_decimals import narrow_type, wide_batch
from engine.records.top_keys import TopTest

ROWS = 5000
RANDOM = random.Random(11)
TYPES = {"small": pa.decimal128(7, 2), "money": pa.decimal128(15, 2), "most": pa.decimal128(18, 4)}
OTHERS = {"long": pa.decimal128(19, 2), "wide": pa.decimal256(40, 2), "n": pa.int64(), "t": pa.string()}


def values_of(data_type, distinct, null_share):
    if not pa.types.is_decimal(data_type):
        values = [str(number) if data_type == pa.string() else number for number in range(ROWS)]
        return pa.array(values, data_type)
    most = 10**data_type.precision - 1
    few = [RANDOM.randint(-most, most) for _ in range(distinct)]
    numbers = [RANDOM.choice(few) if few else RANDOM.randint(-most, most) for _ in range(ROWS)]
    made = [Decimal(f"{number}E-{data_type.scale}") for number in numbers]
    return pa.array([None if RANDOM.random() < null_share else value for value in made], data_type)


def written(path, distinct=20, null_share=0.1, **options):
    table = pa.table({name: values_of(kind, distinct, null_share) for name, kind in (TYPES | OTHERS).items()})
    options = {"store_decimal_as_integer": True, "data_page_size": 4096, "write_batch_size": 256, **options}
    pq.write_table(table, path, row_group_size=2000, **options)
    return table


def read(path, compact=(), columns=None, predicate=None, top=None):
    """Return the rows of a file as they come, and the types that their columns had."""
    spec, _, schema = parquet_source(path)
    names = tuple(columns or schema.names)
    spec = msgspec.structs.replace(spec, columns=names, predicate=None if predicate is None else predicate.expression)
    reader = ParquetReader(spec, spec.splits)
    reader.keep_compact(compact)
    if top is not None:
        reader.keep_first(top)
    try:
        batches = list(reader)
    finally:
        reader.close()
    wanted = pa.schema([schema.field(name) for name in names])
    found = {name: {batch.schema.field(name).type for batch in batches} for name in names}
    return pa.Table.from_batches([wide_batch(batch, wanted) for batch in batches], wanted), found


def test_readers_of_one_file_that_want_other_things_of_it_get_them_in_any_order(tmp_path):
    table, columns = written(tmp_path / "t.parquet"), ["small", "money", "n"]
    wanted = table.select(columns)
    for compact in ((), ("small",), ("small", "money"), ("money",), ()):
        for predicate, rows in ((None, wanted), (col("n") < lit(100), wanted.slice(0, 100))):
            found, types = read(tmp_path / "t.parquet", compact, columns, predicate)
            assert found.equals(rows)
            for name in columns[:2]:
                assert types[name] == {narrow_type(TYPES[name]) if name in compact else TYPES[name]}


@pytest.mark.parametrize("null_share", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("distinct", [0, 20])
@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
def test_values_are_the_same(tmp_path, distinct, null_share, codec):
    table = written(tmp_path / "t.parquet", distinct, null_share, compression=codec)
    found, types = read(tmp_path / "t.parquet", table.column_names)
    assert found.equals(table)
    for name, data_type in TYPES.items():
        assert types[name] == {narrow_type(data_type)}
    for name in ("long", "wide", "n"):
        assert types[name] == {table.schema.field(name).type}
    plain, types = read(tmp_path / "t.parquet")
    assert plain.equals(table)
    assert types == {field.name: {field.type} for field in table.schema}


def test_decimals_stored_as_bytes_stay_wide(tmp_path):
    table = written(tmp_path / "t.parquet", store_decimal_as_integer=False)
    found, types = read(tmp_path / "t.parquet", table.column_names)
    assert found.equals(table)
    assert types["money"] == {TYPES["money"]}


@pytest.mark.parametrize("compact", [(), ("money",), ("money", "most")])
def test_a_filter_takes_what_its_steps_read(tmp_path, compact):
    table = written(tmp_path / "t.parquet")
    predicate = (col("money") > lit(Decimal("0.5"))) & (col("most") < lit(Decimal(10**13)))
    for columns in (["money", "most", "n"], ["money"], ["n"]):
        found, types = read(tmp_path / "t.parquet", compact, columns, predicate)
        rows = [row for row in table.to_pylist() if None not in (row["money"], row["most"])]
        rows = [row for row in rows if row["money"] > Decimal("0.5") and row["most"] < 10**13]
        assert found.to_pylist() == [{name: row[name] for name in columns} for row in rows]
        assert rows
        for name in {"money", "most"} & {*columns}:
            assert types[name] == {narrow_type(TYPES[name]) if name in compact else TYPES[name]}


def test_what_arrow_tests_stays_wide(tmp_path):
    table = written(tmp_path / "t.parquet")
    predicate = (col("money").cast(pa.string()).str.length() > 12) & (col("small") > 0)
    found, types = read(tmp_path / "t.parquet", ["money", "small"], ["money", "small"], predicate)
    assert types == {"money": {TYPES["money"]}, "small": {narrow_type(TYPES["small"])}}
    rows = table.select(["money", "small"]).to_pylist()
    rows = [row for row in rows if None not in row.values() and len(str(row["money"])) > 12 and row["small"] > 0]
    assert found.to_pylist() == rows
    assert rows


def test_the_key_of_a_first_rows_test_stays_wide(tmp_path):
    table = written(tmp_path / "t.parquet", 0, 0.0)
    top = TopTest(SortKey("money"), 10)
    found, types = read(tmp_path / "t.parquet", ["money", "most"], ["money", "most"], top=top)
    assert types == {"money": {TYPES["money"]}, "most": {narrow_type(TYPES["most"])}}
    assert sorted(found["money"].to_pylist())[:10] == sorted(table["money"].to_pylist())[:10]


def test_files_of_two_types_come_in_the_wider(tmp_path):
    table = written(tmp_path / "a.parquet")
    wider = table.set_column(1, "money", table["money"].cast(pa.decimal128(20, 2)))
    pq.write_table(wider, tmp_path / "b.parquet", store_decimal_as_integer=True)
    spec, _, schema = parquet_source([tmp_path / "a.parquet", tmp_path / "b.parquet"], found_schemas=[])
    reader = ParquetReader(spec, spec.splits)
    reader.keep_compact(["money", "most"])
    batches = list(reader)
    reader.close()
    assert {batch.schema.field("money").type for batch in batches} == {pa.decimal128(20, 2)}
    found = pa.Table.from_batches([wide_batch(batch, schema) for batch in batches], schema)
    assert found["money"].to_pylist() == table["money"].to_pylist() * 2
    assert found["most"].to_pylist() == table["most"].to_pylist() * 2
