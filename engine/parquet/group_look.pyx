"""GroupLook: row groups that are read with one call: the columns of their filter, the mask, the rows of the others.

    look = GroupLook(reader, others, mask, sides, columns, is_opened)
    look.read(source, plans, rows_together, kept_max) -> batch     None: no row is wanted
    look.read_run(source, plans, runs, rows_max, row_bytes)        as much as GroupRuns says, which notes what came
    look.groups_read  look.rows_read                   row groups of those given that have been read, and their rows
    look.width  look.width_of_others                   bytes of a row as they were decoded; 0.0: they were not

    row groups    0     1 2   3 4   5 6 7
    looked at ──► mask  mask  mask ─┐                  so many together as caches hold, until a batch's rows are kept
    others    ─────────────────────►│ kept rows of all                  row groups without any are not read

What is looked at is decoded for some row groups after the others, since it is large; what is left of it is small. So
one batch comes of many row groups, and the other columns of all of them are decoded with one call.

Row groups that are more than one batch, or have columns that pyarrow decodes, go through streams (``column_streams``).

Limits: columns that are decoded here; the mask is of all rows. Thread: one at a time.
Held by: tests/parquet/test_group_look.py
"""

cimport cython
from libc.stdint cimport int64_t

import pyarrow as pa

from engine.parquet.group_reader cimport GroupChunks, GroupReader
from engine.parquet.group_runs cimport GroupRuns, kept_rows_max
from engine.records.joined_batches import joined_batches
from engine.records.kept_rows cimport kept_unshown
from engine.records.opened_batch cimport shown_batch
from engine.records.row_mask cimport Mask, joined_masks, mask_from
from engine.records.side_by_side cimport SideBySide


@cython.final
cdef class GroupLook:
    """See the module's text.

    Args:
        reader: of the columns that are looked at, all of them where nothing is filtered.
        others: of the others; None: there are none.
        mask: function from a batch to its Mask or flags, where None keeps all; None: nothing is filtered.
        sides: puts columns of both in order.
        columns: those that come out.
        is_opened: batches may come opened (``records.opened_batch``).
    """

    cdef GroupReader _reader, _others
    cdef object _mask
    cdef SideBySide _sides
    cdef list _places               # of the reader's columns, those that come out
    cdef bint _is_whole             # they are all, in order
    cdef object _schema             # of these
    cdef bint _is_opened
    cdef readonly double width, width_of_others
    cdef readonly int64_t groups_read, rows_read

    def __init__(self, GroupReader reader not None, GroupReader others, mask, SideBySide sides, list columns not None,
                 bint is_opened=False):
        self._reader, self._others, self._is_opened = reader, others, is_opened
        self._mask, self._sides = mask, sides
        names = reader._schema.names
        own = columns if others is None else [name for name in names if name in columns]
        self._places = [names.index(name) for name in own]
        self._is_whole = names == own
        self._schema = reader._schema if self._is_whole else pa.schema([reader._schema.field(name) for name in own])

    def read(self, source not None, list plans not None, int64_t rows_together, int64_t kept_max):
        """Return the wanted rows of row groups, from the first on; None: there are none. Raises as GroupReader does.

        Args:
            plans: GroupPlan of each row group, one at least.
            rows_together: of the row groups of which columns are looked at with one mask, one row group at least.
            kept_max: rows of a batch; a row group that may have rows beyond them is not looked at.
        """
        cdef list kept = []         # the wanted rows of what was looked at, but for the last of it
        cdef list masks = []
        cdef int64_t kept_rows = 0
        cdef Mask mask
        self.groups_read = self.rows_read = 0
        self.width_of_others = 0
        while True:
            batch = self._looked_at(source, plans, rows_together)
            said = None if self._mask is None else self._mask(batch)
            mask = Mask.whole(batch.num_rows) if said is None else mask_from(said)
            if mask.rows != batch.num_rows:
                raise pa.ArrowInvalid(f"a mask of {mask.rows} rows for {batch.num_rows}")
            kept_rows += mask.kept
            masks.append(mask)
            if self._mask is None or self.groups_read == len(plans) or kept_rows + mask.kept > kept_max:
                break
            if mask.kept:
                kept.append(self._kept(mask, batch))
            batch = None    # the next one is decoded where this one was
        if kept_rows == 0:
            return None
        if self._others is None or len(masks) > 1:
            kept.append(self._kept(mask, batch))
            batch = kept[0] if len(kept) == 1 else joined(kept, kept_rows)
        if self._others is not None:
            batch = self._beside(source, plans, batch, masks)
        return batch if self._is_opened else shown_batch(batch)

    def read_run(self, source not None, list plans not None, GroupRuns runs not None, double rows_max,
                 double row_bytes):
        """The wanted rows, as ``read`` returns them, of as many row groups as looks before have shown to be good.

        Args:
            rows_max: rows for which there is memory.
            row_bytes: width of rows that come out.
        """
        cdef int64_t kept_max = min(kept_rows_max(row_bytes), <int64_t>rows_max)
        cdef int64_t kept_rows
        batch = self.read(source, plans, runs.rows_together(rows_max), kept_max)
        kept_rows = 0 if batch is None else batch.num_rows
        runs.note(self.groups_read, self.rows_read, self.width, kept_rows, row_bytes)
        return batch

    cdef object _kept(self, Mask mask, object batch):
        if self._is_whole and mask.kept == mask.rows:
            return batch
        return kept_unshown(mask, batch, self._places, self._schema)

    cdef object _beside(self, object source, list plans, object batch, list masks):
        """The rows of the other columns beside those of the ones that were looked at.

        masks: of all rows that were looked at; if there is one, batch has all of its rows, otherwise the kept ones.
        """
        cdef list groups = [(others, pages.row_count) for pages, _, others in plans[:self.groups_read]]
        cdef Mask of_all = masks[0] if len(masks) == 1 else joined_masks(masks)
        self._sides.settle([batch.schema, self._others._schema])
        self._others.begin(source, chunks_of(groups))
        found = self._others.beside(self.rows_read, of_all, self._sides, batch, of_all if len(masks) == 1 else None)
        self.width_of_others = self._others.width()
        return found

    cdef object _looked_at(self, object source, list plans, int64_t rows_together):
        """The columns that are looked at of the next row groups."""
        cdef list groups = []
        cdef int64_t rows = 0
        cdef Py_ssize_t place = <Py_ssize_t>self.groups_read
        cdef int64_t group_rows
        while place < len(plans):
            pages, looked_at, _ = plans[place]
            group_rows = pages.row_count
            if groups and rows + group_rows > rows_together:
                break
            rows += group_rows
            groups.append((looked_at, group_rows))
            place += 1
        self._reader.begin(source, chunks_of(groups))
        batch = self._reader.read_unshown(rows)
        self.width = self._reader.width()
        self.groups_read += len(groups)
        self.rows_read += rows
        return batch


cdef GroupChunks chunks_of(list groups):
    """Chunks of row groups; those with numbers of texts are a run, which has the same numbers in every look."""
    cdef GroupChunks first = groups[0][0]
    return first if len(groups) == 1 and not first.has_codes() else GroupChunks.of_run(groups)


cdef object joined(list batches, int64_t rows):
    """Batches of one schema as one; of no columns: so many rows."""
    if batches[0].num_columns:
        return joined_batches(batches)
    return pa.RecordBatch.from_arrays([pa.nulls(rows)], names=[""]).select([])
