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

from engine.expressions.evaluate import compile_predicate
from engine.graph.expression import Expression, columns_of, conjunction, conjuncts
from engine.parquet.column_streams import Beside, ColumnStream
from engine.parquet.filter_mask import CodePart, FilterMask
from engine.parquet.filter_steps import FilterSteps, FirstColumn
from engine.parquet.row_ranges import ALL_ROWS, NO_ROWS, Ranges, share_of
from engine.records.adaptive_key_filter import AdaptiveKeyFilter
from engine.records.kept_rows import kept_rows
from engine.records.row_mask import Mask, narrowed_mask
from engine.records.side_by_side import SideBySide
from engine.records.top_keys import TopTest

#: some columns of a row group, in batches of so many rows
OpenColumns = Callable[[Sequence[str], int], ColumnStream]

#: rows of a batch that are looked at: ALL_ROWS, NO_ROWS, or those of a mask
_Rows: TypeAlias = bool | pa.BooleanArray | Mask
#: columns of the filter of rows that were looked at, which of these are kept, and which were looked at
_Filtered: TypeAlias = tuple[pa.RecordBatch, Mask | None, _Rows]
_Looked: TypeAlias = Callable[[_Rows], _Filtered]

_NOTHING = pa.RecordBatch.from_pylist([], schema=pa.schema([]))


class RowFilter(FilterMask):
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
        names = {test.column for test in tests}
        if predicate is not None:
            names.update(columns_of(predicate))
        self.columns = [name for name in schema.names if name in names]
        by_code: list[CodePart] = []
        others: list[Expression] = []
        for part in () if predicate is None else conjuncts(predicate):
            compiled = _over_code(part, schema, coded)
            if compiled is None:
                others.append(part)
            else:
                by_code.append(compiled)
        used = {name for part in others for name in columns_of(part)} or names
        plain_columns = [name for name in self.columns if name in used]
        fields = pa.schema([schema.field(name) for name in plain_columns])
        plain = compile_predicate(conjunction(others), fields) if others else None
        #: columns that it takes as narrow decimals
        self.narrow_columns = frozenset() if plain is None else plain.narrow_columns
        can_raise = plain is not None and plain.can_raise
        looks = [(part.column, part.mask) for part in by_code]
        self._steps = None if can_raise else FilterSteps(looks, others, tests, schema, self.narrow_columns)
        are_keys = all(isinstance(one, AdaptiveKeyFilter) for one in tests)
        super().__init__(by_code, plain, plain_columns, tests, predicate is not None and not can_raise and are_keys)
        #: columns of the filter and the others, by what is asked for
        self._sides: dict[tuple[str, ...], tuple[list[str], list[str], SideBySide]] = {}

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
        looked, first_column = rows * looks, self._first
        filtered, beside = self._looked_at(open_columns, looked), _Beside(partial(open_columns, others, rows))
        for start in range(0, row_count, looked):
            if self._first is not first_column:  # the batch before has shown that another way is better
                first_column, filtered = self._first, self._looked_at(open_columns, looked, start // looked)
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

    @property
    def _first(self) -> FirstColumn | None:
        return None if self._steps is None else self._steps.first

    def _looked_at(self, open_columns: OpenColumns, rows: int, passed: int = 0) -> _Looked:
        """Return a function that reads the columns of the filter of the next so many rows, behind some batches."""
        first = self._first
        stream = open_columns(self.columns if first is None else [first.column], rows)
        for _ in range(passed):
            stream.skip()
        if first is None:
            return partial(self._together, stream)
        others = [name for name in self.columns if name != first.column]
        beside = _Beside(partial(open_columns, others, rows))
        beside.skip(passed)
        return partial(self._in_steps, first, stream, beside, SideBySide(self.columns))

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


def _over_code(part: Expression, schema: pa.Schema, coded: Collection[str]) -> CodePart | None:
    """Return a part of a predicate over one column that comes as a dictionary; None: it is none, or it may fail."""
    names = set(columns_of(part))
    if len(names) != 1 or not names.issubset(coded):
        return None
    (name,) = names
    compiled = compile_predicate(part, pa.schema([schema.field(name)]))
    return None if compiled.can_raise else CodePart(name, compiled)
