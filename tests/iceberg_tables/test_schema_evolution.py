"""Columns of files by field ids: added, dropped, renamed, reordered, widened, within structs, lists and maps too."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DecimalType, DoubleType, LongType, StringType

from engine import Environment, col
from engine.errors import EngineError
from tests.iceberg_tables.handmade import as_third_version, data_files, local


def _rows(env: Environment, catalog: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = env.read_iceberg("db.t", catalog).to_arrow().to_pylist()
    return found


def test_columns_are_added_dropped_renamed_reordered_and_widened(catalog: Any, env: Environment) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "city": ["Rome", None],
            "ratio": pa.array([0.5, None], pa.float32()),
            "price": pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)),
        }
    )
    table = catalog.create_table("db.t", schema=rows.schema)
    table.append(rows)
    with table.update_schema() as update:
        update.update_column("id", LongType()).update_column("ratio", DoubleType())
        update.update_column("price", DecimalType(12, 2))
        update.rename_column("city", "town")
    with table.update_schema() as update:
        update.add_column("city", StringType())  # another column, under the name that the file has for town
        update.move_first("price")
    assert _rows(env, catalog) == [
        {"price": Decimal("1.25"), "id": 1, "town": "Rome", "ratio": 0.5, "city": None},
        {"price": None, "id": 2, "town": None, "ratio": None, "city": None},
    ]
    source = env.read_iceberg("db.t", catalog)
    assert source.filter(col("town") == "Rome").select("id").to_arrow().to_pylist() == [{"id": 1}]
    assert source.filter(col("city").is_null() & (col("id") > 1)).select("id").to_arrow().to_pylist() == [{"id": 2}]
    assert source.filter(col("city") == "Rome").count() == 0
    with table.update_schema() as update:
        update.delete_column("town")
    assert list(_rows(env, catalog)[0]) == ["price", "id", "ratio", "city"]


def test_fields_within_columns_change_too(catalog: Any, env: Environment) -> None:
    inner = pa.struct([("x", pa.int32()), ("y", pa.string())])
    rows = pa.table(
        {
            "place": pa.array([{"x": 1, "y": "a"}, None], inner),
            "many": pa.array([[{"x": 2, "y": "b"}, None], []], pa.list_(inner)),
            "by": pa.array([[("k", {"x": 3, "y": "c"})], None], pa.map_(pa.string(), inner)),
        }
    )
    # Not by pyiceberg, which writes a null map as an empty one.
    env.from_arrow(rows).write_iceberg("db.t", catalog)
    env.execute()
    table = catalog.load_table("db.t")
    with table.update_schema() as update:
        for path in (("place",), ("many", "element"), ("by", "value")):
            update.update_column((*path, "x"), LongType())
            update.rename_column((*path, "y"), "label")
            update.add_column((*path, "more"), LongType())
    assert _rows(env, catalog) == [
        {
            "place": {"x": 1, "label": "a", "more": None},
            "many": [{"x": 2, "label": "b", "more": None}, None],
            "by": [("k", {"x": 3, "label": "c", "more": None})],
        },
        {"place": None, "many": [], "by": None},
    ]
    table.append(_as_now(table, [{"place": {"x": 9, "label": "z", "more": 7}, "many": None, "by": None}]))
    places = env.read_iceberg("db.t", catalog).select("place").to_arrow()["place"].to_pylist()
    old, new = {"x": 1, "label": "a", "more": None}, {"x": 9, "label": "z", "more": 7}
    assert sorted(places, key=str) == [None, old, new]


def _as_now(table: Any, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=table.schema().as_arrow())


def test_a_column_that_files_lack_is_that_of_their_partition_or_its_initial_default(
    catalog: Any, env: Environment, tmp_path: Path
) -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("k", pa.string())])
    table = catalog.create_table("db.t", schema=schema)
    with table.update_spec() as update:
        update.add_field("day", IdentityTransform(), "day").add_field("k", IdentityTransform(), "k")
    table.append(pa.table({"id": [1], "day": pa.array([19723], pa.date32()), "k": pa.array([None], pa.string())}))
    table.append(pa.table({"id": [2], "day": pa.array([None], pa.date32()), "k": [""]}))
    for path in data_files(table):
        # As Hive's tables are: columns of partitions are in the paths alone.
        pq.write_table(pq.read_table(local(path)).select(["id"]), local(path))
    found = json.loads(Path(as_third_version(table)).read_text())
    for each in found["schemas"]:
        each["fields"] += [
            {"id": 4, "name": "n", "type": "int", "required": False, "initial-default": 7},
            {"id": 5, "name": "price", "type": "decimal(9, 2)", "required": False, "initial-default": "1.50"},
            {
                "id": 6,
                "name": "at",
                "type": "timestamptz",
                "required": False,
                "initial-default": "2024-01-02T03:04:05+00:00",
            },
            {"id": 7, "name": "raw", "type": "binary", "required": False, "initial-default": "00ff"},
            {"id": 8, "name": "flag", "type": "boolean", "required": False, "initial-default": True},
        ]
    path = tmp_path / "defaults.metadata.json"
    path.write_text(json.dumps(found))
    rows = env.read_iceberg(path).sort("id").to_arrow()
    assert [(str(row["day"]), row["k"]) for row in rows.to_pylist()] == [("2024-01-01", None), ("None", "")]
    first = rows.to_pylist()[0]
    assert (first["n"], first["price"], first["raw"], first["flag"]) == (7, Decimal("1.50"), b"\x00\xff", True)
    assert first["at"].isoformat() == "2024-01-02T03:04:05+00:00"
    assert env.read_iceberg(path).filter((col("n") == 7) & (col("k") == "")).select("id").to_arrow().to_pylist() == [
        {"id": 2}
    ]


def test_files_without_ids_are_read_by_the_name_mapping_and_refused_without_one(
    catalog: Any, env: Environment, tmp_path: Path
) -> None:
    rows = pa.table({"id": [1, 2], "place": [{"x": 1}, {"x": 2}]})
    pq.write_table(rows, tmp_path / "plain.parquet")
    table = catalog.create_table("db.t", schema=rows.schema)
    table.add_files([f"file://{tmp_path}/plain.parquet"])
    with table.update_schema() as update:
        update.rename_column("id", "number")
        update.rename_column("place.x", "east")
    assert _rows(env, catalog) == [{"number": 1, "place": {"east": 1}}, {"number": 2, "place": {"east": 2}}]
    with table.transaction() as transaction:
        transaction.remove_properties("schema.name-mapping.default")
    with pytest.raises(EngineError, match="no field ids, and the table has no name mapping"):
        _rows(env, catalog)


def test_what_cannot_be_read_is_refused_by_name(catalog: Any, env: Environment, tmp_path: Path) -> None:
    table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    found = json.loads(Path(as_third_version(table)).read_text())
    for each in found["schemas"]:
        each["fields"].append({"id": 9, "name": "where", "type": "geometry", "required": False})
    path = tmp_path / "geometry.metadata.json"
    path.write_text(json.dumps(found))
    with pytest.raises(EngineError, match="column 'where' has the type geometry"):
        env.read_iceberg(path)


def test_a_snapshot_of_the_past_has_the_columns_of_its_time(catalog: Any, env: Environment) -> None:
    table = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64()), ("name", pa.string())]))
    table.append(pa.table({"id": [1], "name": ["a"]}))
    first = table.current_snapshot().snapshot_id
    with table.update_schema() as update:
        update.delete_column("name")
    assert _rows(env, catalog) == [{"id": 1}]
    past = env.read_iceberg("db.t", catalog, snapshot_id=first)
    assert past.to_arrow().to_pylist() == [{"id": 1, "name": "a"}]
