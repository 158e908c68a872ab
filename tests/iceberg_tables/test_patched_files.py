"""Merges, updates and deletions write data files anew with the rows alone that change, as pyiceberg reads them."""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import LongType

from engine import Environment, col, iceberg, lit
from engine.errors import DataError, JobExecutionError
from engine.iceberg_tables import table_commit
from engine.outputs.row_changes import changed
from engine.parquet import patched_file
from tests.iceberg_tables.handmade import data_files, local

SMALL_GROUPS = {"write.parquet.row-group-limit": "100"}


@pytest.fixture(autouse=True)
def patched_at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patched_file, "_FILE_BYTES_MIN", 0)


@pytest.fixture(params=["columns", "rows"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """How files are written; a column that does not fit in memory has all rows written."""
    taken = noted_ways(monkeypatch)
    if request.param == "rows":
        monkeypatch.setattr(patched_file._Columns, "_bytes_of", lambda *_: 1 << 61)
    yield request.param
    assert set(taken) <= {request.param}


def noted_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the ways that are taken from now on."""
    taken: list[str] = []
    for kind, word in ((patched_file._Rows, "rows"), (patched_file._Columns, "columns")):
        monkeypatch.setattr(kind, "step", _noted(kind.step, taken, word))
    return taken


def _noted(step: Callable[..., None], taken: list[str], word: str) -> Callable[..., None]:
    def noted(self: Any, changes: Any) -> None:
        taken.append(word)
        step(self, changes)

    return noted


def values(keys: Any, seed: int = 0) -> pa.Table:
    chance = random.Random(seed)
    keys = list(keys)
    return pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "x": [chance.choice([None, math.nan, chance.random()]) for _ in keys],
            "s": [chance.choice([None, "", "a", "b" * 40, f"{number}"]) for number in keys],
            "l": pa.array([chance.choice([None, [], [1, None], [number]]) for number in keys], pa.list_(pa.int32())),
            "b": [chance.choice([None, True, False]) for _ in keys],
        }
    )


def table_of(catalog: Any, *parts: pa.Table, **properties: str) -> Any:
    """Make db.t of files with small row groups, one for each part."""
    table = catalog.create_table("db.t", parts[0].schema, properties={**SMALL_GROUPS, **properties})
    for part in parts:
        table.append(part)
    return table


def rows_of(catalog: Any) -> dict[int, Any]:
    """Return the rows by their keys, as pyiceberg reads them; NaN as text, which equals itself."""
    return by_key(catalog.load_table("db.t").scan().to_arrow())


def by_key(table: pa.Table) -> dict[int, Any]:
    return {row["id"]: {name: _plain(value) for name, value in row.items()} for row in table.to_pylist()}


def _plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def facts_of(catalog: Any) -> dict[str, Any]:
    """Return what manifests say of the files."""
    names = ["file_path", "record_count", "nan_value_counts", "null_value_counts", "value_counts", "split_offsets"]
    found = catalog.load_table("db.t").inspect.files().select([*names, "lower_bounds", "upper_bounds"])
    return {row["file_path"]: row for row in found.to_pylist()}


def assert_told_as_pyiceberg_tells(catalog: Any) -> None:
    """Compare what manifests say with the values themselves."""
    table = catalog.load_table("db.t")
    numbers = {field.name: field.field_id for field in table.schema().fields}
    for path, known in facts_of(catalog).items():
        footer, rows = pq.read_metadata(local(path)), pq.read_table(local(path))
        assert known["record_count"] == rows.num_rows
        assert known["split_offsets"] == [
            footer.row_group(group).column(0).dictionary_page_offset
            or footer.row_group(group).column(0).data_page_offset
            for group in range(footer.num_row_groups)
        ]
        nans, nulls = dict(known["nan_value_counts"]), dict(known["null_value_counts"])
        lows, highs = dict(known["lower_bounds"]), dict(known["upper_bounds"])
        if numbers["x"] in nans:
            assert nans[numbers["x"]] == pc.sum(pc.is_nan(rows.column("x"))).as_py()
        for name in ("id", "s"):
            assert nulls[numbers[name]] == rows.column(name).null_count
        assert int.from_bytes(lows[numbers["id"]], "little", signed=True) == pc.min(rows.column("id")).as_py()
        assert int.from_bytes(highs[numbers["id"]], "little", signed=True) == pc.max(rows.column("id")).as_py()


def test_updates_and_inserts(env: Environment, catalog: Any, way: str) -> None:
    table_of(catalog, values(range(0, 1000, 2)), values(range(1000, 2000, 2), 1), values(range(5000, 5100), 2))
    changes = values([*range(100, 400, 7), 1500, 1998], 3)
    expected = rows_of(catalog) | by_key(changes)
    result = env.from_arrow(changes).merge_into(iceberg("db.t", catalog), "id")
    assert result[1:4] == (24, 0, 2)
    assert result.version == catalog.load_table("db.t").current_snapshot().snapshot_id
    assert rows_of(catalog) == expected
    assert by_key(env.read_iceberg("db.t", catalog).to_arrow()) == expected
    assert_told_as_pyiceberg_tells(catalog)


def test_row_groups_and_columns_without_a_change_keep_their_bytes(env: Environment, catalog: Any) -> None:
    table = table_of(catalog, values(range(1000)))
    (old,) = data_files(table)
    before = pq.read_metadata(local(old))
    env.from_arrow(pa.table({"id": [250, 251], "x": [1.5, 2.5]})).merge_into(
        iceberg("db.t", catalog), "id", "update", "ignore"
    )
    (new,) = data_files(catalog.load_table("db.t"))
    after = pq.read_metadata(local(new))
    changed = set()
    for group in range(before.num_row_groups):
        for leaf in range(before.num_columns):
            chunks = [footer.row_group(group).column(leaf) for footer in (before, after)]
            found = []
            for path, chunk in zip((old, new), chunks, strict=True):
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                found.append(Path(local(path)).read_bytes()[start : start + chunk.total_compressed_size])
            if found[0] != found[1]:
                changed.add((group, chunks[0].path_in_schema))
    assert changed == {(2, "x")}
    schemas = [pq.read_schema(local(path)) for path in (old, new)]
    assert schemas[0].equals(schemas[1], check_metadata=True)
    assert_told_as_pyiceberg_tells(catalog)


def test_rows_that_go(env: Environment, catalog: Any, way: str) -> None:
    table_of(catalog, values(range(500)), values(range(500, 700), 1), values(range(700, 900), 2))
    expected = rows_of(catalog)
    gone = [*range(40, 140), 333, *range(500, 700)]
    result = env.from_arrow(pa.table({"id": gone})).merge_into(iceberg("db.t", catalog), "id", "delete", "ignore")
    assert result[:4] == (0, 0, 301, 2)
    assert rows_of(catalog) == {key: row for key, row in expected.items() if key not in set(gone)}
    assert len(data_files(catalog.load_table("db.t"))) == 2
    assert_told_as_pyiceberg_tells(catalog)


def test_some_go_and_some_change(env: Environment, catalog: Any, way: str) -> None:
    table_of(catalog, values(range(400)))
    expected = rows_of(catalog)
    clause = {"set": {"s": col("source.n").cast("string")}, "delete": col("source.n") % 2 == 0}
    source = pa.table({"id": range(150, 350, 3), "n": range(150, 350, 3)})
    result = env.from_arrow(source).merge_into(iceberg("db.t", catalog), "id", clause, "ignore")
    for key in range(150, 350, 3):
        if key % 2 == 0:
            del expected[key]
        else:
            expected[key]["s"] = str(key)
    assert result[:3] == (0, 33, 34)
    assert rows_of(catalog) == expected


def test_partitions_keep_their_values_and_new_rows_have_theirs(env: Environment, catalog: Any, way: str) -> None:
    rows = pa.table({"id": range(90), "p": [None, "a b", "x/y"] * 30, "v": range(90)})
    env.from_arrow(rows).write_iceberg("db.t", catalog, mode="append", partition_by=["bucket(2, id)", "p"])
    env.execute()
    table = catalog.load_table("db.t")
    before = {each["file_path"]: each["partition"] for each in table.inspect.files().to_pylist()}
    source = pa.table({"id": [0, 1, 2, 91, 92], "v": [-1] * 5, "new": [None, None, None, "x/y", "z"]})
    result = env.from_arrow(source).merge_into(
        iceberg("db.t", catalog), "id", {"set": {"v": col("source.v")}}, {"values": {"id": col("id"), "p": col("new")}}
    )
    assert result[:3] == (2, 3, 0)
    expected = by_key(rows) | {91: {"id": 91, "p": "x/y", "v": None}, 92: {"id": 92, "p": "z", "v": None}}
    for key in (0, 1, 2):
        expected[key]["v"] = -1
    assert rows_of(catalog) == expected
    after = {each["file_path"]: each["partition"] for each in catalog.load_table("db.t").inspect.files().to_pylist()}
    assert len(after) == len(before) + 2
    for path, partition in after.items():
        for row in pq.read_table(local(path)).to_pylist():
            assert row["p"] == partition["p"], path
    for p in ("a b", "x/y", "z", None):
        wanted = {key for key, row in expected.items() if row["p"] == p}
        condition = col("p").is_null() if p is None else col("p") == p
        assert {*env.read_iceberg("db.t", catalog).filter(condition).to_arrow().column("id").to_pylist()} == wanted


def test_a_row_may_go_into_another_partition(env: Environment, catalog: Any) -> None:
    rows = pa.table({"id": range(30), "p": ["a", "b", "c"] * 10})
    env.from_arrow(rows).write_iceberg("db.t", catalog, mode="append", partition_by=["p"])
    env.execute()
    env.from_arrow(pa.table({"id": [0], "p": ["b"]})).merge_into(iceberg("db.t", catalog), "id")
    assert rows_of(catalog)[0] == {"id": 0, "p": "b"}
    found = env.read_iceberg("db.t", catalog).filter(col("p") == "b").to_arrow()
    assert 0 in found.column("id").to_pylist()


def test_the_sort_order_is_told_where_it_holds(env: Environment, catalog: Any, way: str) -> None:
    keys = random.Random(1).sample(range(600), 300)
    env.from_arrow(pa.table({"id": keys, "v": keys})).write_iceberg("db.t", catalog, mode="append", sort_by=["id"])
    env.execute()
    number = catalog.load_table("db.t").sort_order().order_id

    def orders() -> dict[str, int | None]:
        entries = catalog.load_table("db.t").inspect.files().to_pylist()
        return {each["file_path"]: each["sort_order_id"] for each in entries}

    new = random.Random(2).sample(range(1000, 2000), 200)
    env.from_arrow(pa.table({"id": [*keys[:5], *new], "v": [0] * 205})).merge_into(iceberg("db.t", catalog), "id")
    assert set(orders().values()) == {number}
    for path in orders():
        found = pq.read_table(local(path)).column("id").to_pylist()
        assert found == sorted(found)
    env.from_arrow(pa.table({"id": keys[:1], "n": [-1]})).merge_into(
        iceberg("db.t", catalog), "id", {"set": {"id": col("n")}}, "ignore"
    )
    assert number in set(orders().values()) and None in set(orders().values())


def test_two_rows_of_the_source_for_one(env: Environment, catalog: Any, way: str) -> None:
    table_of(catalog, values(range(300)))
    before = rows_of(catalog)
    with pytest.raises(DataError, match="2 rows of the source have the key id=7"):
        env.from_arrow(values([5, 7, 7, 8], 3)).merge_into(iceberg("db.t", catalog), "id")
    assert rows_of(catalog) == before


def test_null_in_a_required_column(env: Environment, catalog: Any, way: str) -> None:
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string(), nullable=False)]
    table_of(catalog, pa.table({"id": range(300), "v": ["a"] * 300}, schema=pa.schema(fields)))
    with pytest.raises(JobExecutionError, match="column 'v' is required"):
        env.from_arrow(
            pa.table({"id": [250], "v": [None]}, schema=pa.schema({"id": pa.int64(), "v": pa.string()}))
        ).merge_into(iceberg("db.t", catalog), "id", "update", "ignore")
    env.from_arrow(pa.table({"id": [250], "v": ["b"]})).merge_into(iceberg("db.t", catalog), "id")
    assert rows_of(catalog)[250] == {"id": 250, "v": "b"}


def test_columns_that_files_have_otherwise(env: Environment, catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = noted_ways(monkeypatch)
    table = table_of(catalog, pa.table({"id": range(200), "n": pa.array(range(200), pa.int32()), "old": ["o"] * 200}))
    with table.update_schema() as update:
        update.update_column("n", LongType())
        update.rename_column("old", "new")
        update.add_column("more", LongType())
    expected = rows_of(catalog)
    env.from_arrow(pa.table({"id": [150], "more": [1 << 40]})).merge_into(
        iceberg("db.t", catalog), "id", "update", "ignore"
    )
    assert rows_of(catalog) == expected | {150: {"id": 150, "n": 150, "new": "o", "more": 1 << 40}}
    assert set(taken) == {"rows"}
    taken.clear()
    env.from_arrow(pa.table({"id": [151], "n": [1 << 50]})).merge_into(
        iceberg("db.t", catalog), "id", "update", "ignore"
    )
    assert rows_of(catalog)[151]["n"] == 1 << 50
    assert set(taken) == {"columns"}


def test_uuids(env: Environment, catalog: Any) -> None:
    found = [uuid.UUID(int=number).bytes for number in range(200)]
    table_of(catalog, pa.table({"id": range(200), "u": pa.array(found, pa.uuid())}))
    changes = pa.table({"id": [3, 150], "u": pa.array([b"\1" * 16, None], pa.binary(16))})
    env.from_arrow(changes).merge_into(iceberg("db.t", catalog), "id")
    env.from_arrow(pa.table({"id": [199]})).merge_into(iceberg("db.t", catalog), "id", "delete", "ignore")
    read = by_key(env.read_iceberg("db.t", catalog).to_arrow())
    expected = {number: {"id": number, "u": value} for number, value in enumerate(found[:199])}
    assert read == expected | {3: {"id": 3, "u": b"\1" * 16}, 150: {"id": 150, "u": None}}
    (path,) = data_files(catalog.load_table("db.t"))
    assert pq.read_metadata(local(path)).schema.column(1).logical_type.type == "UUID"


def test_another_writer_changes_one_of_the_files(
    env: Environment, catalog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_of(catalog, values(range(300)), values(range(300, 600), 1))
    commit = table_commit._commit

    def late(*arguments: Any) -> int:
        monkeypatch.setattr(table_commit, "_commit", commit)
        catalog.load_table("db.t").delete("id = 20")
        return commit(*arguments[:1], catalog.load_table("db.t"), *arguments[2:])

    monkeypatch.setattr(table_commit, "_commit", late)
    with pytest.raises(JobExecutionError, match="another writer has changed"):
        env.from_arrow(values([7, 310], 3)).merge_into(iceberg("db.t", catalog), "id")


@pytest.mark.parametrize("where", [col("id") % 50 == 7, col("s") == "a"])
def test_update_and_delete(env: Environment, catalog: Any, way: str, where: Any) -> None:
    table_of(catalog, values(range(300)), values(range(300, 600), 1), values(range(9000, 9100), 2))
    expected = rows_of(catalog)
    meet = {key for key in expected if (key % 50 == 7 if "id" in str(where) else expected[key]["s"] == "a")}
    table = iceberg("db.t", catalog)
    found = changed(env, table, where, {"x": lit(0.5)}, "UPDATE")
    assert found[:3] == (0, len(meet), 0)
    assert rows_of(catalog) == {key: {**row, "x": 0.5} if key in meet else row for key, row in expected.items()}
    expected = rows_of(catalog)
    found = changed(env, table, where, None, "DELETE")
    assert found[:3] == (0, 0, len(meet))
    assert rows_of(catalog) == {key: row for key, row in expected.items() if key not in meet}
    assert_told_as_pyiceberg_tells(catalog)


@pytest.mark.thorough
def test_random_merges_agree_with_plain_python(env: Environment, catalog: Any, way: str) -> None:
    chance = random.Random(5)
    for trial in range(5):
        keys = chance.sample(range(3000), 900)
        table_of(catalog, values(keys[:500], 1), values(keys[500:880], 2), values(keys[880:], 3))
        source = values(chance.sample(range(3000), 400), 4)
        matched, unmatched = chance.choice(["update", "delete"]), chance.choice(["insert", "ignore"])
        expected = rows_of(catalog)
        for key, row in by_key(source).items():
            if key in expected and matched == "delete":
                del expected[key]
            elif key in expected or unmatched == "insert":
                expected[key] = row
        env.from_arrow(source).merge_into(iceberg("db.t", catalog), "id", matched, unmatched)
        assert rows_of(catalog) == expected, (trial, matched, unmatched)
        assert_told_as_pyiceberg_tells(catalog)
        catalog.drop_table("db.t")
