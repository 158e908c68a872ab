"""OrderCheck: whether rows come in the order that their writer promises.

    order = OrderCheck(("a", "b")) ─► order.look(batch)*      DataError at the first row that comes too late

Rows are compared with the row before them, column by column; the last row of a batch is kept for the next one. A null
is compared with nothing: where there are some the order is of no use later on (``records_layout``).

Held by: tests/spark/test_data_source.py
"""

from __future__ import annotations

import pyarrow as pa

from engine.errors import DataError
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of


class OrderCheck:
    """Args: names: of the columns by which rows are sorted, ascending; none: nothing is checked."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._last: pa.RecordBatch | None = None

    def look(self, batch: pa.RecordBatch) -> None:
        """Compare the rows of a batch with those before; DataError where one should have come earlier."""
        if not self._names or not batch.num_rows:
            return
        keys = batch.select(list(self._names))
        rows = keys if self._last is None else pa.concat_batches([self._last, keys])
        self._last = keys.slice(keys.num_rows - 1)
        is_equal, is_late = None, None
        for column in rows.columns:
            before, behind = column.slice(0, len(column) - 1), column.slice(1)
            falls = pc.fill_null(pc.greater(before, behind), scalar_of(False))
            here = falls if is_equal is None else pc.and_(is_equal, falls)
            is_late = here if is_late is None else pc.or_(is_late, here)
            same = pc.fill_null(pc.equal(before, behind), scalar_of(False))
            is_equal = same if is_equal is None else pc.and_(is_equal, same)
        assert is_late is not None
        if is_late.true_count:
            at = pc.index(is_late, scalar_of(True)).as_py()
            first, second = (rows.slice(at + step, 1).to_pylist()[0] for step in (0, 1))
            raise DataError(
                f"sortBy: rows of a task are not sorted by {', '.join(self._names)}: {second} comes behind {first}; "
                f"call sortWithinPartitions({', '.join(map(repr, self._names))}) before the write"
            )
