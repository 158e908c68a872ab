"""DatabaseReader: a task's ranges of a database as record batches.

    range ──► SELECT wanted columns … WHERE range AND filters ──► driver's stream ──► types of the plan ──► filters that
                                                                                                         are left

The driver gives batches while the database sends rows; PostgreSQL's are as large as the reader's reservation allows,
1 MB at most, SQLite's have ``batch_rows`` rows. Each range is a statement of its own; all of a job see
PostgreSQL in one state (``postgresql_state``).

Held by: tests/databases/test_database.py
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.databases.database_connection import SQLITE, STANDARD, connected
from engine.databases.database_statement import DatabaseStatement
from engine.databases.database_types import typed
from engine.databases.postgresql_state import enter
from engine.errors import DataError
from engine.expressions.evaluate import evaluate
from engine.graph.source_spec import FormatSource, SourceSplit
from engine.memory.budget import Kind, Role, process_budget
from engine.records.batch_limits import ARROW_ROWS_MAX, BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.bounded_batches import bounded_batches
from engine.records.plain_types import plain_batch

if TYPE_CHECKING:
    from engine.databases.adbc_connection import AdbcConnection

_BATCH_BYTES_MIN: Final = 64 << 10


class DatabaseReader:
    """Reads ranges of a table or a query."""

    bad_rows = 0
    pruned_groups = 0

    def __init__(self, spec: FormatSource, splits: Sequence[SourceSplit]) -> None:
        self._spec = spec
        self._splits = splits
        self._options: dict[str, Any] = dict(spec.options)
        self._statement = DatabaseStatement(spec)
        self._rows_max = int(self._options.get("batch_rows") or ARROW_ROWS_MAX)
        self._member = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self._running: Generator[pa.RecordBatch, None, None] | None = None
        self.bytes_read = 0
        #: name of the state in which PostgreSQL is read, "" for none
        self._state = ""

    def read_states(self, names: Mapping[str, str]) -> None:
        """Read all ranges in the state that the job holds."""
        self._state = names.get(self._options["uri"], "")

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of all ranges."""
        self._running = self._batches()
        return self._running

    def _batches(self) -> Generator[pa.RecordBatch, None, None]:
        rows_max, rest = min(self._rows_max, ARROW_ROWS_MAX), self._statement.rest
        uri, has_password = self._options["uri"], self._options["has_password"]
        in_state = bool(self._state)
        with connected(uri, has_password=has_password, in_transaction=in_state, asks_types=True) as connection:
            if in_state:
                with connection.cursor() as cursor:
                    enter(cursor, uri, self._state)
            for split in self._splits:
                for batch in self._rows(connection, split):
                    self.bytes_read += batch.nbytes
                    kept = batch if rest is None else batch.filter(evaluate(rest, batch))
                    yield from bounded_batches(kept.select(list(self._spec.columns)), rows_max)

    def _rows(self, connection: AdbcConnection, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range, with the types of the plan."""
        is_first = self._statement.dialect == SQLITE
        with connection.cursor() as cursor:
            cursor.set_options(**self._driver_options())
            cursor.execute(self._statement.text(split))
            for batch in cursor.reader():
                # The first row of SQLite's is the one that says the types.
                yield self._typed(batch.slice(1) if is_first else batch)
                is_first = False

    def _driver_options(self) -> dict[str, str]:
        if self._statement.dialect == SQLITE:
            return {"adbc.sqlite.query.batch_rows": str(min(self._rows_max, BATCH_ROWS_MAX))}
        if self._statement.dialect == STANDARD:
            return {}
        size = min(BATCH_BYTES_MAX, max(_BATCH_BYTES_MIN, self._member.part_bytes))
        return {"adbc.postgresql.batch_size_hint_bytes": str(size)}

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        names = self._statement.names
        if not names:
            return batch
        columns = []
        for name, values in zip(names, plain_batch(batch).columns, strict=True):
            try:
                columns.append(typed(values, self._statement.schema.field(name).type))
            except DataError as error:
                raise DataError(f"database {self._options['uri']}: column '{name}' {error}") from None
        return pa.record_batch(columns, schema=pa.schema([self._statement.schema.field(name) for name in names]))

    def close(self) -> None:
        """Close the connection, in the middle of a statement too."""
        self._member.close()
        running, self._running = self._running, None
        if running is not None:
            running.close()
