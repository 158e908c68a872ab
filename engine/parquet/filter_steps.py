"""FilterSteps: which column of a filter is read before the others, since few rows are left by what looks at it alone.

    steps.choose(batch)         the first rows of all columns say which one it is
    steps.first                 that one; None: all columns are read together
    first.mask(batch) -> mask   of the rows that it leaves

    first column   all rows ──► mask ─┐
    others         -                  └─► rows that are left ──► the filter

Of a fact table with a filter on four columns, three are decoded of a twentieth of the rows. What decides is the share
of rows that is left, STEP_SHARE_MAX: to decode single rows takes longer for each than to decode them all. Where later
rows are others, and more than _STEP_SHARE_LIMIT are left, the columns are read together again, for good.

Limits: for row groups that are read in batches; those that are read at once are looked at whole (``group_look``).

Held by: tests/parquet/test_filter_steps.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.evaluate import CompiledExpression, compile_predicate
from engine.graph.expression import Expression, columns_of, conjunction
from engine.records.adaptive_key_filter import AdaptiveKeyFilter
from engine.records.plain_types import plain_batch
from engine.records.row_mask import Mask

#: largest share of rows that a column may leave to be read first
STEP_SHARE_MAX: Final = 0.2
#: share of rows beyond which it is no longer
_STEP_SHARE_LIMIT: Final = 0.4

_MaskOf = Callable[[pa.RecordBatch], Mask]


class FirstColumn:
    """A column, and what looks at it alone: a test, or a part of the predicate."""

    def __init__(self, column: str, look: _MaskOf, test: AdaptiveKeyFilter | None = None) -> None:
        self.column = column
        #: mask of a batch that has the column, of which nothing is recorded
        self.look = look
        #: the test that it is; None: it is a part of the predicate
        self.test = test
        self._rows = self._left = 0

    def mask(self, batch: pa.RecordBatch) -> Mask:
        """Return the mask of rows that are left of a batch that has the column."""
        mask = self.look(batch) if self.test is None else self.test.mask_of(batch)
        self._rows += batch.num_rows
        self._left += mask.kept
        return mask

    @property
    def leaves_few(self) -> bool:
        """Whether few rows were left so far."""
        return self._left <= _STEP_SHARE_LIMIT * self._rows


class FilterSteps:
    """The first column of a filter.

    Args:
        by_code: parts of a predicate over one column each, with the column.
        parts: other parts.
        tests: of one column each.
        fields: of the parts' columns.
        narrow: columns of the parts that come as narrow decimals.
    """

    def __init__(
        self,
        by_code: Iterable[tuple[str, _MaskOf]],
        parts: Sequence[Expression],
        tests: Iterable[object],
        fields: pa.Schema,
        narrow: frozenset[str],
    ) -> None:
        self._first: FirstColumn | None = None
        self._has_chosen = False
        self._by_code, self._parts, self._tests = by_code, parts, tests
        self._fields, self._narrow = fields, narrow

    @property
    def first(self) -> FirstColumn | None:
        """The column that is read first; None: all are read together."""
        if self._first is not None and not self._first.leaves_few:
            self._first = None
        return self._first

    def choose(self, batch: pa.RecordBatch) -> None:
        """Choose by the rows of a batch of all columns, once."""
        if self._has_chosen or not batch.num_rows:
            return
        self._has_chosen = True
        if batch.num_columns < 2:
            return
        shares = [(one.look(batch).kept, one) for one in self._candidates()]
        kept, best = min(shares, key=lambda each: each[0], default=(batch.num_rows, None))
        if best is not None and kept <= STEP_SHARE_MAX * batch.num_rows:
            self._first = best

    def _candidates(self) -> Iterable[FirstColumn]:
        for test in self._tests:
            if isinstance(test, AdaptiveKeyFilter) and test.is_on:
                # a look counts for another one
                yield FirstColumn(test.column, AdaptiveKeyFilter(test.column, test.filter).mask_of, test)
        for column, look in self._by_code:
            yield FirstColumn(column, look)
        by_column: dict[str, list[Expression]] = defaultdict(list)
        for part in self._parts:
            if len(names := set(columns_of(part))) == 1:
                by_column[names.pop()].append(part)
        for column, own in by_column.items():
            compiled = compile_predicate(conjunction(own), pa.schema([self._fields.field(column)]))
            if column not in self._narrow or column in compiled.narrow_columns:
                yield FirstColumn(column, _LookAt(column, compiled))


class _LookAt:
    def __init__(self, column: str, part: CompiledExpression) -> None:
        self._column = column
        self._part = part

    def __call__(self, batch: pa.RecordBatch) -> Mask:
        return self._part.mask(plain_batch(batch.select([self._column])))
