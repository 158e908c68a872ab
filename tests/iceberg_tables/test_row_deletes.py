"""Rows that are deleted by their positions: delete files of the second version, deletion vectors of the third."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import IdentityTransform

from engine import Environment, col
from engine.errors import EngineError
from tests.iceberg_tables.handmade import (
    add_deletes,
    as_third_version,
    data_files,
    deletion_vector,
    local,
    position_deletes,
)


def _table(catalog: Any, *parts: range) -> Any:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    table = catalog.create_table("db.t", schema=schema, properties={"format-version": "2"})
    for part in parts:
        table.append(pa.table({"id": list(part), "name": [f"n{each}" for each in part]}, schema=schema))
    return table


def _ids(rows: Any) -> list[int]:
    return sorted(rows.to_arrow().column("id").to_pylist())


def test_rows_of_position_deletes_do_not_come_out(catalog: Any, env: Environment) -> None:
    table = _table(catalog, range(10), range(10, 20))
    first, second = data_files(table)
    add_deletes(table, [position_deletes(table, [(first, 0), (first, 9), (second, 3)])])
    add_deletes(table, [position_deletes(table, [(second, 4)])])
    assert _ids(env.read_iceberg("db.t", catalog)) == [*range(1, 9), *range(10, 13), *range(15, 20)]
    assert _ids(env.read_iceberg("db.t", catalog).filter(col("id") >= 12)) == [12, *range(15, 20)]


def test_position_deletes_apply_to_no_newer_file(catalog: Any, env: Environment) -> None:
    table = _table(catalog, range(5))
    (first,) = data_files(table)
    add_deletes(table, [position_deletes(table, [(first, each) for each in range(5)])])
    table.append(pa.table({"id": [7], "name": ["seven"]}))
    assert _ids(env.read_iceberg("db.t", catalog)) == [7]


def test_position_deletes_of_a_partition_apply_to_its_files_alone(catalog: Any, env: Environment) -> None:
    table = _table(catalog)
    with table.update_spec() as update:
        update.add_field("name", IdentityTransform(), "name")
    table.append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    one, two = sorted(data_files(table))
    files = [position_deletes(table, [(one, 0), (two, 0)], partition=_partition(table, "a"))]
    add_deletes(table, files)
    assert _ids(env.read_iceberg("db.t", catalog)) == [2]


def _partition(table: Any, value: str) -> Any:
    manifest = table.refresh().current_snapshot().manifests(table.io)[0]
    entries = manifest.fetch_manifest_entry(table.io)
    return next(each.data_file.partition for each in entries if each.data_file.partition[0] == value)


def test_rows_of_a_deletion_vector_do_not_come_out(catalog: Any, env: Environment) -> None:
    table = _table(catalog, range(10), range(10, 20))
    first, second = data_files(table)
    add_deletes(table, [position_deletes(table, [(first, 5)]), position_deletes(table, [(second, 0)])])
    # The vector has all deleted positions of its file, whatever older files say.
    add_deletes(table, [deletion_vector(table, first, [1, 2, 1 << 33])])
    found = _ids(env.read_iceberg(as_third_version(table)))
    assert found == [0, *range(3, 10), *range(11, 20)]


def test_a_damaged_deletion_vector_is_told(catalog: Any, env: Environment) -> None:
    table = _table(catalog, range(10))
    vector = deletion_vector(table, data_files(table)[0], [1, 2])
    path = Path(local(vector.file_path))
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    add_deletes(table, [vector])
    with pytest.raises(EngineError, match="deletion vector at byte 4 is damaged"):
        env.read_iceberg(as_third_version(table)).collect()


def test_positions_are_those_of_the_file_in_every_row_group(catalog: Any, env: Environment) -> None:
    rows = 200_000
    schema = pa.schema([("id", pa.int64())])
    table = catalog.create_table(
        "db.t", schema=schema, properties={"write.parquet.row-group-limit": "30000", "format-version": "2"}
    )
    table.append(pa.table({"id": range(rows)}))
    (path,) = data_files(table)
    gone = {0, 29_999, 30_000, 131_071, 131_072, 199_999}
    add_deletes(table, [position_deletes(table, [(path, each) for each in sorted(gone)])])
    assert set(range(rows)) - set(_ids(env.read_iceberg("db.t", catalog))) == gone
