"""AdaptiveKeyFilter: a filter of keys, applied to batches as long as it drops enough of their rows.

    test.mask_of(batch, mask) -> mask of the rows that are left of those of a mask, or of all
    test.is_on, test.rows_dropped
    mask_of(tests, batch, mask) -> mask after all of some tests

A filter that keeps more than KEPT_SHARE_MAX of TRIAL_ROWS rows costs more than it spares, and is switched off: its rows
are dropped by the join, as they would have been. So a plan that expected too much of a filter pays for a few batches.

Thread: one; the filter may be shared. Source: the adaptive filters of Impala and DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.kept_rows import kept_columns
from engine.records.opened_batch import dictionary_of
from engine.records.row_mask import Mask, flags_of_codes, narrowed_mask

if TYPE_CHECKING:
    from engine.records.key_filter import KeyFilter
    from engine.records.top_keys import TopTest

#: rows after which it is known what a filter is good for
TRIAL_ROWS: Final = 1 << 17
KEPT_SHARE_MAX: Final = 0.7
#: share of a batch's rows up to which they are copied, to be looked up alone
FEW_ROWS_SHARE: Final = 0.25


def mask_of(
    tests: Sequence[AdaptiveKeyFilter | TopTest], batch: pa.RecordBatch, mask: Mask | None = None
) -> Mask | None:
    """Return the mask of rows that pass all tests, among those of a mask, or among all; None: all of them."""
    for test in tests:
        if test.is_on and (mask is None or mask.kept):
            mask = test.mask_of(batch, mask)
    return mask


class AdaptiveKeyFilter:
    """A filter of one column, as one reader uses it."""

    def __init__(self, column: str, key_filter: KeyFilter) -> None:
        self.column = column
        self.filter = key_filter
        self.is_on = True
        self.rows_dropped = 0
        self._trial_rows = 0
        self._trial_dropped = 0
        self._name = column.encode()
        #: schema of the last batch of which few rows were asked for, place of the column, and schema of it alone
        self._alone: tuple[pa.Schema | None, int, pa.Schema] = None, 0, pa.schema([])

    def mask_of(self, batch: pa.RecordBatch, mask: Mask | None = None) -> Mask:
        """Return the mask of rows that may have a partner, among those of a mask; the column: plain, or as codes."""
        asked = batch.num_rows if mask is None else mask.kept
        if mask is not None and asked <= FEW_ROWS_SHARE * batch.num_rows:
            found = self._found_within(batch, mask)
        else:
            of_all = self.filter.mask_of(batch, self._name)
            if of_all is None:
                of_all = self._found(batch)
            found = of_all if mask is None else mask.both(of_all)
        dropped = asked - found.kept
        self.rows_dropped += dropped
        self._trial_rows += asked
        self._trial_dropped += dropped
        if self._trial_rows >= TRIAL_ROWS:
            self.is_on = self._trial_dropped >= (1 - KEPT_SHARE_MAX) * self._trial_rows
            self._trial_rows = self._trial_dropped = 0
        return found

    def _found_within(self, batch: pa.RecordBatch, mask: Mask) -> Mask:
        """Find keys among the few rows of a mask: where the column lies, or in a copy of these rows."""
        found = self.filter.mask_of(batch, self._name, mask)
        if found is None:
            return narrowed_mask(mask, self._found(self._few(batch, mask)))
        return found

    def _few(self, batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
        """Return the column of the rows of a mask."""
        schema, place, alone = self._alone
        if schema is None or not schema.equals(batch.schema):
            schema = batch.schema
            place = schema.get_field_index(self.column)
            alone = pa.schema([schema.field(place)])
            self._alone = schema, place, alone
        return kept_columns(batch, mask, [place], alone)

    def _found(self, batch: pa.RecordBatch) -> Mask:
        place = batch.schema.get_field_index(self.column)
        dictionary = dictionary_of(batch, place)
        if dictionary is None:
            return self._plain(batch.column(place))
        of_texts = self._plain(dictionary)
        found = flags_of_codes(batch, place, of_texts, False)
        return Mask(pc.take(of_texts.array(), batch.column(place).indices)) if found is None else found

    def _plain(self, array: pa.Array) -> Mask:
        wanted = self.filter.data_type
        found: Mask = self.filter.mask(array if array.type == wanted else pc.cast(array, wanted))
        return found
