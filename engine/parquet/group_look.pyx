"""GroupLook: a row group that is one batch, read with one call: the columns of its filter, the mask, the others' rows.

    look = GroupLook(reader, others, mask, sides, columns)
    look.read(source, chunks, chunks_of_others, rows) -> batch     None: no row is wanted
    look.width  look.width_of_others                   bytes of a row as they were decoded; 0.0: they were not

    looked at ──► mask ──► kept rows of both                       all that is the same for each row group of a file is
    others    ─────────────────┘                                   found out before

Row groups that are more than one batch, or have columns that pyarrow decodes, go through streams (``column_streams``).

Limits: columns that are decoded here; the mask is of all rows. Thread: one at a time.
Held by: tests/parquet/test_group_look.py
"""

cimport cython
from libc.stdint cimport int64_t

import pyarrow as pa

from engine.parquet.group_reader cimport GroupChunks, GroupReader
from engine.records.kept_rows cimport Mask
from engine.records.kept_rows import kept_rows
from engine.records.side_by_side cimport SideBySide


@cython.final
cdef class GroupLook:
    """See the module's text.

    Args:
        reader: of the columns that are looked at, all of them where nothing is filtered.
        others: of the others; None: there are none.
        mask: function from a batch to its mask, where None keeps all; None: nothing is filtered.
        sides: puts columns of both in order.
        columns: those that come out.
    """

    cdef GroupReader _reader, _others
    cdef object _mask
    cdef SideBySide _sides
    cdef list _columns              # of the reader's, where there are no others; None: they are all, in order
    cdef bint _is_settled
    cdef readonly double width, width_of_others

    def __init__(self, GroupReader reader not None, GroupReader others, mask, SideBySide sides, list columns not None):
        self._reader, self._others = reader, others
        self._mask, self._sides = mask, sides
        self._columns = None if reader._schema.names == columns else columns

    def read(self, source not None, GroupChunks chunks not None, GroupChunks others, int64_t rows):
        """Return the wanted rows of a row group of so many; None: there are none. Raises as GroupReader does."""
        cdef Mask words = None
        self.width_of_others = 0
        self._reader.begin(source, chunks)
        batch = self._reader.read(rows)
        self.width = self._reader.width()
        mask = None if self._mask is None else self._mask(batch)
        if mask is not None:
            words = Mask(mask)
            if words.rows != rows:
                raise pa.ArrowInvalid(f"a mask of {words.rows} rows for {rows}")
            if words.kept == 0:
                return None
        if self._others is None:
            chosen = batch if self._columns is None else batch.select(self._columns)
            return chosen if mask is None else kept_rows(chosen, mask)
        if not self._is_settled:
            self._sides.settle([batch.schema, self._others._schema])
            self._is_settled = True
        self._others.begin(source, others)
        found = self._others.beside(rows, words, self._sides, batch, words)
        self.width_of_others = self._others.width()
        return found
