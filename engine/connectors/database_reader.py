"""DatabaseReader: a task's ranges of a database as record batches.

    range ──► SELECT wanted columns … WHERE range AND filters ──► driver's stream ──► types of the plan ──► filters that
                                                                                                         are left

The driver gives batches while the database sends rows; PostgreSQL's are as large as the reader's reservation allows,
1 MB at most, SQLite's have ``batch_rows`` rows. Each range is a statement of its own, with its own view of the data.

Held by: tests/connectors/test_database.py
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from engine.connectors.database_connection import POSTGRESQL, connected, dialect_of
from engine.connectors.database_queries import pushed, range_text, select_text
from engine.errors import DataError
from engine.expressions.evaluate import evaluate
from engine.graph.expression import columns_of, conjunction
from engine.graph.source_spec import FormatSource, SourceSplit
from engine.memory.budget import Kind, Role, process_budget
from engine.records.batch_limits import ARROW_ROWS_MAX, BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.bounded_batches import bounded_batches
from engine.records.plain_types import plain_batch

_BATCH_BYTES_MIN: Final = 64 << 10


class DatabaseReader:
    """Reads ranges of a table or a query."""

    bad_rows = 0
    pruned_groups = 0

    def __init__(self, spec: FormatSource, splits: Sequence[SourceSplit]) -> None:
        self._spec = spec
        self._splits = splits
        self._options: dict[str, Any] = dict(spec.options)
        self._schema = pa.ipc.read_schema(pa.py_buffer(spec.file_schema_ipc))
        self._dialect = dialect_of(self._options["uri"])
        self._conditions, rest = pushed(spec.predicate, self._schema, self._dialect)
        self._rest = conjunction(rest) if rest else None
        #: columns that are asked for, those of filters last
        self._names = list(dict.fromkeys([*spec.columns, *(columns_of(self._rest) if self._rest else ())]))
        self._rows_max = int(self._options.get("batch_rows") or BATCH_ROWS_MAX)
        self._member = process_budget.reserve(Kind.ARROW, role=Role.READER)
        self._running: Generator[pa.RecordBatch, None, None] | None = None
        self.bytes_read = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Return the rows of all ranges."""
        self._running = self._batches()
        return self._running

    def _batches(self) -> Generator[pa.RecordBatch, None, None]:
        rows_max = min(self._rows_max, ARROW_ROWS_MAX)
        with connected(self._options["uri"], has_password=self._options["has_password"]) as connection:
            for split in self._splits:
                for batch in self._rows(connection, split):
                    self.bytes_read += batch.nbytes
                    kept = batch if self._rest is None else batch.filter(evaluate(self._rest, batch))
                    yield from bounded_batches(kept.select(list(self._spec.columns)), rows_max)

    def _rows(self, connection: Any, split: SourceSplit) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a range, with the types of the plan."""
        column = self._options["partition_on"]
        limits = range_text(column, self._schema.field(column).type, split) if column else ""
        where = [*([limits] if limits else []), *self._conditions]
        text = select_text(self._options["from"], self._schema, self._names, where, self._dialect)
        is_first = self._dialect != POSTGRESQL
        with connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**self._driver_options())
            cursor.execute(text)
            with cursor.fetch_record_batch() as reader:
                for batch in reader:
                    # The first row of SQLite's is the one that says the types.
                    yield self._typed(batch.slice(1) if is_first else batch)
                    is_first = False

    def _driver_options(self) -> dict[str, str]:
        if self._dialect != POSTGRESQL:
            return {"adbc.sqlite.query.batch_rows": str(self._rows_max)}
        size = min(BATCH_BYTES_MAX, max(_BATCH_BYTES_MIN, self._member.part_bytes))
        return {"adbc.postgresql.batch_size_hint_bytes": str(size)}

    def _typed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._names:
            return batch
        columns = []
        for name, values in zip(self._names, plain_batch(batch).columns, strict=True):
            data_type = self._schema.field(name).type
            stored = values.storage if isinstance(values, pa.ExtensionArray) else values
            try:
                columns.append(stored if stored.type == data_type else stored.cast(data_type))
            except pa.ArrowException as error:
                raise DataError(
                    f"database {self._options['uri']}: column '{name}' has a value that is no {data_type} ({error});"
                    " cast it in the query, NaN and infinity to double precision"
                ) from None
        return pa.record_batch(columns, schema=pa.schema([self._schema.field(name) for name in self._names]))

    def close(self) -> None:
        """Close the connection, in the middle of a statement too."""
        self._member.close()
        running, self._running = self._running, None
        if running is not None:
            running.close()
