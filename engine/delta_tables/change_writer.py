"""ChangeWriter: a file of the change data feed, beside the file whose rows it tells the changes of.

    changes.write(batch, actions) ...      rows that are as they were are left out
    changes.finish() -> bytes, 0 where there was no change, and is no file

Source: the Delta transaction log protocol, "Change Data Files".
Held by: tests/delta_tables/test_change_data.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from engine.graph.merge_action import DELETED, INSERTED, PREIMAGE, UPDATED
from engine.parquet.writer import ParquetWriter
from engine.records.arrow_functions import pc
from engine.records.kept_rows import kept_rows

_TYPE: Final = "_change_type"
#: words of the feed for actions
_WORDS: Final = {
    INSERTED: "insert",
    UPDATED: "update_postimage",
    DELETED: "delete",
    PREIMAGE: "update_preimage",
}


class ChangeWriter:
    """Writes one file."""

    def __init__(self, schema: pa.Schema, path: str) -> None:
        self._schema, self._path = schema.append(pa.field(_TYPE, pa.string())), path
        self._writer: ParquetWriter | None = None

    def write(self, batch: pa.RecordBatch, actions: pa.Array) -> None:
        """Append the rows of a batch that an action has changed."""
        places = pc.index_in(actions, value_set=pa.array(list(_WORDS), actions.type))
        words = pa.array(list(_WORDS.values()), pa.string()).take(places)
        rows = pa.RecordBatch.from_arrays([*batch.columns, words], schema=self._schema)
        if words.null_count:
            rows = kept_rows(rows, pc.is_valid(words))
        if not rows.num_rows:
            return
        if self._writer is None:
            self._writer = ParquetWriter(self._schema, self._path)
        self._writer.write(rows)

    def finish(self) -> int:
        """Complete the file; return its bytes."""
        if self._writer is None:
            return 0
        _, size_bytes, _ = self._writer.finish()
        return size_bytes

    def abort(self) -> None:
        """Close and remove the file; does nothing after ``finish``."""
        if self._writer is not None:
            self._writer.abort()
