"""What a sample of row groups says of a Parquet source."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.errors import DataError
from engine.expressions.schema_bridge import to_plan_schema
from engine.parquet import sample
from engine.parquet.sample import with_sample
from engine.parquet.source import parquet_source


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
