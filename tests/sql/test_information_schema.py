"""The views of tables and columns, of registered data sets and attached catalogs; EXPLAIN as a query."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from engine import Environment, PlanError


def test_registered_tables_and_their_columns_are_rows() -> None:
    with Environment() as environment:
        environment.register("t", environment.from_arrow(pa.table({"k": [1], "s": ["a"]})))
        environment.register("v", environment.sql("SELECT k + 1.5 AS x FROM t"))
        tables = environment.sql("SELECT * FROM information_schema.tables ORDER BY table_name").to_arrow()
        assert [tuple(row.values()) for row in tables.to_pylist()] == [
            ("drey", "main", "t", "BASE TABLE"),
            ("drey", "main", "v", "VIEW"),
        ]
        query = "SELECT table_name, column_name, ordinal_position AS n, data_type FROM information_schema.columns"
        columns = environment.sql(f"{query} WHERE is_nullable = 'YES' ORDER BY 1, 3").to_arrow()
        assert [tuple(row.values()) for row in columns.to_pylist()] == [
            ("t", "k", 1, "BIGINT"),
            ("t", "s", 2, "VARCHAR"),
            ("v", "x", 1, "DECIMAL(21, 1)"),
        ]
        with pytest.raises(PlanError, match=r"no view information_schema.colums; did you mean columns\?"):
            environment.sql("SELECT * FROM information_schema.colums")


def test_tables_of_attached_catalogs_are_there(tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    with Environment() as environment:
        environment.attach("lake", str(tmp_path))
        catalog = environment.catalogs["lake"]
        catalog.create_namespace("sales")
        catalog.create_table("sales.orders", pa.schema([("id", pa.int64())]))
        rows = environment.sql("SELECT * FROM information_schema.tables").to_arrow().to_pylist()
        assert [tuple(row.values()) for row in rows] == [("lake", "sales", "orders", "BASE TABLE")]
        columns = environment.sql("SELECT column_name, data_type FROM information_schema.columns").to_arrow()
        assert columns.to_pylist() == [{"column_name": "id", "data_type": "BIGINT"}]


def test_explain_is_a_row_with_the_plan(environment: Environment) -> None:
    query = "SELECT k FROM t WHERE v > 10"

    def plan(text: str) -> str:
        (found,) = environment.sql(text).to_arrow()["plan"].to_pylist()
        return str(found)

    assert plan(f"EXPLAIN {query}") == environment.sql(query).explain()
    assert plan(f"EXPLAIN (FORMAT html) {query}").startswith("<details")
    vertices = json.loads(plan(f"EXPLAIN (FORMAT json, ANALYZE) {query}"))["vertices"]
    assert any(one["rows_out"] == 3 for vertex in vertices for one in vertex["operators"])
    assert "rows" in plan(f"EXPLAIN ANALYZE {query}")
    assert plan(f"EXPLAIN ({query})") == environment.sql(query).explain()
    with pytest.raises(PlanError, match=r"write EXPLAIN \(FORMAT json, ANALYZE\) query"):
        environment.sql(f"EXPLAIN (FORMAT json) {query}")
    with pytest.raises(PlanError, match="EXPLAIN: no option COSTS"):
        environment.sql(f"EXPLAIN (ANALYZE, COSTS) {query}")
    with pytest.raises(PlanError, match="line 1, column 16: no column kk"):
        environment.sql("EXPLAIN SELECT kk FROM t")
