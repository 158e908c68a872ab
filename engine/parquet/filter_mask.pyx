"""FilterMask: which rows of a batch a filter leaves, by its predicate and its tests, each asked of as few as possible.

    filter = FilterMask(by_code, plain, plain_columns, tests, may_test_first)
    filter.mask(batch) -> Mask                  None: all rows
    CodePart(column, part).mask(batch) -> Mask  a part of a predicate over one column that comes as a dictionary

    by_code    parts over numbers of texts ─┐
    plain      the part over plain columns ─┴─► the predicate, before or after the tests (``row_filter``)

What follows from the schema of a batch is kept, since most batches have that of the one before. Every batch of a scan
comes by, so there is no Python frame here.

Held by: tests/parquet/test_row_filter.py
"""

cimport cython
from libc.stdint cimport int32_t, int64_t

import pyarrow as pa

from engine.records.adaptive_key_filter cimport is_few
from engine.records.kept_rows cimport kept_unshown
from engine.records.opened_batch cimport OpenedBatch, opened_batch, schema_of
from engine.records.row_mask cimport Mask

from engine.records.adaptive_key_filter import mask_of
from engine.records.arrow_functions import pc
from engine.records.kept_rows import kept_rows
from engine.records.plain_scalars import scalar_of
from engine.records.plain_types import plain_batch
from engine.records.row_mask import flags_of_codes, narrowed_mask

cdef object TRUE = scalar_of(True)


cdef class FilterMask:
    """See the module's text. Thread: one.

    Args:
        by_code: parts over one column each, of CodePart.
        plain: the other parts, a ``CompiledExpression``; None: there are none.
        plain_columns: what these look at.
        tests: as of ``row_filter``.
        may_test_first: whether they may be asked before the predicate.
    """

    cdef list _by_code, _plain_columns, _tests
    cdef object _plain
    cdef bint _can_raise, _may_test_first
    # Schema of the last batch in which these columns were plain ones, theirs, and their places; None: in order.
    cdef object _seen_schema, _plain_schema
    cdef list _plain_places
    # Rows that tests, and the predicate, were asked about, and those that they left.
    cdef int64_t _tested, _left_by_tests, _asked, _left_by_predicate

    def __init__(self, list by_code not None, plain, list plain_columns not None, tests not None, bint may_test_first):
        self._by_code, self._plain, self._plain_columns = by_code, plain, plain_columns
        self._tests, self._may_test_first = list(tests), may_test_first
        self._can_raise = plain is not None and plain.can_raise

    def mask(self, batch not None, passed=None):
        """Return the mask of a batch's rows, which has the filter's columns at least; None: all are kept.

        passed: a test that all of its rows have passed.
        """
        cdef list tests = self._tests
        cdef Mask mask = None
        cdef int64_t left = batch.num_rows
        if passed is not None:
            tests = [test for test in tests if test is not passed]
        if not tests:
            return self._predicate_mask(batch, None)
        if not self._may_test_first:
            return mask_of(tests, batch, self._predicate_mask(batch, None))
        if self._left_by_tests * self._asked < self._left_by_predicate * self._tested:     # by their shares
            mask = mask_of(tests, batch)
            left = self._note_tested(mask, left)
            if left:
                mask = self._predicate_mask(batch, mask)
            self._note_asked(mask, left)
        else:
            mask = self._predicate_mask(batch, None)
            left = self._note_asked(mask, left)
            mask = mask_of(tests, batch, mask)
            self._note_tested(mask, left)
        return mask

    cdef int64_t _note_tested(self, Mask mask, int64_t rows):
        cdef int64_t left = rows if mask is None else mask.kept
        self._tested += rows
        self._left_by_tests += left
        return left

    cdef int64_t _note_asked(self, Mask mask, int64_t rows):
        cdef int64_t left = rows if mask is None else mask.kept
        self._asked += rows
        self._left_by_predicate += left
        return left

    cdef Mask _predicate_mask(self, batch, Mask mask):
        """The mask of rows that meet the predicate, within another mask; None: there is no predicate."""
        cdef Mask found
        cdef CodePart part
        for part in self._by_code:
            found = part.mask(batch)
            mask = found if mask is None else mask.both(found)
        return mask if self._plain is None else self._narrowed(batch, mask)

    cdef Mask _narrowed(self, batch, Mask mask):
        """The mask and what the part over plain columns says."""
        if mask is not None and not mask.kept and not self._can_raise:
            return mask
        columns = self._plain_of(batch)
        places = self._plain_places if columns is batch else None
        if mask is None:
            return self._plain.mask(columns, places)
        if self._can_raise or not is_few(mask.kept, mask.rows):
            return mask.both(self._plain.mask(columns, places))
        if places is None:
            return narrowed_mask(mask, self._plain.mask(kept_rows(columns, mask)))
        return narrowed_mask(mask, self._plain.mask(kept_unshown(mask, columns, places, self._plain_schema)))

    cdef object _plain_of(self, batch):
        """The batch itself, where the columns that are looked at lie in places that are known, or a plain one."""
        schema = schema_of(batch)
        if schema is self._seen_schema or (self._seen_schema is not None and schema.equals(self._seen_schema)):
            return batch
        columns = batch.select(self._plain_columns)
        plain = plain_batch(columns)
        if plain is not columns:
            return plain
        self._seen_schema, self._plain_schema = schema, columns.schema
        self._plain_places = [schema.get_field_index(name) for name in self._plain_columns]
        if self._plain_places == list(range(batch.num_columns)):
            self._plain_places = None
        return batch


@cython.final
cdef class CodePart:
    """A part of a predicate over one column that comes as a dictionary; what it says of the last one is kept."""

    cdef readonly str column
    cdef object _part, _dictionary
    cdef Mask _said             # of each text
    cdef int _says_of_null      # negative: it is not known

    def __init__(self, str column not None, part not None):
        self.column, self._part, self._says_of_null = column, part, -1

    def mask(self, batch not None):
        """Return the part's result for each row of a batch, from that for each text and for null."""
        cdef int32_t place = schema_of(batch).get_field_index(self.column)
        cdef OpenedBatch opened = opened_batch(batch)
        cdef Mask flags
        if opened.types.children[place].dictionary == NULL:
            return self._of(batch.column(place))
        self._look_at(opened.dictionary(place))
        flags = flags_of_codes(opened, place, self._said, self._says_of_null)
        if flags is not None:
            return flags
        codes = batch.column(place).indices
        of_rows = pc.take(self._said.array(), codes)
        return Mask(pc.fill_null(of_rows, TRUE) if codes.null_count and self._says_of_null else of_rows)

    cdef int _look_at(self, dictionary) except -1:
        """Have the part's result for each text, and for null."""
        if self._says_of_null < 0:
            self._says_of_null = self._of(pa.nulls(1, dictionary.type)).kept
        if dictionary is not self._dictionary:
            if self._said is None or not dictionary.equals(self._dictionary):
                self._said = self._of(dictionary)
            self._dictionary = dictionary
        return 0

    cdef Mask _of(self, texts):
        return self._part.mask(pa.RecordBatch.from_arrays([texts], names=[self.column]))
