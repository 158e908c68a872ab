"""Heavy keys found in samples of every source, whatever the type and the width of rows."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.arrow_source import arrow_source
from engine.csv.source import csv_source
from engine.expressions.schema_bridge import to_plan_schema
from engine.graph.source_spec import ParquetSource
from engine.parquet import key_sample as parquet_keys
from engine.parquet.key_sample import key_statistics
from engine.parquet.sample import with_sample
from engine.parquet.source import parquet_source
from engine.statistics.column_statistics import (
    HEAVY_KEYS_MAX,
    SampledPlaces,
    SpreadSample,
    key_text,
    sample_statistics,
)
from tests.heap import heap_bytes

ROWS = 40_000
_MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 6)


def skewed(rows: int = ROWS) -> pa.Table:
    """Key 1 has half of the rows, key 2 a tenth; all others are different. The key is in no order."""
    keys = [1 if row % 2 else 2 if row % 10 == 0 else 1000 + row for row in range(rows)]
    return pa.table({"k": pa.array(keys, pa.int64()), "text": ["x" * (row % 30) for row in range(rows)]})


def heavy_of(columns: Any, name: str = "k") -> list[tuple[str, float]]:
    return [(text, round(share, 1)) for text, share in columns[name].heavy_keys]


@pytest.mark.parametrize("file_format", ["csv", "parquet", "arrow"])
def test_every_source_finds_the_heavy_keys(tmp_path: Path, file_format: str) -> None:
    table = skewed()
    if file_format == "csv":
        pa_csv.write_csv(table, tmp_path / "data.csv", pa_csv.WriteOptions(include_header=False))
        _, statistics, *_ = csv_source(tmp_path / "data.csv", schema=table.schema)
    elif file_format == "parquet":
        pq.write_table(table, tmp_path / "data.parquet", row_group_size=3000)
        spec, footers, schema = parquet_source(tmp_path / "data.parquet")
        statistics = with_sample(spec, footers, to_plan_schema(schema), schema.names)
    else:
        _, statistics, _ = arrow_source(table, lambda: tmp_path)
    assert heavy_of(statistics.columns) == [("1", 0.5), ("2", 0.1)]
    assert statistics.columns["k"].heavy_origin == "sample"


def test_a_sorted_table_is_sampled_everywhere(tmp_path: Path) -> None:
    _, statistics, _ = arrow_source(skewed(200_000).sort_by("k"), lambda: tmp_path)
    assert heavy_of(statistics.columns) == [("1", 0.5), ("2", 0.1)]


@given(st.lists(st.integers(0, 20_000), max_size=12))
def test_a_spread_sample_is_all_rows_or_some_thousands_from_everywhere(sizes: list[int]) -> None:
    schema = pa.schema([("k", pa.int64())])
    samples = [SpreadSample(), SpreadSample()]
    total = 0
    for size in sizes:
        for sample in samples:
            sample.add(pa.record_batch([pa.array(range(total, total + size), pa.int64())], schema=schema))
        total += size
    first, second = (sample.table(schema)["k"].to_pylist() for sample in samples)
    assert first == second == sorted(set(first))
    if total <= 16_384:
        assert len(first) == total
    else:
        assert 7_000 < len(first) <= 16_384
        assert abs(sum(first) / len(first) - total / 2) < total / 20


@pytest.mark.parametrize(
    ("value", "data_type", "text"),
    [
        (-5, pa.int8(), "-5"),
        ((1 << 64) - 1, pa.uint64(), "18446744073709551615"),
        (0.1, pa.float64(), "0.1"),
        (True, pa.bool_(), "true"),
        (decimal.Decimal("1.50"), pa.decimal128(10, 2), "1.50"),
        (_MOMENT, pa.timestamp("us"), "2020-01-02 03:04:05.000006"),
        (_MOMENT, pa.timestamp("us", "Europe/Berlin"), "2020-01-02 04:04:05.000006+0100"),
        (_MOMENT.date(), pa.date32(), "2020-01-02"),
        ("", pa.string(), ""),
        ("x" * 200, pa.large_string(), "x" * 200),
        ("x" * 201, pa.string(), None),
        (b"\xff", pa.binary(), None),
        (_MOMENT.time(), pa.time64("us"), None),
    ],
)
def test_a_key_has_the_text_that_casts_back_to_it(value: Any, data_type: pa.DataType, text: str | None) -> None:
    scalar = pa.scalar(value, data_type)
    assert key_text(scalar) == text
    if text is not None:
        assert pa.scalar(text).cast(data_type) == scalar


def test_a_heavy_key_without_a_text_leaves_the_others_theirs() -> None:
    keys = pa.array([b"a"] * 20 + [b"\xff"] * 30 + [b"b"] * 40, pa.binary())
    assert heavy_of(sample_statistics([pa.table({"k": keys})], 90)) == [("b", 0.4), ("a", 0.2)]


@pytest.mark.parametrize("run_length", [1, 4, 50])
@pytest.mark.parametrize("thinned", [1, 7])
def test_distinct_values_of_a_sorted_column_are_those_of_its_sampled_places_everywhere(
    run_length: int, thinned: int
) -> None:
    rows, stretch = 1_000_000, 10_000
    keys = pa.chunked_array([[row // run_length for row in range(rows)]])
    starts = range(0, rows, rows // 5)
    drawn = sorted(Random(1).sample(range(stretch), stretch // thinned))
    tables = [pa.table({"k": keys.slice(start, stretch).take(drawn)}) for start in starts]
    found = sample_statistics(tables, rows, SampledPlaces(5, 5 * stretch))["k"]
    assert found.distinct_count == pytest.approx(rows / run_length, rel=0.3)


def test_what_does_not_change_within_places_is_not_scaled_up() -> None:
    tables = [pa.table({"k": [place] * 1000}) for place in range(5)]
    assert sample_statistics(tables, 1_000_000, SampledPlaces(5, 5000))["k"].distinct_count == 5


def test_equal_values_that_come_back_are_taken_for_drawn_from_everywhere() -> None:
    tables = [pa.table({"k": [row // 10 % 100 for row in range(2000)]}) for _ in range(5)]
    assert sample_statistics(tables, 1_000_000, SampledPlaces(5, 10_000))["k"].distinct_count == 100


@pytest.mark.parametrize("lines", [1, 4, 12])
@pytest.mark.parametrize("customers", [100, 5_000, 100_000])
def test_lines_of_one_order_are_one_draw(lines: int, customers: int) -> None:
    """A few customers whose orders meet by chance do not make all orders those of these customers."""
    numbers, orders = Random(3), 8192 // lines
    keys = [customer for _ in range(orders) for customer in [numbers.randrange(customers)] * lines]
    found = sample_statistics([pa.table({"k": keys})], 3_000_000, SampledPlaces(4, 8192))["k"].distinct_count
    assert found == pytest.approx(customers, rel=0.4)


def test_nan_is_a_key_too() -> None:
    assert key_text(pa.scalar(float("nan"))) == "nan"


@pytest.mark.parametrize("data_type", [pa.decimal32(7, 2), pa.decimal64(12, 2), pa.decimal128(20, 2)])
def test_decimals_of_any_width_are_counted(data_type: pa.DataType) -> None:
    values = [decimal.Decimal("1.50")] * 60 + [decimal.Decimal(row).scaleb(-2) for row in range(40)] + [None] * 20
    found = sample_statistics([pa.table({"k": pa.array(values, data_type)})], 120)["k"]
    assert found.heavy_keys == (("1.50", 0.5),)
    assert found.distinct_count == 41


def test_keys_without_text_and_nulls_are_not_listed() -> None:
    moments = pa.array([_MOMENT.time()] * 60 + [None] * 40, pa.time64("us"))
    numbers = pa.array([None] * 60 + [3] * 40, pa.int64())
    columns = sample_statistics([pa.table({"t": moments, "k": numbers})], 100)
    assert columns["t"].heavy_keys == ()
    assert columns["k"].heavy_keys == (("3", 0.4),)


def test_the_heaviest_keys_are_listed_first_and_not_too_many() -> None:
    keys = [key for key in range(40) for _ in range(400 + key)]
    heavy = sample_statistics([pa.table({"k": keys})], len(keys))["k"].heavy_keys
    assert [text for text, _ in heavy] == [str(39 - index) for index in range(HEAVY_KEYS_MAX)]


def sorted_file(folder: Path, rows: int = 300_000, **options: Any) -> ParquetSource:
    """One row group, sorted: the heavy key lies in its middle."""
    keys = [key // 50 for key in range(rows // 4)] + [50_000] * (rows // 2) + [60_000 + key for key in range(rows // 4)]
    table = pa.table({"k": pa.array(keys, pa.int64()), "text": ["x"] * len(keys), "list": [[1]] * len(keys)})
    pq.write_table(table, folder / "sorted.parquet", row_group_size=rows, **options)
    return parquet_source(folder / "sorted.parquet")[0]


def test_a_key_column_is_sampled_inside_its_row_groups(tmp_path: Path) -> None:
    spec = sorted_file(tmp_path)
    _, footers, schema = parquet_source(tmp_path / "sorted.parquet")
    assert heavy_of(with_sample(spec, footers, to_plan_schema(schema), ["k"]).columns) == []
    found = key_statistics(spec, "k", 300_000)
    assert found is not None
    assert [(text, round(share, 1)) for text, share in found.heavy_keys] == [("50000", 0.5)]
    assert found.distinct_count is not None
    assert found.distinct_count > 4_000, "the begin of the file knows of 164"


def test_a_key_column_in_files_with_dictionaries_is_sampled_as_plain_values(tmp_path: Path) -> None:
    table = pa.table({"k": pa.array(["EUR"] * 9000 + ["USD"] * 1000).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet")
    found = key_statistics(parquet_source(tmp_path / "a.parquet")[0], "k", 10_000)
    assert found is not None
    assert found.heavy_keys == (("EUR", 0.9), ("USD", 0.1))


def test_what_is_too_large_to_decode_or_no_key_or_gone_is_not_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = sorted_file(tmp_path)
    assert key_statistics(spec, "list", 300_000) is None
    monkeypatch.setattr(parquet_keys, "CHUNK_BYTES", 1000)
    assert key_statistics(spec, "k", 300_000.5) is None
    (tmp_path / "sorted.parquet").unlink()
    assert key_statistics(spec, "k", 300_000) is None


@pytest.mark.parametrize("data_type", [pa.int32(), pa.int64(), pa.uint16()])
def test_a_column_that_is_numbered_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_type: pa.DataType
) -> None:
    monkeypatch.setattr(parquet_keys, "_rows", None)
    for name, start in (("a", 30_000), ("b", 1)):
        keys = list(range(start, start + 20_000))
        keys[:9] = reversed(keys[:9])
        table = pa.table({"k": pa.array(keys, data_type)})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=7_000)
    found = key_statistics(parquet_source(tmp_path)[0], "k", 40_000)
    assert found is not None
    assert (found.distinct_count, found.null_fraction, found.heavy_keys) == (40_000, 0.0, ())


@pytest.mark.parametrize(
    "keys",
    [
        [*range(10_000), *[9_999] * 10_000],
        [*range(10_000)] * 2,
        [*range(10_000), None, *range(10_001, 20_000)],
        [float(key) for key in range(20_000)],
        [str(key) for key in range(20_000)],
        [*range(0, 20_000, 2), *range(1, 20_000, 2)],
    ],
    ids=["heavy", "twice", "null", "floats", "texts", "interleaved"],
)
def test_a_column_is_read_where_bounds_do_not_number_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: list[Any]
) -> None:
    read: list[Any] = []
    monkeypatch.setattr(parquet_keys, "_sampled", lambda *asked: read.append(asked))
    pq.write_table(pa.table({"k": keys}), tmp_path / "a.parquet", row_group_size=10_000)
    key_statistics(parquet_source(tmp_path / "a.parquet")[0], "k", len(keys))
    assert read


def test_few_row_groups_of_many_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = sorted_file(tmp_path)
    (split,) = spec.splits
    many = tuple(msgspec.structs.replace(split, start=index, row_count=300_000) for index in range(40))
    assert [group.start for group in parquet_keys.spread_splits(many)] == [0, 6, 13, 20, 26, 33]
    assert [group.start for group in parquet_keys.spread_splits(many[:16])] == [0, 4, 8, 12], "a quarter of a few"
    assert [group.start for group in parquet_keys.spread_splits(many[:3])] == [0, 1], "though two at least"
    assert [group.start for group in parquet_keys.spread_splits(many[:1])] == [0]
    monkeypatch.setattr(parquet_keys, "CHUNK_VALUES", 100_000)
    assert [group.start for group in parquet_keys.spread_splits(many)] == [0]
    assert parquet_keys.spread_splits(()) == ()
    assert key_statistics(spec, "k", 1.0) is None, "one group that is too large"


def test_a_sample_of_wide_rows_stays_small_and_knows_how_wide_they_are():
    sample = SpreadSample()
    schema = pa.schema([("k", pa.int64()), ("blob", pa.binary())])
    for index in range(200):
        width = 100 if index < 50 else 300_000
        sample.add(pa.record_batch([pa.array([index % 2]), pa.array([b"x" * width])], schema=schema))
    table = sample.table(schema)
    assert table.nbytes < 10_000
    assert table.num_rows == 200
    assert table.column("blob").null_count == 200
    assert list(sample.widths) == ["blob"]
    assert 300_000 <= sample.widths["blob"] < 301_000
    assert {text for text, _ in sample_statistics([table], 200)["k"].heavy_keys} == {"0", "1"}


def test_a_wide_value_among_many_narrow_ones_does_not_stay_in_a_sample():
    sample = SpreadSample()
    for _ in range(30):
        values = ["narrow"] * 8000
        values[17] = "y" * (2 << 20)
        sample.add(pa.record_batch([pa.array(values)], names=["s"]))
    assert sample.widths == {}
    assert sample.table(pa.schema([("s", pa.string())])).nbytes < 10 << 20


def test_a_sample_of_many_batches_takes_no_more_memory_than_one_of_few():
    columns = [pa.array(range(20), pa.int64())] * 8
    batch = pa.record_batch(columns, names=list("abcdefgh"))
    sample = SpreadSample()
    for _ in range(2000):
        sample.add(batch)
    before = heap_bytes()
    for _ in range(4000):
        sample.add(batch)
    assert heap_bytes() < before + (1 << 20)
    assert 7_000 < sample.table(batch.schema).num_rows <= 16_384
