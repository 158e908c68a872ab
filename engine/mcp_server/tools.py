"""Tools: what an agent may ask of the tables that it was given. It can change nothing.

    list_tables()           names, with their columns
    describe(table)         a row about each column: type, nulls, lowest and highest value
    explain(sql)            the plan, without running it
    query(sql, limit)       the first rows, as JSON

    limits    ROWS_MAX rows, TEXT_MAX characters of an answer, and a time after which the job is cancelled

Statements that are no queries are refused, but SHOW TABLES and DESCRIBE, and so are those that name files, unless
``sql.files.enabled``. An error of a statement is the tool's answer, from which an agent corrects it.

Held by: tests/mcp_server/test_tools.py
"""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any, Final

from engine import __version__
from engine.errors import ConfigurationError, EngineError, PlanError
from engine.statements import statements as kinds
from engine.statements.query import is_change

if TYPE_CHECKING:
    from engine.api.data_set import DataSet
    from engine.statements.session import StatementSession

ROWS_MAX: Final = 1000
TEXT_MAX: Final = 100_000
#: statements that change nothing
_READING: Final = kinds.Query | kinds.Summarize | kinds.ShowTables | kinds.Describe
_SAYS: Final = (
    "Tables of Drey, a batch engine. Call list_tables first. query takes one SELECT in a dialect like DuckDB's and "
    "returns at most limit rows, so aggregate and filter in SQL."
)


class Tools:
    """The tools over the tables of a session."""

    def __init__(self, session: StatementSession, timeout_s: float) -> None:
        self._session = session
        self._timeout_s = timeout_s

    def list_tables(self) -> str:
        """Return the names of all tables, and the columns of the registered ones, as JSON."""
        tables = self._session.environment.tables
        found = {
            name: {field.name: str(field.type) for field in tables[name].schema} if name in tables else {}
            for name in self._session.table_names()
        }
        return json.dumps(found, ensure_ascii=False)

    def describe(self, table: str) -> str:
        """Return a row about each column of a table, as JSON: type, nulls, lowest and highest value."""
        types = {field.name: str(field.type) for field in self._session.schema_of(table)}
        quoted = ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))
        data = self._session.query(f"SELECT * FROM {quoted}")  # noqa: S608 - a name of a table, in quotes
        rows = json.loads(self._first(data.describe(), ROWS_MAX))
        return json.dumps({"types": types, **rows}, ensure_ascii=False)

    def explain(self, sql: str) -> str:
        """Return the plan of a query without running it."""
        return self._query(sql).explain()[:TEXT_MAX]

    def query(self, sql: str, limit: int = 100) -> str:
        """Run one SELECT; return its columns and first rows as JSON. "more": there are further rows."""
        if not 1 <= limit <= ROWS_MAX:
            raise PlanError(f"limit {limit}: it is from 1 to {ROWS_MAX}; aggregate in SQL in place of more rows")
        return self._first(self._query(sql), limit)

    def _query(self, sql: str) -> DataSet:
        one = kinds.split(sql)
        statement = kinds.statement(one[0]) if len(one) == 1 else None
        if not isinstance(statement, _READING) or is_change(sql, self._session.dialect):
            raise PlanError("this server runs one query at a time, SHOW TABLES, DESCRIBE name, and no other statements")
        data = self._session.rows(statement)
        assert data is not None, "a query has rows"
        return data

    def _first(self, data: DataSet, limit: int) -> str:
        is_late = threading.Event()
        rows: list[dict[str, Any]] = []
        with data.limit(limit + 1).to_batches() as batches:

            def stop() -> None:
                is_late.set()
                batches.close()

            timer = threading.Timer(self._timeout_s, stop)
            timer.start()
            try:
                for batch in batches:
                    rows += batch.to_pylist()
            except EngineError:
                if is_late.is_set():
                    said = f"cancelled after {self._timeout_s:g} s; ask for less (flink-run mcp --timeout)"
                    raise PlanError(said) from None
                raise
            finally:
                timer.cancel()
                timer.join()
        return _shown(data.columns, rows[:limit], has_more=len(rows) > limit)


def _shown(columns: list[str], rows: list[dict[str, Any]], *, has_more: bool) -> str:
    """Return rows as JSON, as many as an answer takes."""
    texts, size = [], 0
    for row in rows:
        texts.append(json.dumps(row, default=str, ensure_ascii=False))
        size += len(texts[-1])
        if size > TEXT_MAX:
            texts.pop()
            has_more = True
            break
    head = json.dumps(columns, ensure_ascii=False)
    return f'{{"columns": {head}, "rows": [{", ".join(texts)}], "more": {json.dumps(has_more)}}}'


def server_of(tools: Tools) -> Any:
    """Return a server of the protocol with the tools. Raises: ConfigurationError without the extra."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError as error:
        raise ConfigurationError(f"mcp needs the extra: pip install 'drey-engine[mcp]' ({error})") from None
    server = MCPServer("drey", instructions=_SAYS, version=__version__, log_level="WARNING")

    def told(call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except EngineError as error:
            raise ToolError(error.shown()) from None

    # The loop that speaks the protocol goes on while a query runs.
    @server.tool(description=tools.list_tables.__doc__)
    async def list_tables() -> str:
        return str(await asyncio.to_thread(told, tools.list_tables))

    @server.tool(description=tools.describe.__doc__)
    async def describe(table: str) -> str:
        return str(await asyncio.to_thread(told, tools.describe, table))

    @server.tool(description=tools.explain.__doc__)
    async def explain(sql: str) -> str:
        return str(await asyncio.to_thread(told, tools.explain, sql))

    @server.tool(description=tools.query.__doc__)
    async def query(sql: str, limit: int = 100) -> str:
        return str(await asyncio.to_thread(told, tools.query, sql, limit))

    return server
