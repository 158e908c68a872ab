"""FunctionOutput: the rows that a function returns become batches of its schema.

output.appender          takes rows as they come (row_appender.pyx)
output.take()            RecordBatch of what it has; UserFunctionError names the guilty row where a value is unfit
output.appender.limit    rows that the next batch should have: one at first, then about BATCH_BYTES_MAX of them,
                         whatever a row weighs, and no more than come within LONG_S
"""

from __future__ import annotations

import time

import pyarrow as pa

from engine.functions.function_error import BadOutputError, FunctionPlace, UserFunctionError, unfit_value
from engine.functions.row_appender import RowAppender
from engine.records.batch_limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from engine.records.value_writer import array_of

#: rows of the first batch, before their size is known: each may be as large as memory allows
FIRST_ROWS = 1
#: limit of light rows in a batch between processes: each batch has a cost of its own
ROWS_MAX = 8 * BATCH_ROWS_MAX
_GROWTH = 8
#: seconds after which a slow function's rows are sent
LONG_S = 1.0


class FunctionOutput:
    """Makes batches of one schema."""

    def __init__(self, schema: pa.Schema, place: FunctionPlace, *, values_only: bool = False) -> None:
        self.schema = schema
        self._place = place
        self.appender = RowAppender(schema, FIRST_ROWS, values_only)
        self._taken_at = time.monotonic()

    def take(self) -> pa.RecordBatch:
        """Return the rows that were added, one at least, as a batch."""
        appender = self.appender
        try:
            batch = appender.finish()
        except Exception as error:
            raise self._find_bad_output(error) from error
        by_weight = BATCH_BYTES_MAX * batch.num_rows // max(1, batch.nbytes)
        now = time.monotonic()
        by_time = int(batch.num_rows * LONG_S / max(1e-6, now - self._taken_at))
        self._taken_at = now
        appender.limit = max(1, min(ROWS_MAX, max(appender.limit, batch.num_rows * _GROWTH), by_weight, by_time))
        return batch

    def _find_bad_output(self, error: Exception) -> UserFunctionError:
        """Return the error of the first row that has a value which fits its column not."""
        appender = self.appender
        found: list[tuple[int, BadOutputError]] = []
        for target in appender.targets:
            kept = target.unfit or []
            for row, item in enumerate(kept, appender.rows - len(kept)):
                try:
                    array_of([item], target.field)
                except Exception as unfit:
                    found.append((row, unfit_value(item, target.field, unfit)))
                    break
        if not found:
            return self._place.error(error)
        row, bad = min(found, key=lambda each: each[0])
        places = [place for number, place in appender.places if number == row]
        return self._place.error_at(bad, places[0] if places else (None,))
