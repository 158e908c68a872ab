"""Merges into tables of Iceberg, by new files and by files of deletes, as pyiceberg reads what they leave."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from engine import Environment, col, iceberg
from engine.errors import ConfigurationError, DataError, JobExecutionError, PlanError
from engine.iceberg_tables import table_commit
from tests.iceberg_tables.handmade import add_deletes, data_files, equality_deletes, local
from tests.sampling import first

ROWS = pa.table({"id": range(12), "v": ["a"] * 12, "p": [k % 3 for k in range(12)]})
MODES = ["copy-on-write", "merge-on-read"]


def table_in(env: Environment, catalog: Any, mode: str, rows: pa.Table = ROWS, **options: Any) -> Any:
    """Make the table db.t, and return it."""
    properties = {"write.merge.mode": mode, **options.pop("properties", {})}
    env.from_arrow(rows).write_iceberg("db.t", catalog, mode="append", properties=properties, **options)
    env.execute()
    return catalog.load_table("db.t")


def source(env: Environment, **columns: Any) -> Any:
    """Return rows that are merged."""
    return env.from_arrow(pa.table(columns))


def rows_of(catalog: Any) -> list[tuple[Any, ...]]:
    """Return the rows, as pyiceberg reads them."""
    found = catalog.load_table("db.t").scan().to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def files_of(table: Any) -> set[str]:
    """Return the names of all files in the table's folder of data."""
    folder = Path(local(table.location())) / "data"
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mode", first(*MODES))
def test_merges_keep_hidden_partitions_and_leave_their_files_alone(env: Environment, catalog: Any, mode: str) -> None:
    table = table_in(env, catalog, mode, partition_by=["bucket(2, id)", "p"])
    expected = {row["id"]: (row["id"], row["v"], row["p"]) for row in ROWS.to_pylist()}
    for trial in range(3):
        ids = [trial, 6, 20 + trial]
        result = source(env, id=ids, v=[f"v{trial}"] * 3, p=[7, 7, trial]).merge_into(iceberg("db.t", catalog), "id")
        assert result[:3] == (1, 2, 0)
        assert result.version == catalog.load_table("db.t").current_snapshot().snapshot_id
        expected |= {key: (key, f"v{trial}", p) for key, p in zip(ids, (7, 7, trial), strict=True)}
        assert rows_of(catalog) == sorted(expected.values())
        assert sorted(tuple(row) for row in env.read_iceberg("db.t", catalog).collect()) == sorted(expected.values())
    entries = catalog.load_table("db.t").inspect.files().to_pylist()
    wanted = [entry["file_path"].rpartition("/")[2] for entry in entries]
    assert {*wanted} <= files_of(table) and any("deletes-" in name for name in wanted) is (mode == "merge-on-read")
    if mode == "merge-on-read":
        # what a file of deletes says of a data file is all: those before it are no more of the table
        names = [entry["lower_bounds"] for entry in entries if entry["content"] == 1]
        assert len(names) == len({str(name) for name in names})


@pytest.mark.parametrize("mode", MODES)
def test_clauses(env: Environment, catalog: Any, mode: str) -> None:
    table_in(env, catalog, mode, sort_by=["v", "id"])
    result = source(env, id=[1, 2, 3, 50, 51, None], n=[1, 20, 3, 50, 5, 9]).merge_into(
        iceberg("db.t", catalog),
        on=["id"],
        when_matched={"set": {"p": col("target.p") + col("n")}, "where": col("n") > 2},
        when_not_matched={"values": {"id": col("id"), "p": col("n") * 2}, "where": col("n") > 10},
        when_not_matched_by_source={"delete": True, "where": col("p") == 0},
    )
    assert result[:3] == (1, 2, 3)
    kept = [(k, "a", k % 3) for k in range(12) if k % 3 or k == 3]
    changed = {2: (2, "a", 22), 3: (3, "a", 3)}
    assert rows_of(catalog) == sorted([*(changed.get(row[0], row) for row in kept), (50, None, 100)])


@pytest.mark.parametrize("mode", MODES)
def test_rows_go_from_files_with_all_kinds_of_deletes(env: Environment, catalog: Any, mode: str) -> None:
    table = table_in(env, catalog, mode)
    add_deletes(table, [equality_deletes(table, pa.table({"id": pa.array([4], pa.int64())}), [1])])
    assert source(env, id=[5]).merge_into(iceberg("db.t", catalog), "id", "delete", "ignore")[:3] == (0, 0, 1)
    assert source(env, id=[4, 5, 6]).merge_into(iceberg("db.t", catalog), "id", "delete", "ignore")[:3] == (0, 0, 1)
    left = env.read_iceberg("db.t", catalog).select("id").to_arrow()["id"].to_pylist()
    assert sorted(left) == [0, 1, 2, 3, 7, 8, 9, 10, 11]


@pytest.mark.parametrize("mode", MODES)
def test_an_evolved_table(env: Environment, catalog: Any, mode: str) -> None:
    table = table_in(env, catalog, mode, pa.table({"id": pa.array([1, 2], pa.int32()), "old": ["a", "b"]}))
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column("old", "new")
        update.add_column("more", LongType())
    changes = source(env, id=[2, 1 << 40], more=[20, 30])
    assert changes.merge_into(iceberg("db.t", catalog), "id")[:3] == (1, 1, 0)
    assert rows_of(catalog) == [(1, "a", None), (2, "b", 20), (1 << 40, None, 30)]


@pytest.mark.parametrize("mode", MODES)
def test_two_rows_of_the_source_for_one_are_an_error(env: Environment, catalog: Any, mode: str) -> None:
    table = table_in(env, catalog, mode)
    with pytest.raises(DataError, match="2 rows of the source have the key id=3"):
        source(env, id=[3, 3], v=["x", "y"]).merge_into(iceberg("db.t", catalog), "id")
    assert source(env, id=[33, 33], v=["x", "y"]).merge_into(iceberg("db.t", catalog), "id")[:3] == (2, 0, 0)
    assert len(catalog.load_table("db.t").metadata.snapshots) == 2
    assert len(files_of(table)) == 2 + len(data_files(table)) - 2


@pytest.mark.parametrize("mode", MODES)
def test_nothing_to_do_makes_no_snapshot(env: Environment, catalog: Any, mode: str) -> None:
    table = table_in(env, catalog, mode)
    known = table.current_snapshot().snapshot_id
    assert source(env, id=[99]).merge_into(iceberg("db.t", catalog), "id", "delete", "ignore") == (0, 0, 0, 0, known)
    assert len(catalog.load_table("db.t").metadata.snapshots) == 1
    assert len(files_of(table)) == 1


def other_writer(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    """Let another writer change the table before the first commit of a merge."""
    commit, calls = table_commit._commit, []

    def late(*args: Any) -> int:
        if not calls:
            calls.append(1)
            change()
        return commit(*args)

    monkeypatch.setattr(table_commit, "_commit", late)


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_other_writers_that_cannot_match_do_no_harm(
    env: Environment, catalog: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_in(env, catalog, mode)
    more = pa.table({"id": [100, 200], "v": ["x", "y"], "p": [0, 0]})
    other_writer(monkeypatch, lambda: catalog.load_table("db.t").append(more))
    # the commit reads the table before the other one is there: it is refused, and tried again
    assert source(env, id=[2, 50], v=["B", "N"]).merge_into(iceberg("db.t", catalog), "id")[:3] == (1, 1, 0)
    assert len(rows_of(catalog)) == 15
    assert table.refresh().scan(row_filter="id = 2").to_arrow()["v"].to_pylist() == ["B"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", ["append", "delete"])
def test_rows_of_other_writers_that_might_match_are_told(
    env: Environment, catalog: Any, mode: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_in(env, catalog, mode)
    more = pa.table({"id": [3], "v": ["x"], "p": [0]})
    changes = {
        "append": lambda: catalog.load_table("db.t").append(more),
        "delete": lambda: catalog.load_table("db.t").delete("id = 11"),
    }
    other_writer(monkeypatch, changes[change])
    with pytest.raises(JobExecutionError, match="another writer has changed"):
        source(env, id=[2, 50], v=["B", "N"]).merge_into(iceberg("db.t", catalog), "id")
    assert {row[1] for row in rows_of(catalog)} == ({"a", "x"} if change == "append" else {"a"})
    assert len(files_of(table)) == 2


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_random_merges_agree_with_a_plain_one(env: Environment, catalog: Any, mode: str) -> None:
    chance = random.Random(11)
    there = {key: (chance.randrange(100), key % 4) for key in range(60)}
    rows = {"id": list(there), "v": [v for v, _ in there.values()], "p": [p for _, p in there.values()]}
    table_in(env, catalog, mode, pa.table(rows), partition_by=["truncate(10, id)", "p"])
    for trial in range(8):
        new = {key: (1000 + trial, chance.randrange(6)) for key in chance.sample(range(80), 15)}
        matched = {
            "update": "update",
            "delete": "delete",
            "ignore": "ignore",
            "some": {"delete": True, "where": col("target.v") % 2 == 0},
        }
        word = chance.choice([*matched])
        unmatched, alone = chance.choice(["insert", "ignore"]), chance.choice(["ignore", "ignore", "delete"])
        if alone == "delete":
            new |= dict.fromkeys(chance.sample(sorted(there), len(there) * 3 // 4), (1000 + trial, 1))
        values = {"id": list(new), "v": [v for v, _ in new.values()], "p": [p for _, p in new.values()]}
        changes = env.from_arrow(pa.table({name: pa.array(each, pa.int64()) for name, each in values.items()}))
        result = changes.merge_into(iceberg("db.t", catalog), "id", matched[word], unmatched, alone)
        before = dict(there)
        for key, row in before.items():
            if key in new and (word == "delete" or (word == "some" and row[0] % 2 == 0)):
                del there[key]
            elif key in new and word == "update":
                there[key] = new[key]
            elif key not in new and alone == "delete":
                del there[key]
        if unmatched == "insert":
            there |= {key: row for key, row in new.items() if key not in before}
        assert rows_of(catalog) == sorted((key, *row) for key, row in there.items()), trial
        assert result.rows_inserted == (len(new.keys() - before.keys()) if unmatched == "insert" else 0)
        assert result.rows_deleted == len(before.keys() - there.keys())


@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES)
def test_polars_reads_what_merges_leave(env: Environment, catalog: Any, mode: str) -> None:
    pytest.importorskip("polars")
    table_in(env, catalog, mode, partition_by=["bucket(2, id)"])
    for trial in range(3):
        source(env, id=[trial, 5, 30 + trial], v=[f"v{trial}"] * 3).merge_into(iceberg("db.t", catalog), "id")
    # in a process of its own, since its threads stay
    script = "import polars, sys; print(polars.scan_iceberg(sys.argv[1]).collect().rows())"
    command = [sys.executable, "-c", script, catalog.load_table("db.t").metadata_location]
    settings = {**os.environ, "POLARS_ICEBERG_PLANNER": "pyiceberg"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True, timeout=60)
    assert sorted(ast.literal_eval(done.stdout), key=repr) == sorted(rows_of(catalog), key=repr)


def test_words(env: Environment, catalog: Any) -> None:
    table = table_in(env, catalog, "copy-on-write")
    with table.transaction() as transaction:
        transaction.set_properties({"write.merge.mode": "sometimes"})
    rows = source(env, id=[1])
    with pytest.raises(ConfigurationError, match=r"write\.merge\.mode is 'sometimes'"):
        rows.merge_into(iceberg("db.t", catalog), "id")
    with pytest.raises(PlanError, match="no such table"):
        rows.merge_into(iceberg("db.nothing", catalog), "id")
    for wrong in ("t", table):
        with pytest.raises(ConfigurationError, match="pass the name of a table"):
            rows.merge_into(iceberg(wrong, catalog), "id")
