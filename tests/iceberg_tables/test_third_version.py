"""Tables of the third version: deletion vectors and ids of rows that others read, through every catalog."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from engine import Environment, col, iceberg, lit
from engine.errors import NotYetSupportedError, SchemaError
from engine.iceberg_tables.folder_catalog import FolderCatalog
from engine.iceberg_tables.manifests import FIRST_ROW_ID, entries_of, manifests_of
from engine.iceberg_tables.third_version import writing
from tests.iceberg_tables.handmade import as_third_version, local
from tests.iceberg_tables.rest_server import serving

THIRD = {"format-version": "3"}


def write(env: Environment, catalog: Any, ids: Any, mode: str = "append", **options: Any) -> None:
    """Write rows with some ids."""
    rows = pa.table({"id": list(ids), "v": [0] * len(ids), "p": ["ab"[key % 2] for key in ids]})
    env.from_arrow(rows).write_iceberg("db.t", catalog, mode=mode, **options)
    env.execute()


def changed(env: Environment, catalog: Any) -> dict[int, int]:
    """Make a table by several calls; return what it has then, v by id."""
    write(env, catalog, range(10), "error", partition_by=["p"], properties=THIRD)
    write(env, catalog, range(20, 24))
    rows = pa.table({"id": [3, 4, 30], "v": [1, 1, 1], "p": ["b", "a", "a"]})
    merged = env.from_arrow(rows).merge_into(iceberg("db.t", catalog), "id")
    assert merged[:4] == (1, 2, 0, 0)
    deleted = env.from_arrow(pa.table({"id": [5, 3]})).merge_into(iceberg("db.t", catalog), "id", "delete", "ignore")
    assert deleted[:3] == (0, 0, 2)
    return {key: int(key in (4, 30)) for key in (*range(10), *range(20, 24), 30) if key not in (3, 5)}


def first_row_ids(table: Any) -> dict[str, tuple[int, int]]:
    """Return the id of the first row, and the rows, of each data file."""
    found = {}
    for manifest in manifests_of(table.io, table.metadata.current_snapshot()):
        for entry in entries_of(table.io, manifest):
            if entry.data_file.content == 0:
                found[entry.data_file.file_path] = entry.data_file[FIRST_ROW_ID], entry.data_file.record_count
    return found


def test_a_table_is_made_added_to_and_merged_into(env: Environment, catalog: Any) -> None:
    there = changed(env, catalog)
    table = catalog.load_table("db.t")
    assert dict(env.read_iceberg("db.t", catalog).select("id", "v").collect()) == there
    found = table.scan().to_arrow()
    assert dict(zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)) == there
    deletes = table.inspect.delete_files().to_pylist()
    assert {each["file_format"] for each in deletes} == {"PUFFIN"}
    assert all(Path(local(each["file_path"])).read_bytes()[:4] == b"PFA1" for each in deletes)
    snapshots = table.metadata.snapshots
    assert table.metadata.format_version == 3
    assert [each.first_row_id for each in snapshots] == [0, 10, 14, 17]
    assert [each.added_rows for each in snapshots] == [10, 4, 3, 0]
    assert table.metadata.next_row_id == 17


def test_rows_keep_their_ids_when_others_come_and_go(env: Environment, catalog: Any) -> None:
    write(env, catalog, range(10), "error", partition_by=["p"], properties=THIRD)
    write(env, catalog, range(20, 24))
    before = first_row_ids(catalog.load_table("db.t"))
    write(env, catalog, [1], "overwrite_partitions")
    table = catalog.load_table("db.t")
    after = first_row_ids(table)
    kept = before.keys() & after.keys()
    assert len(kept) == 2
    assert {path: before[path] for path in kept} == {path: after[path] for path in kept}
    numbers = [first + place for first, count in {**before, **after}.values() for place in range(count)]
    assert len(numbers) == len({*numbers}) == 15
    assert max(numbers) < table.metadata.next_row_id


def test_a_table_that_became_one_gives_ids_to_its_rows(env: Environment, tmp_path: Path) -> None:
    folder = FolderCatalog(str(tmp_path))
    folder.create_namespace("db")
    write(env, str(tmp_path), range(6), "error")
    table = folder.load_table("db.t")
    place = as_third_version(table)
    content = json.loads(Path(place).read_text())
    content |= {"next-row-id": 0}
    for snapshot in content["snapshots"]:
        del snapshot["first-row-id"], snapshot["added-rows"]
    Path(place).unlink()
    (tmp_path / "db/t/metadata/v2.metadata.json").write_text(json.dumps(content))
    write(env, str(tmp_path), [7])
    table = folder.load_table("db.t")
    assert table.metadata.next_row_id == 7
    assert sorted(first_row_ids(table).values()) in ([(0, 1), (1, 6)], [(0, 6), (6, 1)])
    assert env.read_iceberg("db.t", str(tmp_path)).count() == 7
    content = json.loads(Path(local(table.metadata_location)).read_text())
    content["encryption-keys"] = [{"key-id": "k"}]
    Path(local(table.metadata_location)).write_text(json.dumps(content))
    with pytest.raises(NotYetSupportedError, match="metadata with encryption-keys, as they would be lost, is not"):
        write(env, str(tmp_path), [8])


def lineage(table: Any) -> dict[int, tuple[int, int]]:
    """Return the id of each row and the number of its last change, by the column id, as the specification has it."""
    found: dict[int, tuple[int, int]] = {}
    deleted = {}
    for task in table.scan().plan_files():
        deleted[task.file.file_path] = {*_deleted_places(task)}
    for manifest in manifests_of(table.io, table.metadata.current_snapshot()):
        for entry in entries_of(table.io, manifest):
            file = entry.data_file
            if file.content != 0:
                continue
            rows = pq.read_table(local(file.file_path)).to_pylist()
            for place, row in enumerate(rows):
                if place in deleted[file.file_path]:
                    continue
                own, changed = row.get("_row_id"), row.get("_last_updated_sequence_number")
                found[row["id"]] = (
                    file[FIRST_ROW_ID] + place if own is None else own,
                    entry.sequence_number if changed is None else changed,
                )
    return found


def _deleted_places(task: Any) -> Iterator[int]:
    for each in task.delete_files:
        file = PuffinFile(Path(local(each.file_path)).read_bytes())
        for vector in deletion_vectors_from_puffin_file(file):
            if vector.referenced_data_file == task.file.file_path:
                yield from vector.to_vector().to_pylist()


COPIES = {**THIRD, "write.merge.mode": "copy-on-write", "write.update.mode": "copy-on-write"}


@pytest.mark.parametrize("keys", [None, ["p"]])
def test_rows_keep_their_ids_in_other_files(env: Environment, catalog: Any, keys: Any) -> None:
    write(env, catalog, range(6), "error", partition_by=keys, properties=COPIES)
    write(env, catalog, range(6, 12))
    before = lineage(catalog.load_table("db.t"))
    assert sorted(first for first, _ in before.values()) == list(range(12))
    # 2 is updated, 7 moves into another partition, 9 goes, and 20 is new
    changes = pa.table({"id": [2, 7, 9, 20], "v": [5, 5, -1, 5], "p": ["a", "a", "b", "a"]})
    merged = env.from_arrow(changes).merge_into(
        iceberg("db.t", catalog),
        "id",
        {"set": {"v": col("source.v"), "p": col("source.p")}, "delete": col("source.v") < 0},
    )
    assert merged[:3] == (1, 2, 1)
    table = catalog.load_table("db.t")
    after = lineage(table)
    assert {key: after[key] for key in before if key not in (2, 7, 9)} == {
        key: numbers for key, numbers in before.items() if key not in (2, 7, 9)
    }
    assert [after[key] for key in (2, 7)] == [(before[2][0], 3), (before[7][0], 3)]
    assert 9 not in after
    assert 12 <= after[20][0] < table.metadata.next_row_id
    assert after[20][1] == 3
    assert env.optimize(iceberg("db.t", catalog), sort_by=["v", "id"]).files_removed
    assert lineage(catalog.load_table("db.t")) == after
    # and again, of files that have the ids of their rows
    update = env.from_arrow(pa.table({"id": [2, 4], "v": [6, 6], "p": ["a", "a"]}))
    assert update.merge_into(iceberg("db.t", catalog), "id")[:3] == (0, 2, 0)
    last = lineage(catalog.load_table("db.t"))
    assert {key: first for key, (first, _) in last.items()} == {key: first for key, (first, _) in after.items()}
    assert {key for key, (_, changed) in last.items() if changed == 5} == {2, 4}
    found = catalog.load_table("db.t").scan().to_arrow().select(["id", "v"]).sort_by("id")
    assert env.read_iceberg("db.t", catalog).select("id", "v").sort("id").to_arrow().to_pylist() == found.to_pylist()
    numbers = [first for first, _ in last.values()]
    assert len({*numbers}) == len(numbers) == 12


def test_ids_of_rows_in_files_with_deleted_ones_are_kept(env: Environment, catalog: Any) -> None:
    there = changed(env, catalog)
    before = lineage(catalog.load_table("db.t"))
    assert before.keys() == there.keys()
    assert env.optimize(iceberg("db.t", catalog)).files_removed
    table = catalog.load_table("db.t")
    assert not table.inspect.delete_files().num_rows
    assert lineage(table) == before
    assert dict(env.read_iceberg("db.t", catalog).select("id", "v").collect()) == there


def test_an_update_in_other_files_keeps_ids(env: Environment, tmp_path: Path) -> None:
    folder = FolderCatalog(str(tmp_path))
    folder.create_namespace("db")
    write(env, str(tmp_path), range(6), "error", properties=COPIES)
    env.attach("lineage_lake", str(tmp_path))
    env.sql("UPDATE lineage_lake.db.t SET v = 9 WHERE id = 1")
    after = lineage(folder.load_table("db.t"))
    assert after == {key: (key, 1 + (key == 1)) for key in range(6)}


def test_a_column_with_a_default_is_asked_for(env: Environment, tmp_path: Path) -> None:
    folder = FolderCatalog(str(tmp_path))
    folder.create_namespace("db")
    write(env, str(tmp_path), range(2), "error", properties=THIRD)
    place = Path(local(folder.load_table("db.t").metadata_location))
    content = json.loads(place.read_text())
    content["schemas"][0]["fields"][1] |= {"initial-default": 5, "write-default": 7}
    place.write_text(json.dumps(content))
    rows = env.from_arrow(pa.table({"id": [9], "p": ["a"]}))
    with pytest.raises(SchemaError, match=r"no column 'v', which is 7 by default; add it: \.with_columns"):
        rows.write_iceberg("db.t", str(tmp_path), mode="append")
    rows.with_columns(v=lit(7)).write_iceberg("db.t", str(tmp_path), mode="append")
    env.execute()
    fields = json.loads(Path(local(folder.load_table("db.t").metadata_location)).read_text())["schemas"][0]["fields"]
    assert (fields[1]["initial-default"], fields[1]["write-default"]) == (5, 7)
    merged = env.from_arrow(pa.table({"id": [20], "p": ["b"]})).merge_into(iceberg("db.t", str(tmp_path)), "id")
    assert merged.rows_inserted == 1
    found = env.read_iceberg("db.t", str(tmp_path)).filter(lit(20) == col("id")).collect()
    assert [row.v for row in found] == [7]
    env.attach("lake", str(tmp_path))
    env.sql(
        "MERGE INTO lake.db.t AS t USING (VALUES (30, 1), (31, 2), (32, 3)) AS s(id, v) ON t.id = s.id"
        " WHEN NOT MATCHED AND s.id = 30 THEN INSERT (id, v) VALUES (s.id, s.v)"
        " WHEN NOT MATCHED AND s.id = 31 THEN INSERT (id, v) VALUES (s.id, NULL)"
        " WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 'z')"
    )
    rows = env.sql("SELECT id, v, p FROM lake.db.t WHERE id >= 30 ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(30, 1, None), (31, None, None), (32, 7, "z")]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["folder", "rest"])
def test_other_catalogs(env: Environment, tmp_path: Path, kind: str) -> None:
    inner = FolderCatalog(str(tmp_path))
    inner.create_namespace("db")
    if kind == "folder":
        there = changed(env, str(tmp_path))
    else:
        with serving(writing(inner)) as (uri, _):
            there = changed(env, load_catalog("lake", type="rest", uri=uri))
    assert dict(env.read_iceberg("db.t", str(tmp_path)).select("id", "v").collect()) == there
    assert inner.load_table("db.t").metadata.next_row_id == 17


@pytest.mark.thorough
def test_polars_reads_it(env: Environment, catalog: Any) -> None:
    pytest.importorskip("polars")
    there = changed(env, catalog)
    script = "import polars, sys; print(polars.scan_iceberg(sys.argv[1]).select('id', 'v').collect().rows())"
    command = [sys.executable, "-W", "ignore", "-c", script, catalog.load_table("db.t").metadata_location]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert dict(ast.literal_eval(done.stdout)) == there
