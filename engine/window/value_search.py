"""ValueSearch: the value at a place of more values than lie in memory, in their order, without a sort.

    search = ValueSearch(blocks, data_type, rows_max)       blocks() -> arrays of values, as often as it is called
    search.at(place) -> array of one                        place: from 0, among values that are not null

    pass 1    how often is each value of the first 16 bits there ──► those of the place, and how many values have them
    pass 2    few enough: collected, and one of them selected        else counted by the next 16 bits, and so on

So it takes two passes in general, five at most, and half a megabyte beside what is collected. What was counted and
collected is kept for the next place, which is mostly beside the one before.

Source: Munro and Paterson, "Selection and sorting with limited storage" (1980).

Held by: tests/window/test_value_search.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import pyarrow as pa

from engine.window.group_quantiles import DigitCounts, value_at, value_of, words_of

_WORD_BITS: Final = 64
_DIGIT_BITS: Final = 16


class ValueSearch:
    """Args: rows_max: so many values are collected at most."""

    def __init__(self, blocks: Callable[[], Iterable[pa.Array]], data_type: pa.DataType, rows_max: int) -> None:
        self._blocks, self._type, self._rows_max = blocks, data_type, rows_max
        #: counts by bits behind the digit, and those before it
        self._counted: dict[tuple[int, int], DigitCounts] = {}
        #: the values collected last: the number of bits behind their prefix, and the prefix
        self._place_of_kept: tuple[int, int] | None = None
        self._kept = pa.nulls(0, data_type)

    def at(self, place: int) -> pa.Array:
        """Return the value at a place, which there is."""
        shift, prefix = _WORD_BITS, 0
        while shift > 0:
            shift -= _DIGIT_BITS
            digit, before, count = self._counts(shift, prefix).find(place)
            place -= before
            prefix = prefix << _DIGIT_BITS | digit
            if count <= self._rows_max:
                return value_at(self._collected(shift, prefix), place)
        return value_of(prefix, self._type)

    def _counts(self, shift: int, prefix: int) -> DigitCounts:
        counts = self._counted.get((shift, prefix))
        if counts is None:
            counts = self._counted[shift, prefix] = DigitCounts(shift, prefix)
            for values in self._blocks():
                counts.add(values)
        return counts

    def _collected(self, shift: int, prefix: int) -> pa.Array:
        if self._place_of_kept != (shift, prefix):
            self._place_of_kept = shift, prefix
            self._kept = pa.concat_arrays([words_of(values, shift, prefix) for values in self._blocks()])
        return self._kept
