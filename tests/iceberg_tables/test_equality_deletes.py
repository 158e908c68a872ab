"""Rows that are deleted by equal values: an anti join by sequence numbers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.transforms import IdentityTransform

from engine import Environment, col
from tests.iceberg_tables.handmade import add_deletes, data_files, equality_deletes, position_deletes

_SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def _table(catalog: Any) -> Any:
    return catalog.create_table("db.t", schema=_SCHEMA, properties={"format-version": "2"})


def _rows(**columns: list[Any]) -> pa.Table:
    return pa.table(columns, schema=pa.schema([_SCHEMA.field(name) for name in columns]))


def _found(env: Environment, catalog: Any) -> list[tuple[Any, ...]]:
    rows = env.read_iceberg("db.t", catalog).to_arrow()
    return sorted(zip(*(rows.column(name).to_pylist() for name in rows.column_names), strict=True), key=str)


def test_older_rows_of_a_deleted_key_do_not_come_out_and_newer_ones_do(catalog: Any, env: Environment) -> None:
    table = _table(catalog)
    table.append(_rows(id=[1, 2, 3], name=["a", "b", "c"]))
    add_deletes(table, [equality_deletes(table, _rows(id=[2, 3]), [1])])
    table.append(_rows(id=[2, 4], name=["again", "d"]))
    assert _found(env, catalog) == [(1, "a"), (2, "again"), (4, "d")]


def test_a_null_key_deletes_nulls(catalog: Any, env: Environment) -> None:
    table = _table(catalog)
    table.append(_rows(id=[1, None, None], name=["a", "b", None]))
    add_deletes(table, [equality_deletes(table, _rows(id=[None], name=[None]), [1, 2])])
    assert _found(env, catalog) == [(1, "a"), (None, "b")]


def test_deletes_of_several_keys_and_of_positions_apply_together(catalog: Any, env: Environment) -> None:
    table = _table(catalog)
    table.append(_rows(id=list(range(8)), name=[f"n{each % 4}" for each in range(8)]))
    (path,) = data_files(table)
    by_id, by_name = equality_deletes(table, _rows(id=[0, 5]), [1]), equality_deletes(table, _rows(name=["n3"]), [2])
    add_deletes(table, [by_id, by_name, position_deletes(table, [(path, 1)])])
    assert [row[0] for row in _found(env, catalog)] == [2, 4, 6]
    kept = env.read_iceberg("db.t", catalog).filter(col("id") > 2).select("id").to_arrow()
    assert sorted(kept.column("id").to_pylist()) == [4, 6]


def test_deletes_of_a_partition_apply_to_its_rows_alone(catalog: Any, env: Environment) -> None:
    table = _table(catalog)
    with table.update_spec() as update:
        update.add_field("name", IdentityTransform(), "name")
    table.append(_rows(id=[1, 1, 2], name=["a", "b", "a"]))
    (manifest,) = table.refresh().current_snapshot().manifests(table.io)
    partitions = {
        each.data_file.partition[0]: each.data_file.partition for each in manifest.fetch_manifest_entry(table.io)
    }
    add_deletes(table, [equality_deletes(table, _rows(id=[1]), [1], partition=partitions["a"])])
    assert _found(env, catalog) == [(1, "b"), (2, "a")]


def test_keys_of_a_column_that_was_dropped_and_of_one_that_was_renamed(catalog: Any, env: Environment) -> None:
    table = _table(catalog)
    table.append(_rows(id=[1, 2, 3], name=["a", "b", "c"]))
    add_deletes(table, [equality_deletes(table, _rows(id=[2]), [1]), equality_deletes(table, _rows(name=["c"]), [2])])
    with table.update_schema() as update:
        update.delete_column("id")
        update.rename_column("name", "label")
    assert _found(env, catalog) == [("a",)]


def test_the_plan_shows_deletes_as_a_join_and_files_without_them_beside_it(catalog: Any, env: Environment) -> None:
    table = _table(catalog)
    table.append(_rows(id=[1, 2], name=["a", "b"]))
    add_deletes(table, [equality_deletes(table, _rows(id=[2]), [1])])
    table.append(_rows(id=[9], name=["z"]))
    text = env.read_iceberg("db.t", catalog).explain()
    assert "equality deletes of default.db.t" in text or "equality deletes of db.t" in text
    assert "anti" in text
    assert text.count("reads 1 of 1 files") == 3
