"""SentRows: a writer in front of another one, which gets the rows in the types that a driver keeps as they are.

Values that a database would change although their type fits are errors: NaN in SQLite, which stores null for it, and
dates and timestamps before PostgreSQL's calendar, which the driver writes as ones of the far future.

Held by: tests/databases/test_written_types.py
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from engine.databases.database_connection import SQLITE
from engine.databases.database_types import FIRST_DAY
from engine.databases.written_table import WrittenTable
from engine.databases.written_types import sent_type
from engine.errors import DataError
from engine.formats.sink_format import SinkWriter

_DAY_US = 86_400_000_000


class SentRows:
    """Casts and checks batches."""

    is_full = False

    def __init__(
        self, written: WrittenTable, schema: pa.Schema, open_writer: Callable[[pa.Schema], SinkWriter]
    ) -> None:
        self._written = written
        self._is_sqlite = written.dialect == SQLITE
        self._schema = pa.schema(
            [pa.field(field.name, sent_type(field.name, field.type, written.dialect).sent) for field in schema]
        )
        self._writer = open_writer(self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows. Raises: DataError for values that would change."""
        self._writer.write(self._sent(batch))

    def _sent(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        for field, values in zip(self._schema, batch.columns, strict=True):
            try:
                sent = values if values.type == field.type else values.cast(field.type)
                self._check(sent.flatten() if pa.types.is_list(field.type) else sent)
            except (pa.ArrowException, DataError) as error:
                raise DataError(
                    f"write_database: table {self._written.shown}: column '{field.name}' has a value that the database"
                    f" does not keep as it is: {error}"
                ) from None
            columns.append(sent)
        return pa.record_batch(columns, schema=self._schema)

    def _check(self, values: pa.Array) -> None:
        data_type = values.type
        if self._is_sqlite:
            if pa.types.is_floating(data_type) and pc.any(pc.is_nan(values)).as_py():
                raise DataError("NaN, for which SQLite stores null; fill_nan(None) makes it null here")
            return
        is_date = pa.types.is_date32(data_type)
        if not (is_date or pa.types.is_timestamp(data_type)):
            return
        lowest = pc.min(values.view(pa.int32() if is_date else pa.int64())).as_py()
        if lowest is not None and lowest < FIRST_DAY * (1 if is_date else _DAY_US):
            raise DataError("a day before the year -4712, with which PostgreSQL's calendar begins")

    def finish(self) -> tuple[int, int, str]:
        """Complete the rows; return (rows, bytes, "")."""
        return self._writer.finish()

    def abort(self) -> None:
        """Remove what was written."""
        self._writer.abort()
