"""TopKeys: which rows of a source can still be among the first n of an order, by the first of its keys.

    keys.add(array)                             keys of rows that will be there, each row once
    keys.mask(array) -> mask, or None           false: n rows come strictly before it; None: not known of any
    keys.may_be_among(lows, highs, nulls)       the same of row groups, by their bounds
    keys.best_first(lows, highs)                row groups, those that begin with the best keys first

    order           ascending          plain ─► NaN          nulls before all of them, or behind
                    descending         NaN ─► plain
    threshold       the n-th key, in which of the three kinds of keys it lies

A row with a key like the n-th stays, so whichever of them an order takes, it is there. Where the key is the only one
that is so until n rows have come out: the sort is stable, and takes the first ones.

Of the keys that were added n are kept: they are cut back when there is an eighth more. Where these are more than
KEPT_BYTES_MAX, no more are added; a threshold that is known stays right.

Thread: one. Source: the dynamic filters of top-n in DuckDB and DataFusion; the top-n threshold of Impala.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of
from engine.records.plain_types import plain_array
from engine.records.row_mask import Mask

if TYPE_CHECKING:
    from engine.graph.sort_key import SortKey

KEPT_BYTES_MAX: Final = 4 << 20
#: share of the rows wanted, after which keys are cut back to that number
_NEW_SHARE: Final = 8

_TRUE = scalar_of(True)


def has_top_keys(data_type: pa.DataType) -> bool:
    """Whether the order of a plain type is that of Arrow's comparisons."""
    types = pa.types
    is_number = types.is_integer(data_type) or types.is_float32(data_type) or types.is_float64(data_type)
    is_text = types.is_string(data_type) or types.is_large_string(data_type)
    is_bytes = types.is_binary(data_type) or types.is_large_binary(data_type)
    is_moment = types.is_date32(data_type) or types.is_time(data_type) or types.is_timestamp(data_type)
    return bool(is_number or is_text or is_bytes or is_moment or types.is_decimal128(data_type))


class TopKeys:
    """The first keys of the best rows that have been seen."""

    def __init__(self, key: SortKey, count: int, *, is_only_key: bool = False) -> None:
        self._descending = key.descending
        self._is_only_key = is_only_key
        #: number of rows wanted
        self.count = count
        in_order = ("nan", "plain") if key.descending else ("plain", "nan")
        #: kinds of keys in order
        self._kinds = (*in_order, "null") if key.nulls_last else ("null", *in_order)
        self._counts = {"null": 0, "nan": 0}
        self._values: list[pa.Array] = []
        self._value_count = 0
        self._bytes = 0
        self._new = 0
        self._is_full = False
        #: kind of the n-th key; the key follows if it is plain
        self._kind = ""
        self._worst: Any = None
        #: number of rows returned under this threshold
        self._rows_out = 0
        self._is_strict = False

    @property
    def is_known(self) -> bool:
        """Whether there have been enough rows for a threshold."""
        return bool(self._kind)

    @property
    def worst(self) -> pa.Scalar | None:
        """The n-th key; None: it is not known, or null or NaN."""
        return self._worst if self._kind == "plain" else None

    def add(self, array: pa.Array) -> None:
        """Take the keys of rows that come out; those that are strictly worse than the threshold do not matter."""
        if self._is_full or not len(array):
            return
        if array.null_count:
            self._counts["null"] += array.null_count
            array = pc.drop_null(array)
        if pa.types.is_floating(array.type):
            are_nan = pc.is_nan(array)
            if are_nan.true_count:
                self._counts["nan"] += are_nan.true_count
                array = pc.filter(array, pc.invert(are_nan))
        if len(array):
            wanted = self._values[0].type if self._values else array.type
            self._values.append(array if array.type == wanted else pc.cast(array, wanted))
            self._value_count += len(array)
            self._bytes += array.nbytes
        self._new += 1 if not len(array) else len(array)
        if self._new * _NEW_SHARE >= self.count or self._bytes > KEPT_BYTES_MAX:
            self.settle()
        if self._bytes > KEPT_BYTES_MAX:
            self._is_full, self._values, self._value_count = True, [], 0

    def settle(self) -> None:
        """Find the threshold of all keys that have been added."""
        self._new = 0
        before = 0
        for kind in self._kinds:
            count = self._value_count if kind == "plain" else self._counts[kind]
            if before + count >= self.count:
                was = self._kind, self._worst
                self._kind = kind
                self._cut(max(0, self.count - before) if kind == "plain" else self._value_count)
                if (self._kind, self._worst) != was:
                    self._rows_out, self._is_strict = 0, False
                return
            before += count

    def count_out(self, rows: int) -> None:
        """Take note of rows that came out: enough of them, and nothing else orders them, and others are no better."""
        self._rows_out += rows if self._kind else 0
        self._is_strict = self._is_only_key and self._rows_out >= self.count

    def _cut(self, count: int) -> None:
        """Keep the best of the plain keys, the worst of which is the threshold."""
        if self._kind != "plain":
            if self._kinds.index("plain") > self._kinds.index(self._kind):
                self._values, self._value_count, self._bytes = [], 0, 0
            return
        values = self._values[0] if len(self._values) == 1 else pa.concat_arrays(self._values)
        if len(values) > count:
            first = len(values) - count if self._descending else count - 1
            places = pc.partition_nth_indices(values, pivot=first)
            kept = places.slice(first) if self._descending else places.slice(0, count)
            values = pc.take(values, kept)
        self._worst = pc.min_max(values)["min" if self._descending else "max"]
        self._values, self._value_count = [values], len(values)
        self._bytes = values.nbytes

    def mask(self, array: pa.Array) -> pa.BooleanArray | None:
        """Return the mask of keys that are not strictly worse than the threshold; None: all, as far as is known."""
        if self._keeps_all:
            return None
        kept_null = self._is_kept("null")
        if self._kind == "plain":
            found = self._compared(array)
            if self._is_kept("nan") and pa.types.is_floating(array.type):
                found = pc.or_(found, pc.is_nan(array))
        elif pa.types.is_floating(array.type) and self._is_kept("plain") != self._is_kept("nan"):
            found = pc.is_nan(array)
            found = pc.invert(found) if self._is_kept("plain") else found
        else:
            found = pa.repeat(scalar_of(self._is_kept("plain")), len(array))
            if array.null_count:
                found = pc.if_else(pc.is_valid(array), found, scalar_of(kept_null))
            return found
        return pc.fill_null(found, scalar_of(kept_null)) if array.null_count else found

    def may_be_among(self, lows: pa.Array, highs: pa.Array, nulls: pa.Array) -> list[bool]:
        """Return a flag for each row group: whether it may have a row to keep; null keys and counts: unknown.

        Bounds do not say whether there is a NaN.
        """
        if self._keeps_all:
            return [True] * len(lows)
        if pa.types.is_floating(lows.type) and self._is_kept("nan"):
            return [True] * len(lows)
        if self._kind == "plain":
            possible = pc.fill_null(self._compared(highs if self._descending else lows), _TRUE)
        else:
            possible = pa.repeat(scalar_of(self._is_kept("plain")), len(lows))
        if self._is_kept("null"):
            possible = pc.or_(possible, pc.fill_null(pc.not_equal(nulls, scalar_of(0)), _TRUE))
        found: list[bool] = possible.to_pylist()
        return found

    def best_first(self, lows: pa.Array, highs: pa.Array) -> Sequence[int]:
        """Return the places of row groups: those with the best bounds first, those without bounds at the end."""
        bounds, order = (highs, "descending") if self._descending else (lows, "ascending")
        places: list[int] = pc.array_sort_indices(bounds, order=order, null_placement="at_end").to_pylist()
        return places

    @property
    def _keeps_all(self) -> bool:
        is_last = self._kind == self._kinds[-1] != "plain"
        return not self._kind or (is_last and not self._is_strict)

    def _is_kept(self, kind: str) -> bool:
        """Whether keys of a kind come before the threshold, or are like it."""
        own, last = self._kinds.index(kind), self._kinds.index(self._kind)
        return own < last or (own == last and not self._is_strict)

    def _compared(self, values: pa.Array) -> pa.BooleanArray:
        """Return the mask of plain keys that come before the threshold, or equal it."""
        worst = self._worst if self._worst.type == values.type else pc.cast(self._worst, values.type)
        if self._descending:
            return (pc.greater if self._is_strict else pc.greater_equal)(values, worst)
        return (pc.less if self._is_strict else pc.less_equal)(values, worst)


class TopTest:
    """The keys of a top-n at work on batches of a source.

    ``is_learning``: keys of rows that are looked at are added; each row once. ``is_dropping``: what is left out counts.
    """

    #: flag that other tests have, too: this one is never switched off
    is_on = True

    def __init__(self, key: SortKey, count: int, *, is_only_key: bool = False) -> None:
        self.column = key.column
        self.keys = TopKeys(key, count, is_only_key=is_only_key)
        self.is_learning = True
        self.is_dropping = True
        self.rows_dropped = 0

    def may_have(self, array: pa.Array) -> bool:
        """Return whether one of some keys may be among the first."""
        found = self._found(array)
        return len(array) > 0 if found is None else found.true_count > 0

    def mask(self, array: pa.Array, mask: Mask | None = None) -> Mask | None:
        """Return the mask of rows that may be among the first, within another mask; array: plain, or a dictionary."""
        found = self._anded(mask, self._found(array))
        if self.is_learning and (found is None or found.kept):  # hardly ever, when the threshold is a good one
            self._learn(array if found is None else pc.filter(array, found.array()))
            found = self._anded(mask, self._found(array))
        if self.is_dropping and found is not None:
            asked, left = len(array) if mask is None else mask.kept, found.kept
            self.rows_dropped += asked - left
            self.keys.count_out(left)
        return found

    def mask_of(self, batch: pa.RecordBatch, mask: Mask | None = None) -> Mask | None:
        """Mask the rows of a batch, which has the column, as ``mask`` does."""
        return self.mask(batch.column(self.column), mask)

    @staticmethod
    def _anded(mask: Mask | None, found: pa.BooleanArray | None) -> Mask | None:
        if found is None:
            return mask
        return Mask(found) if mask is None else mask.both(Mask(found))

    def _learn(self, array: pa.Array) -> None:
        self.keys.add(plain_array(array, array.type.value_type) if pa.types.is_dictionary(array.type) else array)

    def _found(self, array: pa.Array) -> pa.BooleanArray | None:
        if not pa.types.is_dictionary(array.type):
            return self.keys.mask(array)
        texts = pa.concat_arrays([array.dictionary, pa.nulls(1, array.dictionary.type)])
        of_texts = self.keys.mask(texts)
        if of_texts is None:
            return None
        places = pc.fill_null(pc.cast(array.indices, pa.int64()), scalar_of(len(texts) - 1))
        return pc.take(of_texts, places)
