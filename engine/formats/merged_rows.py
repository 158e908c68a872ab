"""MergedRows: the rows that a merge writes into a file, and what it says of others in its columns.

    merged = MergedRows(schema)      of a file that is written; merged.schema has the columns of the table alone
    merged.left(batch)               the rows that are written: all but those that are deleted, and images of before
    merged.counts                    rows inserted, updated and deleted
    merged.deleted                   places of rows that are deleted, by their files, as Roaring bitmaps

Held by: tests/delta_tables/test_merge.py
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import pyarrow as pa

from engine.graph.merge_action import ACTION, COUNTED, DELETED, FILE, POSITION
from engine.records.arrow_functions import pc
from engine.records.kept_rows import kept_rows
from engine.records.plain_scalars import scalar_of

if TYPE_CHECKING:
    from pyroaring import BitMap64


class MergedRows:
    """See the module's text."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = pa.schema([field for field in schema if field.name not in (ACTION, FILE, POSITION)])
        self.counts = dict.fromkeys(COUNTED.values(), 0)
        self.deleted: dict[str, BitMap64] = {}
        self._has_places = POSITION in schema.names

    def left(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that are written, and note what becomes of the others."""
        actions = batch.column(ACTION)
        for action, name in COUNTED.items():
            self.counts[name] += pc.sum(pc.equal(actions, scalar_of(action, actions.type))).as_py() or 0
        if self._has_places:
            self._note_places(batch.column(FILE), batch.column(POSITION))
        rows = batch.select(self.schema.names)
        mask = pc.less(actions, scalar_of(DELETED, actions.type))
        return rows if mask.true_count == len(mask) else kept_rows(rows, mask)

    def _note_places(self, files: pa.Array, positions: pa.Array) -> None:
        from pyroaring import BitMap64

        encoded, places = pc.drop_null(files).dictionary_encode(), pc.drop_null(positions)
        for index, file in enumerate(encoded.dictionary.to_pylist()):
            of_file = places.filter(pc.equal(encoded.indices, scalar_of(index, encoded.indices.type)))
            numbers = array("Q", memoryview(of_file.buffers()[1])[: 8 * len(of_file)].tobytes())
            self.deleted[file] = self.deleted.get(file, BitMap64()) | BitMap64(numbers)
