"""Changed rows of snapshots: what came and went gives, from any snapshot on, the table as it is now."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from engine import Environment, col, iceberg
from engine.errors import ConfigurationError, PlanError
from tests.iceberg_tables.handmade import add_deletes, data_files, equality_deletes, position_deletes
from tests.sampling import first

NAMES = ("_change_type", "_commit_version", "_commit_timestamp")


def changes_of(env: Environment, catalog: Any, since: int | None = None) -> list[tuple[Any, ...]]:
    """Return word, snapshot and values of the changed rows."""
    found = env.read_changes(iceberg("db.t", catalog), since).to_arrow()
    assert found.column_names[-3:] == list(NAMES)
    names = [name for name in found.column_names if name not in NAMES]
    return sorted(
        ((row["_change_type"], row["_commit_version"], *map(repr, map(row.get, names))) for row in found.to_pylist()),
    )


def rows_of(env: Environment, catalog: Any, **which: Any) -> Counter[tuple[str, ...]]:
    """Return the rows of a snapshot as texts."""
    found = env.read_iceberg("db.t", catalog, **which).to_arrow()
    return Counter(tuple(map(repr, row.values())) for row in found.to_pylist())


def written(env: Environment, catalog: Any, rows: pa.Table, **options: Any) -> int:
    """Write rows; return the snapshot."""
    env.from_arrow(rows).write_iceberg("db.t", catalog, **options)
    return int(env.execute().outputs[0].facts["snapshot_id"])


def rows(*ids: int, v: int = 0) -> pa.Table:
    """Return rows with a nested column and nulls."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": [v if key % 4 else None for key in ids],
            "many": [[key, None] if key % 3 else None for key in ids],
        },
        schema=pa.schema([("id", pa.int64()), ("v", pa.int64()), ("many", pa.list_(pa.int64()))]),
    )


@pytest.mark.parametrize("mode", first("merge-on-read", "copy-on-write"))
def test_changes_of_each_call(env: Environment, catalog: Any, mode: str) -> None:
    properties = {"write.merge.mode": mode, "write.delete.mode": mode}
    first = written(env, catalog, rows(1, 2, 3), properties=properties)
    second = written(env, catalog, rows(5), mode="append")
    target = iceberg("db.t", catalog)
    third = env.from_arrow(rows(2, 6, v=9)).merge_into(target, "id").version
    fourth = env.from_arrow(pa.table({"id": [3]})).merge_into(target, "id", "delete", "ignore").version
    env.optimize(target, sort_by="id")
    last = written(env, catalog, rows(5), mode="overwrite")

    def told(word: str, snapshot: int, key: int, v: int = 0) -> tuple[Any, ...]:
        row = rows(key, v=v).to_pylist()[0]
        return (word, snapshot, *map(repr, row.values()))

    wanted = [
        *(told("insert", first, key) for key in (1, 2, 3)),
        told("insert", second, 5),
        told("delete", third, 2),
        *(told("insert", third, key, 9) for key in (2, 6)),
        told("delete", fourth, 3),
        told("delete", last, 1),
        *(told("delete", last, key, 9) for key in (2, 6)),
    ]
    assert changes_of(env, catalog) == sorted(wanted)
    assert changes_of(env, catalog, third) == sorted(each for each in wanted if each[1] in (fourth, last))
    assert changes_of(env, catalog, last) == []
    assert env.read_changes(target, second).filter(col("id") == 2).select("v").count() == 3


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_changes_from_any_snapshot_lead_to_the_present_rows(env: Environment, catalog: Any, mode: str) -> None:
    chance = random.Random(11)
    options = {"partition_by": ["bucket(3, id)"], "properties": {"write.merge.mode": mode}}
    written(env, catalog, rows(*range(20)), **options)
    for trial in range(6):
        ids = sorted(chance.sample(range(40), 8))
        match chance.choice(["append", "merge", "overwrite_partitions", "delete"]):
            case "merge":
                env.from_arrow(rows(*ids, v=trial)).merge_into(iceberg("db.t", catalog), "id")
            case "delete":
                env.from_arrow(pa.table({"id": ids})).merge_into(iceberg("db.t", catalog), "id", "delete", "ignore")
            case word:
                free = ids if word != "append" else [key + 100 * (trial + 1) for key in ids]
                written(env, catalog, rows(*free, v=trial), mode=word)
    snapshots = [each.snapshot_id for each in catalog.load_table("db.t").metadata.snapshots]
    for since in (None, snapshots[3]):
        found = Counter() if since is None else rows_of(env, catalog, snapshot_id=since)
        by_snapshot: dict[int, list[Counter[tuple[str, ...]]]] = {}
        for word, snapshot, *values in changes_of(env, catalog, since):
            pair = by_snapshot.setdefault(snapshot, [Counter(), Counter()])
            pair[word == "insert"][tuple(values)] += 1
        for went, came in (by_snapshot[each] for each in snapshots if each in by_snapshot):
            assert not went & came
            assert not went - found
            found = found - went + came
        assert found == rows_of(env, catalog)


def test_deletes_of_others_and_columns_that_came_later(env: Environment, catalog: Any) -> None:
    first = written(env, catalog, rows(1, 2, 3, 4))
    table = catalog.load_table("db.t")
    (path,) = data_files(table)
    add_deletes(table, [position_deletes(table, [(path, 0)])])
    keys = pa.table({"id": pa.array([2, 3], pa.int64())})
    add_deletes(table, [equality_deletes(table, keys, [1])])
    with table.update_schema() as update:
        update.rename_column("v", "value").delete_column("many")
    found = changes_of(env, catalog, first)
    assert sorted((word, *values) for word, _, *values in found) == [
        ("delete", "1", "0"),
        ("delete", "2", "0"),
        ("delete", "3", "0"),
    ]
    assert len({snapshot for _, snapshot, *_ in found}) == 2


def test_snapshots_that_are_not_there(env: Environment, catalog: Any) -> None:
    first = written(env, catalog, rows(1))
    second = written(env, catalog, rows(2), mode="append")
    target = iceberg("db.t", catalog)
    with pytest.raises(PlanError, match=rf"no snapshot 7; the last ones: {first}, {second}"):
        env.read_changes(target, 7)
    with pytest.raises(ConfigurationError, match="it is the number of a snapshot"):
        env.read_changes(target, "7")  # type: ignore[arg-type]
    catalog.load_table("db.t").maintenance.expire_snapshots().by_id(first).commit()
    with pytest.raises(PlanError, match=rf"the snapshot before {second} has expired.*since={second}"):
        env.read_changes(target)
    assert changes_of(env, catalog, second) == []
