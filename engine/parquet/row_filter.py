"""RowFilter: the rows of a row group that meet a predicate, of which columns are read when they are needed.

    filter = RowFilter(predicate, schema, coded, tests)      coded: columns that come as Arrow's dictionaries
    filter.columns                                           what it looks at
    filter.narrow_columns                                    of these, decimals that may come in 64 bits
    filter.batches(open_columns, columns, rows, row_count)   the rows that are left

    columns of the filter   batch 1   batch 2   batch 3 ...    decoded, of several together if narrow
    rows that are left      none      none      some
    the other columns       -         -         batch 3 ...    decoded of the rows that are left; none, where that is
                                                               so for all batches

A part of the predicate that looks at one text alone, which is a number in the file, is evaluated for the texts of the
dictionary, a handful, and looked up by number for the rows; no text is written out for it. Only where the part cannot
fail: a dictionary may have texts that no row has. All other parts are one predicate over plain columns, of the rows
that are left by then where those are few and it cannot fail.

Where one column of several leaves few rows, by a test or by parts that look at it alone, the columns of the filter are
read in two steps: that one, then the others of the rows that are left. The first batch shows which one it is.

``tests``: filters of keys, which joins have made while the job runs (``records.adaptive_key_filter``). Each is asked as
long as it is of use, of the rows that are left by then. They come before the predicate where batches have shown that
they leave a smaller share of the rows, and it cannot fail. The last of them may be the threshold of a top-n
(``records.top_keys``), which wants to see the rows that the predicate leaves and no others: then it is first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from engine.expressions.evaluate import CompiledExpression, compile_predicate
from engine.graph.expression import Expression, columns_of, conjunction, conjuncts
from engine.parquet.column_streams import Beside, ColumnStream
from engine.parquet.filter_steps import FilterSteps, FirstColumn
from engine.parquet.row_ranges import ALL_ROWS, NO_ROWS, Ranges, share_of
from engine.records.adaptive_key_filter import FEW_ROWS_SHARE, AdaptiveKeyFilter, mask_of
from engine.records.arrow_functions import pc
from engine.records.kept_rows import kept_columns, kept_rows
from engine.records.opened_batch import dictionary_of
from engine.records.plain_scalars import scalar_of
from engine.records.plain_types import plain_batch
from engine.records.row_mask import Mask, flags_of_codes, narrowed_mask
from engine.records.side_by_side import SideBySide
from engine.records.top_keys import TopTest

#: some columns of a row group, in batches of so many rows
OpenColumns = Callable[[Sequence[str], int], ColumnStream]

#: rows of a batch that are looked at: ALL_ROWS, NO_ROWS, or those of a mask
_Rows: TypeAlias = bool | pa.BooleanArray | Mask
#: columns of the filter of rows that were looked at, which of these are kept, and which were looked at
_Filtered: TypeAlias = tuple[pa.RecordBatch, Mask | None, _Rows]
_Looked: TypeAlias = Callable[[_Rows], _Filtered]

_TRUE = scalar_of(True)
_NOTHING = pa.RecordBatch.from_pylist([], schema=pa.schema([]))


class RowFilter:
    """A predicate over batches of one schema.

    Args:
        predicate: over columns of the schema; None: there is none.
        schema: plain types of the columns.
        coded: columns that come as dictionaries.
        tests: of columns of the schema.
    """

    def __init__(
        self,
        predicate: Expression | None,
        schema: pa.Schema,
        coded: Collection[str],
        tests: Sequence[AdaptiveKeyFilter | TopTest] = (),
    ) -> None:
        self._tests = tests
        names = {test.column for test in tests}
        if predicate is not None:
            names.update(columns_of(predicate))
        self.columns = [name for name in schema.names if name in names]
        #: parts over numbers of texts: the column, the part over it
        self._by_code: list[_CodePart] = []
        others: list[Expression] = []
        for part in () if predicate is None else conjuncts(predicate):
            compiled = _over_code(part, schema, coded)
            if compiled is None:
                others.append(part)
            else:
                self._by_code.append(compiled)
        used = {name for part in others for name in columns_of(part)} or names
        self._plain_columns = [name for name in self.columns if name in used]
        fields = pa.schema([schema.field(name) for name in self._plain_columns])
        self._plain = compile_predicate(conjunction(others), fields) if others else None
        #: schema of the last batch in which these columns were plain ones, theirs, and their places; None: in order
        self._seen_schema = self._plain_schema = pa.schema([])
        self._plain_places: list[int] | None = None
        #: columns that it takes as narrow decimals
        self.narrow_columns = frozenset() if self._plain is None else self._plain.narrow_columns
        can_raise = self._can_raise = self._plain is not None and self._plain.can_raise
        by_code = [(part.column, part.mask) for part in self._by_code]
        self._steps = None if can_raise else FilterSteps(by_code, others, tests, schema, self.narrow_columns)
        self._may_test_first = (
            predicate is not None and not can_raise and all(isinstance(one, AdaptiveKeyFilter) for one in tests)
        )
        #: columns of the filter and the others, by what is asked for
        self._sides: dict[tuple[str, ...], tuple[list[str], list[str], SideBySide]] = {}
        #: rows that tests, and the predicate, were asked about, and those that they left
        self._tested, self._asked = _Share(), _Share()

    def batches(
        self,
        open_columns: OpenColumns,
        columns: Sequence[str],
        rows: int,
        row_count: int,
        possible: Ranges | None = None,
        *,
        looks: int = 1,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the filtered rows of batches of so many rows, with some of their columns; no batch is empty.

        row_count: of the row group. possible: those of its rows that are looked at, None: all. looks: batches of which
        the columns of the filter are looked at together, since they are narrow beside the others.
        """
        own, others, sides = self.sides_of(columns)
        looked = rows * looks
        filtered, beside = self._looked_at(open_columns, looked), _Beside(partial(open_columns, others, rows))
        for start in range(0, row_count, looked):
            count = min(looked, row_count - start)
            share = ALL_ROWS if possible is None else share_of(possible, start, count)
            batch, mask, share = filtered(share)
            if not others:
                if batch.num_rows if mask is None else mask.kept:
                    yield kept(batch, mask, columns)
                del batch  # a wide one is not kept while the next is read
                continue
            if not batch.num_rows or (mask is not None and not mask.kept):
                beside.skip(-(-count // rows))
                continue
            wanted, given = _of_all_rows(share, mask), 0
            if count <= rows:
                yield beside.read(wanted, Beside(sides, batch, mask))
                del batch  # a wide one is not kept while the next is read
                continue
            left, flags = kept(batch, mask, own), None if wanted is None else wanted.array()
            del batch
            for first in range(0, count, rows):
                part = None if flags is None else flags.slice(first, rows)
                kept_count = min(rows, count - first) if part is None else part.true_count
                if not kept_count:
                    beside.skip(1)
                    continue
                yield beside.read(part, Beside(sides, left.slice(given, kept_count), None))
                given += kept_count

    def sides_of(self, columns: Sequence[str]) -> tuple[list[str], list[str], SideBySide]:
        """Divide columns into the filter's and the others, with what puts them back in order."""
        sides = self._sides.get(tuple(columns))
        if sides is None:
            own = [name for name in columns if name in self.columns]
            others = [name for name in columns if name not in self.columns]
            sides = self._sides[tuple(columns)] = own, others, SideBySide(columns)
        return sides

    def _looked_at(self, open_columns: OpenColumns, rows: int) -> _Looked:
        """Return a function that reads the columns of the filter of the next so many rows."""
        steps = self._steps
        first = None if steps is None else steps.first
        if steps is None or first is None:
            return partial(self._together, open_columns(self.columns, rows))
        others = [name for name in self.columns if name != first.column]
        beside = _Beside(partial(open_columns, others, rows))
        return partial(self._in_steps, first, open_columns([first.column], rows), beside, SideBySide(self.columns))

    def _together(self, stream: ColumnStream, share: _Rows) -> _Filtered:
        """Return the columns of the filter of the next rows, of those that are looked at, and which ones are kept."""
        if share is NO_ROWS:
            stream.skip()
            return _NOTHING, None, share
        batch = _next(stream, share)
        if self._steps is not None and share is ALL_ROWS:
            self._steps.choose(batch)
        return batch, self.mask(batch), share

    def _in_steps(
        self, first: FirstColumn, stream: ColumnStream, beside: _Beside, sides: SideBySide, share: _Rows
    ) -> _Filtered:
        """Return the same, where the rows that are looked at are those that the first column leaves."""
        if share is NO_ROWS:
            stream.skip()
            beside.skip(1)
            return _NOTHING, None, share
        batch = _next(stream, share)
        left = first.mask(batch)
        if not left.kept:
            beside.skip(1)
            return _NOTHING, None, share
        looked_at = _of_all_rows(share, left)
        batch = beside.read(looked_at, Beside(sides, batch, left))
        return batch, self.mask(batch, first.test), looked_at

    def mask(self, batch: pa.RecordBatch, passed: AdaptiveKeyFilter | None = None) -> Mask | None:
        """Return the mask of a batch's rows, which has ``columns`` at least; None: all are kept.

        passed: a test that all of its rows have passed.
        """
        tests = self._tests if passed is None else [test for test in self._tests if test is not passed]
        if not tests:
            return self._predicate_mask(batch, None)
        if not self._may_test_first:
            return mask_of(tests, batch, self._predicate_mask(batch, None))
        if self._tested.is_smaller_than(self._asked):
            tested = mask_of(tests, batch)
            left = self._tested.add(tested, batch.num_rows)
            mask = self._predicate_mask(batch, tested) if left else tested
            self._asked.add(mask, left)
        else:
            mask = self._predicate_mask(batch, None)
            left = self._asked.add(mask, batch.num_rows)
            mask = mask_of(tests, batch, mask)
            self._tested.add(mask, left)
        return mask

    def _predicate_mask(self, batch: pa.RecordBatch, mask: Mask | None) -> Mask | None:
        """Return the mask of rows that meet the predicate, within another mask; None: there is no predicate."""
        for part in self._by_code:
            found = part.mask(batch)
            mask = found if mask is None else mask.both(found)
        return mask if self._plain is None else self._narrowed(batch, self._plain, mask)

    def _narrowed(self, batch: pa.RecordBatch, plain: CompiledExpression, mask: Mask | None) -> Mask:
        """Return the mask and what the part over plain columns says."""
        if mask is None:
            return plain.mask(*self._plain_of(batch))
        if self._can_raise or mask.kept > FEW_ROWS_SHARE * batch.num_rows:
            return mask.both(plain.mask(*self._plain_of(batch)))
        if not mask.kept:
            return mask
        columns, places = self._plain_of(batch)
        if places is None:
            return narrowed_mask(mask, plain.mask(kept_rows(columns, mask)))
        return narrowed_mask(mask, plain.mask(kept_columns(columns, mask, places, self._plain_schema)))

    def _plain_of(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int] | None]:
        """Return a batch with the columns that the part over plain ones looks at, and their places; None: in order."""
        schema = batch.schema
        if schema is not self._seen_schema and not schema.equals(self._seen_schema):  # most are as the one before
            columns = batch.select(self._plain_columns)
            plain = plain_batch(columns)
            if plain is not columns:
                return plain, None
            self._seen_schema, self._plain_schema = schema, columns.schema
            places = [schema.get_field_index(name) for name in self._plain_columns]
            self._plain_places = None if places == list(range(batch.num_columns)) else places
        return batch, self._plain_places


class _Beside:
    """Columns that the filter does not look at, which are opened where the first row of them is wanted."""

    def __init__(self, open_columns: Callable[[], ColumnStream]) -> None:
        self._open_columns = open_columns
        self._stream: ColumnStream | None = None
        self._skipped = 0

    def skip(self, batches: int) -> None:
        """Pass over batches, at the latest before one is read."""
        self._skipped += batches

    def read(self, mask: pa.BooleanArray | Mask | None, beside: Beside) -> pa.RecordBatch:
        """Return the rows of the next batch that a mask leaves, beside as many of other columns."""
        if self._stream is None:
            self._stream = self._open_columns()
        for _ in range(self._skipped):
            self._stream.skip()
        self._skipped = 0
        batch = self._stream.read_beside(mask, beside)
        if batch is None:
            raise pa.ArrowInvalid("its columns do not have the same number of rows")
        return batch


class _Share:
    """The share of its rows that a filter has kept."""

    def __init__(self) -> None:
        self._asked = self._left = 0

    def add(self, mask: Mask | None, rows: int) -> int:
        """Record the rows kept of so many, None: all, and return their number."""
        left = rows if mask is None else mask.kept
        self._asked += rows
        self._left += left
        return left

    def is_smaller_than(self, other: _Share) -> bool:
        """Whether both are known, and this one is smaller."""
        return self._left * other._asked < other._left * self._asked


def _next(stream: ColumnStream, share: _Rows) -> pa.RecordBatch:
    """Return the rows of the next batch that are looked at."""
    batch = stream.read(None if isinstance(share, bool) else share)
    if batch is None:
        raise pa.ArrowInvalid("its columns end before its rows do")
    return batch


def _of_all_rows(share: _Rows, mask: Mask | None) -> Mask | None:
    """Return a mask of the rows that were looked at as one of all rows of a batch."""
    if share is ALL_ROWS:
        return mask
    if mask is not None:
        return narrowed_mask(share, mask)
    return share if isinstance(share, Mask) else Mask(share)


def kept(batch: pa.RecordBatch, mask: Mask | None, columns: Sequence[str]) -> pa.RecordBatch:
    """Return the rows of some columns that a mask leaves."""
    chosen = batch if batch.schema.names == columns else batch.select(list(columns))
    return chosen if mask is None else kept_rows(chosen, mask)


class _CodePart:
    """A part of a predicate over one column that comes as a dictionary; what it says of the last one is kept."""

    def __init__(self, column: str, part: CompiledExpression) -> None:
        self.column = column
        self._part = part
        self._dictionary: pa.Array | None = None
        #: result for each text
        self._said: Mask | None = None
        self._says_of_null: bool | None = None

    def mask(self, batch: pa.RecordBatch) -> Mask:
        """Return the part's result for each row of a batch, from that for each text and for null."""
        place = batch.schema.get_field_index(self.column)
        dictionary = dictionary_of(batch, place)
        if dictionary is None:
            return self._of(batch.column(place))
        said, of_null = self._of_texts(dictionary)
        flags: Mask | None = flags_of_codes(batch, place, said, of_null)
        if flags is not None:
            return flags
        codes = batch.column(place).indices
        of_rows = pc.take(said.array(), codes)
        return Mask(pc.fill_null(of_rows, _TRUE) if codes.null_count and of_null else of_rows)

    def _of_texts(self, dictionary: pa.Array) -> tuple[Mask, bool]:
        """Return the part's result for each text and for null."""
        if self._says_of_null is None:
            self._says_of_null = bool(self._of(pa.nulls(1, dictionary.type)).kept)
        said = self._said
        if said is None or (dictionary is not self._dictionary and not dictionary.equals(self._dictionary)):
            said = self._said = self._of(dictionary)
        self._dictionary = dictionary
        return said, self._says_of_null

    def _of(self, texts: pa.Array) -> Mask:
        return self._part.mask(pa.RecordBatch.from_arrays([texts], names=[self.column]))


def _over_code(part: Expression, schema: pa.Schema, coded: Collection[str]) -> _CodePart | None:
    """Return a part of a predicate over one column that comes as a dictionary; None: it is none, or it may fail."""
    names = set(columns_of(part))
    if len(names) != 1 or not names.issubset(coded):
        return None
    (name,) = names
    compiled = compile_predicate(part, pa.schema([schema.field(name)]))
    return None if compiled.can_raise else _CodePart(name, compiled)
