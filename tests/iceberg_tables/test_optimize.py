"""Small files of a table are written together: it has the same rows, in fewer files and without deleted ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from engine import Environment, iceberg
from tests.iceberg_tables.handmade import add_deletes, data_files, position_deletes


def test_small_files_of_each_partition_become_one(env: Environment, catalog: Any) -> None:
    for first in range(0, 40, 10):
        rows = pa.table({"id": range(first, first + 10), "p": [k % 2 for k in range(10)]})
        env.from_arrow(rows).write_iceberg("db.t", catalog, mode="append", partition_by=["p"])
        env.execute()
    table = catalog.load_table("db.t")
    wanted = sorted(table.scan().to_arrow()["id"].to_pylist())
    result = env.optimize(iceberg("db.t", catalog))
    snapshot = table.refresh().current_snapshot()
    assert result == (8, 2, snapshot.snapshot_id)
    assert str(snapshot.summary.operation.value) == "replace"
    assert len(data_files(table)) == 2
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == wanted
    assert env.optimize(iceberg("db.t", catalog)) == (0, 0, snapshot.snapshot_id)


def test_deleted_rows_are_left_out_and_an_order_is_written(env: Environment, catalog: Any) -> None:
    env.from_arrow(pa.table({"id": [5, 3, 9, 1]})).write_iceberg("db.t", catalog)
    env.execute()
    table = catalog.load_table("db.t")
    add_deletes(table, [position_deletes(table, [(data_files(table)[0], 1)])])
    assert env.optimize(iceberg("db.t", catalog), sort_by="id")[:2] == (1, 1)
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [1, 5, 9]
    assert table.inspect.files().to_pylist()[0]["record_count"] == 3
