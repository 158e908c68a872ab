"""What an agent may ask: by the tools, and by a client of the protocol over a process's pipes."""

import asyncio
import json
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine import Environment
from engine.errors import PlanError
from engine.mcp_server import tools as module
from engine.mcp_server.tools import Tools
from engine.statements.session import StatementSession


@pytest.fixture
def tools():
    with Environment(config={"sql.files.enabled": False, "parallelism.default": 1}) as env:
        env.register("sales", env.from_arrow(pa.table({"shop": ["a", "b", "a"], "price": [1.5, 2.0, 3.0]})))
        env.register("slow", env.from_arrow(pa.table({"n": range(100_000)}), rate_limit=100.0))
        yield Tools(StatementSession(env), 60.0)


def test_tables_and_their_columns(tools):
    assert json.loads(tools.list_tables())["sales"] == {"shop": "string", "price": "double"}
    found = json.loads(tools.describe("sales"))
    assert found["types"] == {"shop": "string", "price": "double"} and found["rows"]
    with pytest.raises(PlanError, match="there is no such table"):
        tools.describe("nothing")


def test_the_first_rows_of_a_query(tools):
    found = json.loads(tools.query("SELECT shop, sum(price) AS total FROM sales GROUP BY shop ORDER BY shop"))
    rows = [{"shop": "a", "total": 4.5}, {"shop": "b", "total": 2.0}]
    assert found == {"columns": ["shop", "total"], "rows": rows, "more": False}
    assert json.loads(tools.query("SELECT price FROM sales ORDER BY price", 2)) == {
        "columns": ["price"], "rows": [{"price": 1.5}, {"price": 2.0}], "more": True,
    }  # fmt: skip
    assert "arrow source" in tools.explain("SELECT * FROM sales")


def test_statements_that_say_which_tables_there_are(tools):
    assert {"name": "sales"} in json.loads(tools.query("SHOW TABLES"))["rows"]
    found = json.loads(tools.query("DESCRIBE sales"))
    assert found["rows"][0] == {"name": "shop", "type": "string", "nullable": True}
    with pytest.raises(PlanError, match="SHOW TABLES"):
        tools.query("SELECT * FROM '/etc/passwd'")


def test_an_answer_has_a_limit(tools, monkeypatch):
    with pytest.raises(PlanError, match="from 1 to 1000"):
        tools.query("SELECT 1", 1001)
    monkeypatch.setattr(module, "TEXT_MAX", 40)
    found = json.loads(tools.query("SELECT shop, price FROM sales ORDER BY price"))
    assert (len(found["rows"]), found["more"]) == (1, True)


def test_a_query_that_takes_too_long_is_cancelled(tools):
    tools._timeout_s = 0.3
    with pytest.raises(PlanError, match=r"cancelled after 0\.3 s"):
        tools.query("SELECT max(n) FROM slow")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE sales",
        "SELECT 1; SELECT 2",
        "DELETE FROM sales",
        "WITH a AS (SELECT 1 AS n) DELETE FROM sales",
        "COPY sales TO '/tmp/x' (FORMAT csv)",
        "EXPLAIN ANALYZE SELECT 1",
        "SUMMARIZE WITH a AS (SELECT 1 AS n) DELETE FROM sales",
        "SELECT * FROM '/etc/passwd'",
        'SELECT * FROM delta."/etc"',
        "",
    ],
)
def test_what_is_no_query_of_tables_is_refused(tools, text):
    for call in (tools.query, tools.explain):
        with pytest.raises(PlanError):
            call(text)
    assert "sales" in tools._session.environment.tables


@pytest.mark.processes
def test_an_agent_asks_over_the_protocol(tmp_path):
    mcp = pytest.importorskip("mcp")
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "t.parquet")
    arguments = ["-m", "engine.cli.main", "mcp", "--table", f"t={tmp_path / 't.parquet'}"]
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def ask():
        from mcp.client.stdio import stdio_client

        async with stdio_client(server) as pipes, mcp.ClientSession(*pipes) as session:
            await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            good = await session.call_tool("query", {"sql": "SELECT sum(n) AS s FROM t"})
            bad = await session.call_tool("query", {"sql": "SELECT nope FROM t"})
            return names, good, bad

    names, good, bad = asyncio.run(asyncio.wait_for(ask(), 60))
    assert names == ["list_tables", "describe", "explain", "query"]
    assert json.loads(good.content[0].text)["rows"] == [{"s": 3}]
    assert bad.is_error and "no column nope (there are n)" in bad.content[0].text
