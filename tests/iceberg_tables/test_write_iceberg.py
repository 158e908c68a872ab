"""Tables that are written here and read by others: pyiceberg, Polars, and the engine itself."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment, col
from engine.errors import ConfigurationError, EngineError, PlanError, SchemaError
from tests.iceberg_tables.handmade import data_files, local

_UTC = ZoneInfo("UTC")


def _all_types(rows: int) -> pa.Table:
    """Return rows of all types, each third value null, with values that are hard for bounds and names of folders."""
    start = datetime(1969, 12, 30, 22, 59, 59, 999_999)

    def column(make: Any, data_type: pa.DataType) -> pa.Array:
        return pa.array([None if index % 3 == 2 else make(index) for index in range(rows)], data_type)

    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "flag": column(lambda i: i % 2 == 0, pa.bool_()),
            "small": column(lambda i: i - 5, pa.int32()),
            "real": column(lambda i: math.nan if i % 5 == 0 else i / 7, pa.float32()),
            "double": column(lambda i: math.inf if i % 5 == 1 else -i / 3, pa.float64()),
            "amount": column(lambda i: Decimal(i * 10**20 - 7) / 100, pa.decimal128(38, 2)),
            "price": column(lambda i: Decimal(i - 3) / 100, pa.decimal128(9, 2)),
            "day": column(lambda i: date(1969, 12, 20) + timedelta(i * 40), pa.date32()),
            "at": column(lambda i: time(i % 24, 59, 59, i), pa.time64("us")),
            "ts": column(lambda i: start + timedelta(hours=i * 7), pa.timestamp("us")),
            "tz": column(lambda i: (start + timedelta(days=i)).replace(tzinfo=_UTC), pa.timestamp("us", "UTC")),
            "text": column(
                lambda i: ["", "a/b=c", "żółw 日本 " * 4, "\U0010ffff" * 20, "%2F..", "null"][i % 6], pa.string()
            ),
            "raw": column(lambda i: bytes([255] * (i % 20)), pa.binary()),
            "fixed": column(lambda i: bytes([i % 256] * 4), pa.binary(4)),
            "many": column(lambda i: list(range(i % 4)), pa.list_(pa.int64())),
            "place": column(
                lambda i: {"x": i, "names": [str(i)]}, pa.struct([("x", pa.int32()), ("names", pa.list_(pa.string()))])
            ),
            "tags": column(lambda i: [("k", i)], pa.map_(pa.string(), pa.int64())),
        }
    )


def _written(env: Environment, catalog: Any, table: pa.Table, **options: Any) -> Any:
    env.from_arrow(table).write_iceberg("db.t", catalog, **options)
    env.execute()
    return catalog.load_table("db.t")


def _like(found: pa.Table, wanted: pa.Table) -> pa.Table:
    return found.select(wanted.column_names).sort_by("id").cast(wanted.schema)


def _check(found: pa.Table, wanted: pa.Table) -> None:
    """Compare rows by their ids; NaN is one value."""
    assert str(_like(found, wanted).to_pylist()) == str(wanted.sort_by("id").to_pylist())


_QUICK = [("month(ts)", "truncate(5, text)"), ("text", "raw")]
_THOROUGH = [
    (),
    ("year(day)", "bucket(3, text)"),
    ("day(tz)", "flag"),
    ("hour(ts)", "void(id)"),
    ("truncate(100, small)", "truncate(50, price)", "bucket(2, amount)"),
    ("bucket(4, day)", "bucket(2, fixed)", "bucket(2, tz)"),
    ("real", "day"),
    ("truncate(3, raw)", "at", "price"),
]


@pytest.mark.parametrize(
    "partition_by",
    [*_QUICK, *(pytest.param(each, marks=pytest.mark.thorough) for each in _THOROUGH)],
    ids=lambda terms: " ".join(terms) or "none",
)
def test_rows_of_all_types_come_back_through_every_transform(
    catalog: Any, env: Environment, partition_by: tuple[str, ...]
) -> None:
    rows = _all_types(30)
    table = _written(env, catalog, rows, partition_by=partition_by, sort_by="id")
    assert len(table.spec().fields) == len(partition_by)
    _check(table.scan().to_arrow(), rows)
    _check(env.read_iceberg("db.t", catalog).to_arrow(), rows)
    _check(env.read_iceberg("db.t", catalog).filter(col("id") < 10).to_arrow(), rows.slice(0, 10))
    # pyiceberg plans by partitions that it computes from the rows by itself.
    for condition, count in (("id = 7", 1), ("small < 0", 4), ("price = -0.02", 1), ("day < '1970-01-01'", 1)):
        assert table.scan(condition).to_arrow().num_rows == count, condition
    assert table.scan("text = 'a/b=c'").to_arrow().num_rows == sum(each == "a/b=c" for each in rows["text"].to_pylist())


@pytest.mark.thorough
def test_polars_reads_what_is_written(catalog: Any, env: Environment) -> None:
    rows = _all_types(30).drop_columns(["tags", "fixed"])
    table = _written(env, catalog, rows, partition_by=["bucket(3, id)", "day(ts)"])
    names = ["id", "text", "ts", "amount"]
    # In a process of its own, since its threads stay.
    scan = f"polars.scan_iceberg({table.metadata_location!r}).select({names}).sort('id').collect().rows()"
    program = f"import polars; print({scan})"
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str([tuple(row.values()) for row in rows.select(names).to_pylist()])


def test_statistics_are_those_that_pyiceberg_finds_in_the_same_rows(catalog: Any, env: Environment) -> None:
    rows = _all_types(40).drop_columns(["many", "place", "tags", "fixed"])
    table = _written(env, catalog, rows)
    other = catalog.create_table("db.other", schema=table.schema())
    other.append(rows.cast(other.schema().as_arrow()))
    (own,) = table.inspect.files().to_pylist()
    (known,) = other.inspect.files().to_pylist()
    for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        assert dict(own[name]) == dict(known[name]), name
    assert own["record_count"] == 40
    numbers = {field.name: field.field_id for field in table.schema().fields}
    assert dict(own["nan_value_counts"])[numbers["real"]] == sum(
        each is not None and math.isnan(each) for each in rows["real"].to_pylist()
    )


def test_files_have_field_ids_and_rows_in_order(catalog: Any, env: Environment) -> None:
    rows = pa.table({"k": [3, 1, 2, None], "v": ["c", "a", "b", "n"]})
    table = _written(env, catalog, rows, sort_by="k")
    assert [each.source_id for each in table.sort_order().fields] == [1]
    (path,) = data_files(table)
    schema = pq.read_schema(local(path))
    assert [field.metadata[b"PARQUET:field_id"] for field in schema] == [b"1", b"2"]
    assert pq.read_table(local(path))["k"].to_pylist() == [None, 1, 2, 3]
    assert table.inspect.files()["sort_order_id"].to_pylist() == [1]


def test_an_append_adds_and_widens_and_an_overwrite_replaces(catalog: Any, env: Environment) -> None:
    first = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})
    _written(env, catalog, first)
    _written(env, catalog, pa.table({"id": pa.array([3], pa.int8())}), mode="append")
    found = env.read_iceberg("db.t", catalog).sort("id").to_arrow().to_pylist()
    assert found == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": None}]
    table = _written(env, catalog, first.slice(1), mode="overwrite")
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "name": "b"}]
    assert [each.summary.operation.value for each in table.metadata.snapshots] == ["append", "append", "overwrite"]
    assert table.metadata.current_snapshot().summary["total-records"] == "1"


def test_partitions_of_the_rows_are_replaced_also_those_of_transforms(catalog: Any, env: Environment) -> None:
    days = [datetime(2024, 1, day) for day in (1, 2, 3)]
    rows = pa.table({"ts": days, "id": [1, 2, 3], "k": ["a", None, "a"]})
    _written(env, catalog, rows, partition_by=["day(ts)", "k"])
    new = pa.table({"ts": days[1:], "id": [20, 30], "k": pa.array([None, "b"], pa.string())})
    table = _written(env, catalog, new, mode="overwrite_partitions")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3, 20, 30]
    assert sorted(env.read_iceberg("db.t", catalog).to_arrow()["id"].to_pylist()) == [1, 3, 20, 30]


def test_snapshots_stay_readable_by_id_time_and_branch(catalog: Any, env: Environment) -> None:
    table = _written(env, catalog, pa.table({"id": [1]}))
    first = table.metadata.current_snapshot()
    table.manage_snapshots().create_branch(first.snapshot_id, "audit").create_tag(first.snapshot_id, "v1").commit()
    _written(env, catalog, pa.table({"id": [2]}), mode="append")

    def ids(**which: Any) -> list[int]:
        return sorted(env.read_iceberg("db.t", catalog, **which).to_arrow()["id"].to_pylist())

    moment = datetime.fromtimestamp(first.timestamp_ms / 1000, _UTC)
    assert ids() == [1, 2]
    assert ids(snapshot_id=first.snapshot_id) == ids(branch="audit") == ids(branch="v1") == ids(as_of=moment) == [1]
    with pytest.raises(PlanError, match=r"no branch or tag 'nope'; there are audit, main, v1"):
        ids(branch="nope")
    with pytest.raises(PlanError, match="no snapshot 7; the last ones are"):
        ids(snapshot_id=7)
    with pytest.raises(ConfigurationError, match=rf"snapshot_id='{first.snapshot_id}': pass a number"):
        ids(snapshot_id=str(first.snapshot_id))
    with pytest.raises(PlanError, match="had no snapshot at 1999"):
        ids(as_of="1999-01-01")


def test_a_job_that_fails_leaves_no_file_and_no_table(catalog: Any, env: Environment, tmp_path: Path) -> None:
    rows = env.from_arrow(pa.table({"id": ["1", "2", "x"]})).select(col("id").cast("int64").alias("id"))
    rows.write_iceberg("db.t", catalog)
    with pytest.raises(EngineError, match="x"):
        env.execute()
    assert not catalog.table_exists("db.t")
    assert [each for each in (tmp_path / "warehouse").rglob("*") if each.is_file()] == []


def test_a_required_column_takes_no_null(catalog: Any, env: Environment) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, UUIDType

    fields = NestedField(1, "id", LongType(), required=True), NestedField(2, "key", UUIDType(), required=False)
    catalog.create_table("db.t", schema=Schema(*fields))
    keys = pa.array([b"0123456789abcdef", None], pa.binary(16))
    table = _written(env, catalog, pa.table({"id": [1, 2], "key": keys}), mode="append")
    assert [each and each.bytes for each in table.scan().to_arrow()["key"].to_pylist()] == [b"0123456789abcdef", None]
    with pytest.raises(EngineError, match="column 'id' is required, and a row has null there"):
        _written(env, catalog, pa.table({"id": pa.array([None], pa.int64())}), mode="append")
    with pytest.raises(SchemaError, match="the rows have no column 'id', which is required"):
        _written(env, catalog, pa.table({"key": keys}), mode="append")


def test_what_does_not_fit_is_told_before_the_job(catalog: Any, env: Environment) -> None:
    rows = pa.table({"id": [1], "at": pa.array([1], pa.timestamp("us"))})
    _written(env, catalog, rows, partition_by="day(at)")
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({}, PlanError, "the table is there"),
        ({"mode": "replace"}, ConfigurationError, "choose one of error, overwrite, append"),
        ({"mode": "append", "partition_by": ["id"]}, ConfigurationError, r"partitioned by day\(at\)"),
        ({"mode": "append", "sort_by": ["nope"]}, SchemaError, "there is no column 'nope'"),
        ({"mode": "append", "compression": "rar"}, ConfigurationError, "choose one of"),
    ]
    for options, error, text in cases:
        with pytest.raises(error, match=text):
            env.from_arrow(rows).write_iceberg("db.t", catalog, **options)
    for other, text in (
        (pa.table({"id": ["1"]}), "column 'id' is string, and int64 in the table"),
        (pa.table({"id": [1], "more": [2]}), "the table has no column 'more'"),
    ):
        with pytest.raises(SchemaError, match=text):
            env.from_arrow(other).write_iceberg("db.t", catalog, mode="append")
    with pytest.raises(PlanError, match="there is no namespace 'nope'"):
        env.from_arrow(rows).write_iceberg("nope.t", catalog)
    for term, text in (
        ("bucket(id)", "bucket"),
        ("day(id)", "no values for column 'id'"),
        ("day(zz)", "no column 'zz'"),
    ):
        with pytest.raises((ConfigurationError, SchemaError), match=text):
            env.from_arrow(rows).write_iceberg("db.new", catalog, partition_by=[term])


@pytest.mark.thorough
def test_files_are_near_the_target_size_and_a_large_partition_is_written_by_several(
    catalog: Any, env: Environment
) -> None:
    rows = pa.table({"id": range(400_000), "noise": [each * 2654435761 % (1 << 62) for each in range(400_000)]})
    table = _written(env, catalog, rows, partition_by="bucket(2, id)", target_file_size="1mb", compression="none")
    sizes = table.inspect.files()["file_size_in_bytes"].to_pylist()
    assert 5 <= len(sizes) <= 12
    assert max(sizes) < 2 << 20
    assert table.scan().to_arrow().num_rows == 400_000


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_table_of_each_version_is_made_replaced_and_emptied(catalog: Any, env: Environment, version: str) -> None:
    rows = pa.table({"id": [1, 2], "k": ["a", "b"]})
    _written(env, catalog, rows, partition_by="k", properties={"format-version": version})
    _written(env, catalog, rows.slice(1), mode="append")
    table = _written(env, catalog, rows.slice(0, 1), mode="overwrite_partitions")
    assert table.metadata.format_version == int(version)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 2]
    table = _written(env, catalog, rows.slice(2), mode="overwrite")
    assert table.scan().to_arrow().num_rows == 0
    assert env.read_iceberg("db.t", catalog).collect() == []


def test_rows_of_none_make_a_table(catalog: Any, env: Environment) -> None:
    table = _written(env, catalog, pa.table({"id": pa.array([], pa.int64())}))
    assert table.schema().column_names == ["id"]
    assert env.read_iceberg("db.t", catalog).count() == 0


@pytest.mark.thorough
def test_names_of_columns_and_values_that_are_hard_for_paths(catalog: Any, env: Environment) -> None:
    values = ["", None, "a/b", "..", "%2F", "x" * 300, "żółw=1", "\n"]
    rows = pa.table({"a.b": list(range(8)), "day(x)": values, "Ünï cödé/": values})
    table = _written(env, catalog, rows, partition_by=["identity(day(x))"], sort_by="a.b")
    assert len(data_files(table)) == 8
    found = env.read_iceberg("db.t", catalog).sort("a.b").to_arrow()
    assert found.to_pylist() == rows.to_pylist()
    assert env.read_iceberg("db.t", catalog).filter(col("day(x)") == "").to_arrow()["a.b"].to_pylist() == [0]
    assert env.read_iceberg("db.t", catalog).filter(col("day(x)").is_null()).to_arrow()["a.b"].to_pylist() == [1]
