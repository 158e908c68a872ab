"""Lists as their elements and back, and elements by their positions, without a look at each list in Python.

    element_at(lists, index)        the element at a position, negative from the end, null beyond

    flat_lists(lists) -> FlatLists  all elements, with the list and the place that each has
    lists_of(values, offsets, ...)  lists of elements

    offsets ──► begin + index, or end + index ──► null where that is outside ──► take

Held by: tests/expressions/test_nested_functions.py
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from engine.expressions.binding import Datum
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of


def bounds_of(lists: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the offsets at which each list begins and ends in ``lists.values``, as int64."""
    offsets = pc.cast(lists.offsets, pa.int64())
    return offsets.slice(0, len(lists)), offsets.slice(1, len(lists))


def element_at(lists: pa.Array, index: Datum) -> pa.Array:
    """Return the element of each list at a position, an int or int64 values; null where the list has none there."""
    begins, ends = bounds_of(lists)
    position = scalar_of(index, pa.int64()) if isinstance(index, int) else index
    # far positions are as good as one beyond the longest list, and do not overflow
    position = pc.min_element_wise(pc.max_element_wise(position, -(2**40), skip_nulls=False), 2**40, skip_nulls=False)
    place = pc.if_else(pc.less(position, 0), pc.add(ends, position), pc.add(begins, position))
    is_there = pc.and_(pc.greater_equal(place, begins), pc.less(place, ends))
    is_there = pc.and_(is_there, pc.is_valid(lists))
    return pc.take(lists.values, pc.if_else(is_there, place, scalar_of(None, pa.int64())))


class FlatLists(msgspec.Struct, frozen=True):
    """Lists as all their elements, and which list each is of; null lists have none."""

    #: elements of all lists, in order
    values: pa.Array
    #: offsets at which lists begin, int64; one more than there are lists
    offsets: pa.Array
    #: index of the list that each element belongs to, int64
    parents: pa.Array
    is_valid: pa.Array

    @property
    def places(self) -> pa.Array:
        """Place of each element in its list, from 0."""
        return pc.subtract(positions(len(self.values)), pc.take(self.offsets, self.parents))

    def counts(self, mask: pa.Array) -> pa.Array:
        """Return the number of elements of each list a mask has; null for null lists."""
        before = running_total(pc.cast(pc.fill_null(mask, False), pa.int64()))
        ends = pc.take(before, self.offsets)
        found = pc.subtract(ends.slice(1), ends.slice(0, len(ends) - 1))
        return pc.if_else(self.is_valid, found, scalar_of(None, pa.int64()))

    def lists(self, values: pa.Array, counts: pa.Array, like: pa.DataType) -> pa.Array:
        """Return lists of values, as many of them for each as ``counts`` says, of the kind of list ``like`` is."""
        return lists_of(values, running_total(pc.fill_null(counts, 0)), self.is_valid, like)

    def kept(self, mask: pa.Array, like: pa.DataType) -> pa.Array:
        """Return the lists with the elements of a mask only."""
        return self.lists(pc.filter(self.values, mask), self.counts(mask), like)


def positions(count: int) -> pa.Array:
    """Return 0, 1, 2 and so on, as int64."""
    return running_total(pa.repeat(scalar_of(1), count)).slice(0, count)


def running_total(counts: pa.Array) -> pa.Array:
    """Return the sums of all values before each, and of all: one more than there are values."""
    return pa.concat_arrays([pa.repeat(scalar_of(0), 1), pc.cumulative_sum(counts)])


def flat_lists(lists: pa.Array) -> FlatLists:
    """Return the elements of lists."""
    lengths = pc.cast(pc.fill_null(pc.list_value_length(lists), 0), pa.int64())
    offsets = running_total(lengths)
    values = pc.list_flatten(lists)
    whole = pa.LargeListArray.from_arrays(offsets, values)
    return FlatLists(values, offsets, pc.list_parent_indices(whole), pc.is_valid(lists))


def lists_of(values: pa.Array, offsets: pa.Array, is_valid: pa.Array, like: pa.DataType) -> pa.Array:
    """Return lists from their elements and int64 offsets from 0 on, large ones where ``like`` is of large ones."""
    kind, width = (pa.LargeListArray, pa.int64()) if pa.types.is_large_list(like) else (pa.ListArray, pa.int32())
    offsets = pc.cast(offsets, width)
    if pc.all(is_valid).as_py() is not False:
        return kind.from_arrays(offsets, values)
    return kind.from_arrays(offsets, values, mask=pc.invert(is_valid))
