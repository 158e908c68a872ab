"""GroupLook: row groups that are read with one call: the columns of their filter, the mask, the rows of the others.

    look = GroupLook(reader, others, mask, sides, columns, is_opened)
    look.read(source, plans, rows_together, kept_max) -> batch     None: no row is wanted
    look.groups_read  look.rows_read                   row groups of those given that have been read, and their rows
    look.width  look.width_of_others                   bytes of a row as they were decoded; 0.0: they were not

    looks = GroupLooks(memory, source, plans, plan, new_look, columns)
    for batch in looks.rows(scan, group, end): ...     look by look, each of as much as memory and GroupRuns say
    looks.let_go()                                     the memory of the last look is not kept for the next one

    row groups    0     1 2   3 4   5 6 7
    looked at ──► mask  mask  mask ─┐                  so many together as caches hold, until a batch's rows are kept
    others    ─────────────────────►│ kept rows of all                  row groups without any are not read

What is looked at is decoded for some row groups after the others, since it is large; what is left of it is small. So
one batch comes of many row groups, and the other columns of all of them are decoded with one call.

Row groups that are more than one batch, or have columns that pyarrow decodes, go through streams (``column_streams``),
which ``FileScan.streamed`` reads. What is asked between two looks is asked here: there are thousands of them in a job.

Limits: columns that are decoded here; the mask is of all rows. Thread: one at a time.
Held by: tests/parquet/test_group_look.py
"""

cimport cython
from libc.stdint cimport int64_t

import pyarrow as pa

from engine.parquet.group_reader cimport GroupChunks, GroupReader
from engine.parquet.group_runs cimport GroupRuns, kept_rows_max
from engine.parquet.group_runs import KEPT_ROWS_MAX
from engine.parquet.scan_memory cimport ScanMemory
from engine.records.joined_batches import joined_batches
from engine.records.kept_rows cimport kept_unshown
from engine.records.opened_batch cimport shown_batch
from engine.records.row_mask cimport Mask, joined_masks, mask_from
from engine.records.side_by_side cimport SideBySide

#: rows of a batch, when they are narrow
PARQUET_BATCH_ROWS_MAX = 131072
cdef int64_t STREAMED_ROWS_MAX = PARQUET_BATCH_ROWS_MAX
cdef int64_t LOOKED_AT_ROWS_MAX = KEPT_ROWS_MAX


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


@cython.final
cdef class GroupLooks:
    """The looks at the row groups of a file of this machine.

    Args:
        memory: of the task.
        source: of the file, for readers.
        plans: GroupPlan by row group, to be added to; None: some column is not decoded here.
        plan: function from a row group to its plan.
        new_look: function that returns a GroupLook.
        columns: the first one of those that the filter looks at, and of the others; empty: nothing is filtered.
    """

    cdef ScanMemory _memory
    cdef object _source
    cdef dict _plans
    cdef object _plan, _new_look
    cdef list _columns
    cdef GroupLook _look                # None: not made yet
    cdef readonly GroupRuns runs

    def __init__(self, ScanMemory memory not None, source not None, dict plans not None, plan not None,
                 new_look not None, list columns not None):
        self._memory, self._source, self._plans, self._plan = memory, source, plans, plan
        self._new_look, self._columns, self.runs = new_look, columns, GroupRuns()

    def let_go(self):
        """Have the next look take memory anew."""
        self._look = None

    def rows(self, scan not None, int64_t group, int64_t end):
        """Return an iterator of the wanted rows of row groups, of one up to ``end``, in bounded batches.

        scan: FileScan, which streams row groups that no look may read, and arranges columns that do not come as wanted.
        """
        return LookedAtRows(self, scan, group, end)

    cdef list _planned(self, int64_t group, int64_t end):
        """The plans of row groups that a look may read, from one on, and memory held; []: not even that one."""
        cdef list found = []
        end = min(end, group + self.runs.groups_max)
        while group < end:
            plan = self._plans.get(group, self)
            if plan is self:
                plan = self._plans[group] = self._plan(group)
            if plan is None or not self._memory.is_one_batch(plan.pages, STREAMED_ROWS_MAX):
                break
            found.append(plan)
            group += 1
        while found and not self._memory.hold_whole(most_held(found)):
            self.runs.refuse()
            del found[len(found) // 2:]
        return found

    cdef object _read(self, list plans):
        """The wanted rows of as many row groups as looks before have shown to be good; None: there are none."""
        cdef ScanMemory memory = self._memory
        cdef GroupLook look = self._look
        cdef double rows_max = memory.rows_together(plans[0].pages)
        cdef double row_bytes = memory.row_bytes
        cdef int64_t kept_rows
        if look is None:
            look = self._look = self._new_look()
        batch = look.read(self._source, plans, self.runs.rows_together(rows_max),
                          min(kept_rows_max(row_bytes), <int64_t>rows_max))
        kept_rows = 0 if batch is None else batch.num_rows
        self.runs.note(look.groups_read, look.rows_read, look.width, kept_rows, row_bytes)
        if self._columns:
            memory.note_width(self._columns[0], look.width)
        if len(self._columns) > 1:
            memory.note_width(self._columns[1], look.width_of_others)
        return batch


cdef object most_held(list plans):
    """The pages of the row group that holds most while it is read."""
    cdef object most = plans[0].pages
    for plan in plans:
        if plan.pages.held_bytes_max > most.held_bytes_max:
            most = plan.pages
    return most


@cython.final
cdef class LookedAtRows:
    """See GroupLooks.rows. None of the batches is kept while the next is read."""

    cdef GroupLooks _looks
    cdef object _scan
    cdef int64_t _group, _end
    cdef list _plans            # of the next row groups, for which memory is held
    cdef list _ready            # pieces of a batch, the next one last
    cdef object _streamed       # batches of a row group that no look may read

    def __init__(self, GroupLooks looks not None, scan not None, int64_t group, int64_t end):
        self._looks, self._scan, self._group, self._end = looks, scan, group, end
        self._plans, self._ready = [], []

    def __iter__(self):
        return self

    def __next__(self):
        while not self._ready:
            if self._streamed is not None:
                self._stream()
            elif self._group >= self._end:
                raise StopIteration
            else:
                self._look()
        return self._ready.pop()

    cdef int _look(self) except -1:
        cdef GroupLooks looks = self._looks
        if not self._plans or not looks._memory.fits_still():
            self._plans = looks._planned(self._group, self._end)
        if not self._plans:
            self._streamed = self._scan.streamed(self._group)
            self._group += 1
            return 0
        batch = looks._read(self._plans)
        self._group += looks.runs.groups_read
        del self._plans[:looks.runs.groups_read]
        if batch is not None:
            self._bound(batch if self._scan.comes_as_wanted else self._scan.arranged(batch), LOOKED_AT_ROWS_MAX)
        return 0

    cdef int _stream(self) except -1:
        batch = next(self._streamed, None)
        if batch is None:
            self._streamed = None
        else:
            self._bound(batch, STREAMED_ROWS_MAX)
        return 0

    cdef int _bound(self, batch, int64_t rows_max) except -1:
        self._ready = self._looks._memory.bounded(batch, rows_max)
        self._ready.reverse()
        return 0
