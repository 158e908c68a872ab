"""AdaptiveKeyFilter: a filter of keys, applied to batches as long as it drops enough of their rows.

    test.mask_of(batch, mask) -> mask of the rows that are left of those of a mask, or of all
    test.is_on, test.rows_dropped
    mask_of(tests, batch, mask) -> mask after all of some tests

A filter that keeps more than KEPT_SHARE_MAX of TRIAL_ROWS rows costs more than it spares, and is switched off: its rows
are dropped by the join, as they would have been. So a plan that expected too much of a filter pays for a few batches.

Every batch of a scan comes by, so there is no Python frame here.

Thread: one; the filter may be shared. Source: the adaptive filters of Impala and DuckDB.
"""

cimport cython
from libc.stdint cimport int64_t

import pyarrow as pa

from engine.records.key_filter cimport KeyFilter
from engine.records.opened_batch cimport OpenedBatch, opened_batch
from engine.records.row_mask cimport Mask

from engine.records.arrow_functions import pc
from engine.records.kept_rows import kept_columns
from engine.records.row_mask import flags_of_codes, narrowed_mask

#: rows after which it is known what a filter is good for
TRIAL_ROWS = 1 << 17
cdef double KEPT_SHARE_MAX = 0.7


def mask_of(tests not None, batch not None, Mask mask=None):
    """Return the mask of rows that pass all tests, among those of a mask, or among all; None: all of them."""
    for test in tests:
        if test.is_on and (mask is None or mask.kept):
            mask = test.mask_of(batch, mask)
    return mask


@cython.final
cdef class AdaptiveKeyFilter:
    """A filter of one column, as one reader uses it."""

    cdef readonly str column
    cdef readonly KeyFilter filter
    cdef public bint is_on
    cdef readonly int64_t rows_dropped
    cdef int64_t _trial_rows, _trial_dropped
    cdef bytes _name
    # Schema of the last batch of which few rows were asked for, the column's place, and the schema of it alone.
    cdef object _schema, _alone
    cdef list _places

    def __init__(self, str column not None, KeyFilter key_filter not None):
        self.column, self.filter, self._name = column, key_filter, column.encode()
        self.is_on = True

    def mask_of(self, batch not None, Mask mask=None):
        """Return the mask of rows that may have a partner, among those of a mask; the column: plain, or as codes."""
        cdef int64_t rows = batch.num_rows
        cdef int64_t asked = rows if mask is None else mask.kept
        cdef Mask found
        cdef int64_t dropped
        if mask is not None and is_few(asked, rows):
            found = self.filter.mask_of(batch, self._name, mask)
            if found is None:
                found = narrowed_mask(mask, self._found(self._few(batch, mask)))
        else:
            found = self.filter.mask_of(batch, self._name)
            if found is None:
                found = self._found(batch)
            if mask is not None:
                found = mask.both(found)
        dropped = asked - found.kept
        self.rows_dropped += dropped
        self._trial_rows += asked
        self._trial_dropped += dropped
        if self._trial_rows >= TRIAL_ROWS:
            self.is_on = self._trial_dropped >= (1 - KEPT_SHARE_MAX) * self._trial_rows
            self._trial_rows = self._trial_dropped = 0
        return found

    cdef object _few(self, batch, Mask mask):
        """The column of the rows of a mask."""
        schema = batch.schema
        if schema is not self._schema and (self._schema is None or not schema.equals(self._schema)):
            self._schema, self._places = schema, [schema.get_field_index(self.column)]
            self._alone = pa.schema([schema.field(self._places[0])])
        return kept_columns(batch, mask, self._places, self._alone)

    cdef Mask _found(self, batch):
        cdef int place = batch.schema.get_field_index(self.column)
        cdef OpenedBatch opened = opened_batch(batch)
        cdef Mask of_texts, found
        if opened.types.children[place].dictionary == NULL:
            return self._plain(batch.column(place))
        of_texts = self._plain(opened.dictionary(place))
        found = flags_of_codes(batch, place, of_texts, False)
        return Mask(pc.take(of_texts.array(), batch.column(place).indices)) if found is None else found

    cdef Mask _plain(self, array):
        wanted = self.filter.data_type
        return self.filter.mask(array if array.type == wanted else pc.cast(array, wanted))
