"""Tables that pyiceberg wrote: all types, versions 1 to 3, large files in several splits, catalogs and paths."""

from __future__ import annotations

import importlib
import json
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from engine import Environment, col, count
from engine.errors import ConfigurationError, EngineError, NotYetSupportedError, PlanError
from engine.iceberg_tables import iceberg_source
from tests.iceberg_tables.handmade import as_third_version, data_files

_MOMENT = datetime(1582, 10, 4, 23, 59, 59, 999_999)
_TYPES: dict[str, tuple[PrimitiveType, Any]] = {
    "flag": (BooleanType(), True),
    "i": (IntegerType(), -(2**31)),
    "l": (LongType(), 2**63 - 1),
    "f": (FloatType(), -0.5),
    "d": (DoubleType(), float("inf")),
    "dec": (DecimalType(38, 10), Decimal("-1234567890123456789012345678.0123456789")),
    "small": (DecimalType(4, 2), Decimal("-99.99")),
    "day": (DateType(), date(1, 1, 1)),
    "at": (TimeType(), time(23, 59, 59, 999_999)),
    "ts": (TimestampType(), _MOMENT),
    "tz": (TimestamptzType(), _MOMENT.replace(tzinfo=UTC)),
    "text": (StringType(), "żółw\x00\U0010ffff"),
    "key": (UUIDType(), UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes),
    "four": (FixedType(4), b"\x00\xff\x00\xff"),
    "raw": (BinaryType(), b"\xff\x00"),
}


def _schema() -> Schema:
    fields = [
        NestedField(index + 1, name, kind, required=False) for index, (name, (kind, _)) in enumerate(_TYPES.items())
    ]
    inner = StructType(
        NestedField(101, "x", LongType(), required=False), NestedField(102, "y", StringType(), required=False)
    )
    fields.append(NestedField(90, "many", ListType(103, inner, element_required=False), required=False))
    fields.append(NestedField(91, "by", MapType(104, StringType(), 105, inner, value_required=False), required=False))
    return Schema(*fields)


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_values_of_all_types_come_back(catalog: Any, env: Environment, version: str) -> None:
    made = "2" if version == "3" else version
    table = catalog.create_table("db.t", schema=_schema(), properties={"format-version": made})
    values: dict[str, Any] = {name: value for name, (_, value) in _TYPES.items()}
    full = values | {"many": [{"x": 1, "y": None}, None], "by": [("k", {"x": None, "y": "v"})]}
    empty = dict.fromkeys(full) | {"many": [], "by": []}  # pyiceberg writes null lists and maps as empty ones
    table.append(pa.Table.from_pylist([full, empty], schema=table.schema().as_arrow()))
    found = env.read_iceberg(as_third_version(table) if version == "3" else table).to_arrow().to_pylist()
    assert found == [full, empty]


def test_a_large_file_is_several_splits_and_each_row_is_read_once(
    catalog: Any, env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg_source, "_SPLIT_BYTES_MIN", 20_000)
    properties = {"write.parquet.row-group-limit": "5000"}
    table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]), properties=properties)
    table.append(pa.table({"id": range(50_000)}))
    assert len(data_files(table)) == 1
    rows = env.read_iceberg("db.t", catalog)
    assert len(rows._node.operator.spec.splits) > 2  # type: ignore[attr-defined]
    assert sorted(rows.to_arrow()["id"].to_pylist()) == list(range(50_000))
    assert rows.filter(col("id") == 31_337).to_arrow()["id"].to_pylist() == [31_337]


def test_a_table_is_named_or_is_a_file_a_folder_or_an_object(
    catalog: Any, env: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    properties = {**catalog.properties, "type": "sql", "name": "default"}
    folder = tmp_path / "warehouse" / "db" / "t"
    for place in (table, table.metadata_location, folder, str(folder)):
        assert env.read_iceberg(place).count() == 2
    assert env.read_iceberg("db.t", properties).count() == 2
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", catalog.properties["uri"])
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", catalog.properties["warehouse"])
    assert json.dumps(properties)
    for wrong, error, text in (
        ("db.nope", PlanError, "no such table in the catalog"),
        (str(tmp_path), PlanError, "has no metadata/"),
        (str(tmp_path / "x.metadata.json"), PlanError, "a file of the table's metadata is missing"),
        (7, ConfigurationError, "table= is a name, a path, or a pyiceberg Table, and not int"),
    ):
        with pytest.raises(error, match=text):
            env.read_iceberg(wrong, catalog if wrong == "db.nope" else None)
    with pytest.raises(ConfigurationError, match="pass one of snapshot_id=, as_of= and branch="):
        env.read_iceberg(table, branch="main", as_of="2024-01-01")
    with pytest.raises(ConfigurationError, match="as_of='soon'"):
        env.read_iceberg(table, as_of="soon")


def test_a_table_without_rows_has_its_columns(catalog: Any, env: Environment) -> None:
    catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
    found = env.read_iceberg("db.t", catalog).filter(col("id") > 0)
    assert found.schema.names == ["id"]
    assert found.collect() == []


def test_columns_alone_that_no_file_has_and_no_columns_at_all(catalog: Any, env: Environment) -> None:
    table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2, 3]}))
    with table.update_schema() as update:
        update.add_column("new", StringType())
    rows = env.read_iceberg("db.t", catalog)
    assert rows.select("new").to_arrow()["new"].to_pylist() == [None, None, None]
    assert rows.count() == 3


def test_a_join_and_a_group_over_tables(catalog: Any, env: Environment) -> None:
    days = [date(2024, 1, 1) + timedelta(each % 5) for each in range(100)]
    table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64()), ("day", pa.date32())]))
    table.append(pa.table({"id": range(100), "day": days}))
    rows = env.read_iceberg("db.t", catalog)
    few = env.from_arrow(pa.table({"id": [3, 7]}))
    assert sorted(rows.join(few, on="id").to_arrow()["day"].to_pylist()) == [days[7], days[3]]
    assert rows.group_by("day").agg(n=count()).count() == 5


def test_files_of_another_kind_and_encrypted_ones_are_refused_by_name(
    catalog: Any, env: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    planned_files = importlib.import_module("engine.iceberg_tables.planned_files")
    kept = planned_files._entries_of
    from pyiceberg.manifest import FileFormat

    for place, value, text in ((2, FileFormat.ORC, "reading ORC"), (12, b"key", "is encrypted")):

        def changed(io: Any, manifest: Any, place: int = place, value: Any = value) -> Any:
            entries = kept(io, manifest)
            entries[0].file[place] = value
            return entries

        monkeypatch.setattr(planned_files, "_entries_of", changed)
        with pytest.raises(NotYetSupportedError, match=text):
            env.read_iceberg("db.t", catalog)


def test_without_its_package_the_error_names_the_extra(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(EngineError, match=r"pip install 'drey-engine\[iceberg\]'"):
        env.read_iceberg("db.t")


def test_target_spark_is_refused_by_name(catalog: Any) -> None:
    with Environment(target="spark") as spark:
        with pytest.raises(NotYetSupportedError, match="read_iceberg on target spark is not supported yet"):
            spark.read_iceberg("db.t", catalog)
        with pytest.raises(NotYetSupportedError, match="write_iceberg on target spark is not supported yet"):
            spark.from_arrow(pa.table({"x": [1]})).write_iceberg("db.t", catalog)
