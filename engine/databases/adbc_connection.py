"""AdbcConnection: a connection of an ADBC driver, and statements on it.

    with connection.cursor() as cursor:
        cursor.execute("SELECT ...")
        with cursor.reader() as batches: ...      or cursor.rows(), for small results

This is what the engine needs of the driver manager's own ``dbapi``, which imports pandas and Polars where they are
installed: 0.4 s of processor time and 60 MB in each process that opens a connection.

Held by: tests/databases/test_adbc_connection.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import adbc_driver_manager
import pyarrow as pa
from adbc_driver_manager._lib import _blocking_call
from adbc_driver_manager._reader import AdbcRecordBatchReader

#: the base of all errors of drivers
Error = adbc_driver_manager.Error


class AdbcConnection:
    """A connection; ``close`` ends a transaction that is not committed."""

    def __init__(self, database: adbc_driver_manager.AdbcDatabase, *, in_transaction: bool, is_shared: bool) -> None:
        """Open a connection. is_shared: others use the database too, so that it outlives this connection."""
        self._database = None if is_shared else database
        self._connection: adbc_driver_manager.AdbcConnection | None = None
        self._in_transaction = in_transaction
        try:
            self._connection = adbc_driver_manager.AdbcConnection(database)
            if in_transaction:
                self._connection.set_autocommit(False)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def cursor(self) -> Iterator[AdbcCursor]:
        """Have a statement, which is closed then."""
        assert self._connection is not None, "a connection that is closed"
        cursor = AdbcCursor(adbc_driver_manager.AdbcStatement(self._connection))
        try:
            yield cursor
        finally:
            cursor.close()

    def commit(self) -> None:
        """Commit the transaction, and begin the next one."""
        assert self._connection is not None and self._in_transaction
        self._connection.commit()

    def close(self) -> None:
        """Close the connection; idempotent."""
        connection, self._connection = self._connection, None
        database, self._database = self._database, None
        try:
            if connection is not None:
                connection.close()
        finally:
            if database is not None:
                database.close()


class AdbcCursor:
    """A statement, which is sent any number of times; a result ends with the next one."""

    def __init__(self, statement: adbc_driver_manager.AdbcStatement) -> None:
        self._statement = statement
        self._result: Any = None

    def set_options(self, **options: str) -> None:
        """Set options of the driver."""
        self._statement.set_options(**options)

    def execute(self, text: str) -> None:
        """Send a statement. Its rows come with ``reader`` or ``rows``."""
        self._clear()
        self._statement.set_sql_query(text)
        handle, _ = self._interruptible(self._statement.execute_query)
        self._result = handle

    def reader(self) -> AdbcRecordBatchReader:
        """Return the batches of the result, which end with the cursor."""
        if not isinstance(self._result, AdbcRecordBatchReader):
            self._result = AdbcRecordBatchReader._import_from_c(self._result.address)
        return self._result

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rest of a small result as rows of Python values."""
        table: pa.Table = self._interruptible(self.reader().read_all)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def schema_of(self, text: str) -> pa.Schema:
        """Return the columns of a query, which is not run."""
        self._clear()
        self._statement.set_sql_query(text)
        return pa.schema(self._interruptible(self._statement.execute_schema))

    def ingest(self, table: str, rows: pa.RecordBatchReader, *, schema: str = "", is_temporary: bool = False) -> int:
        """Add rows to a table, of the connection alone and made where it is missing, or one that is there.

        Returns: the number of rows, -1 where the driver does not say it.
        """
        self._clear()
        modes = adbc_driver_manager
        options = {modes.INGEST_OPTION_TARGET_TABLE: table, modes.INGEST_OPTION_MODE: modes.INGEST_OPTION_MODE_APPEND}
        if schema:
            options[modes.StatementOptions.INGEST_TARGET_DB_SCHEMA.value] = schema
        if is_temporary:
            options[modes.INGEST_OPTION_MODE] = "adbc.ingest.mode.create_append"
            options[modes.StatementOptions.INGEST_TEMPORARY.value] = "true"
        self._statement.set_options(**options)
        self._statement.bind_stream(rows)
        count: int = self._interruptible(self._statement.execute_update)
        return count

    def _interruptible(self, call: Callable[[], Any]) -> Any:
        """Call the driver; an interrupt of the main thread cancels what it does."""
        return _blocking_call(call, (), {}, self._statement.cancel)

    def _clear(self) -> None:
        result, self._result = self._result, None
        if isinstance(result, AdbcRecordBatchReader):
            result.close()
        elif result is not None:
            result.release()

    def close(self) -> None:
        """End the statement, and a result that is still read."""
        self._clear()
        self._statement.close()
