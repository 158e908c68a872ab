"""Quantiles of groups, whatever their values are: selected as words of 8 bytes where these hold them.

    quantile_type(data_type)                            float64 of numbers, times as they are
    quantiles(values, order, bounds, share, starts)     of groups that lie in memory, whose rows are in order or runs
    searched_quantile(blocks, type, count, share, most)      of one that does not
    between(low, high, fraction)                             of any values, from those beside it

    float64, integers, times     words                                             (group_quantiles, value_search)
    decimals                     their unscaled integers, where all of a batch fit into 18 digits: words
                                 else sorted group by group, or searched word by word from the highest on

Between two values lies the float64 nearest to the exact number (``exact_quantiles``); of decimals of more than 38
digits that between the floats nearest to both. Times are rounded to their unit.

Held by: tests/window/test_quantiles.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

import pyarrow as pa

from engine.records.arrow_functions import pc
from engine.records.narrow_decimals import NARROW_DIGITS_MAX
from engine.records.plain_scalars import array_of, scalar_of
from engine.window.exact_quantiles import exact_between
from engine.window.group_kernels import kept_before
from engine.window.group_order import order_of_runs
from engine.window.group_quantiles import group_quantiles
from engine.window.value_search import ValueSearch

_INT64: Final = pa.int64()
_DIGITS_MAX: Final = 38
_WIDEST: Final = pa.decimal256(76, 0)
Blocks = Callable[[], Iterable[pa.Array]]
#: the values on both sides of a place, and how far between them it is
_Beside = tuple[pa.Array, pa.Array, pa.Array]


def quantile_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type of a quantile of values of a type."""
    is_number = pa.types.is_integer(data_type) or pa.types.is_decimal(data_type)
    return pa.float64() if is_number else data_type


def quantiles(
    values: pa.Array | pa.ChunkedArray,
    order: pa.Array | None,
    bounds: pa.Array,
    share: float,
    starts: pa.Array | None = None,
) -> pa.Array:
    """Return the quantile of each group; ``order``: rows group by group, None: they are in order.

    starts: of runs of rows, which ``order`` names then; ``values`` are chunked.
    """
    if not pa.types.is_decimal(values.type):
        return between(*group_quantiles(values, order, bounds, share, starts))
    words = _as_words(values)
    if words is not None:
        low, high, fraction = group_quantiles(words, order, bounds, share, starts)
        return between(low, high, fraction, values.type.scale)
    if starts is not None:
        order, bounds = order_of_runs(order, bounds, starts)
        values = values.combine_chunks()
    return between(*_sorted_beside(values if order is None else pc.take(values, order), bounds, share))


def searched_quantile(blocks: Blocks, data_type: pa.DataType, count: int, share: float, rows_max: int) -> pa.Array:
    """Return the quantile of ``count`` values in blocks, of which so many may be collected."""
    place = share * (count - 1)
    low = int(place)
    is_wide = pa.types.is_decimal(data_type)
    at = _wide_search(blocks, data_type, rows_max) if is_wide else ValueSearch(blocks, data_type, rows_max).at
    lower = at(low)
    return between(lower, at(low + 1) if place > low else lower, array_of([place - low]))


def _as_words(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """Return decimals as their unscaled integers, None where one has no room in 18 digits."""
    try:
        narrow = pc.cast(values, pa.decimal64(NARROW_DIGITS_MAX, values.type.scale))
    except pa.ArrowInvalid:
        return None
    if isinstance(narrow, pa.ChunkedArray):
        return pa.chunked_array([_unscaled_words(chunk) for chunk in narrow.chunks])
    return _unscaled_words(narrow)


def _unscaled_words(narrow: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(_INT64, len(narrow), narrow.buffers(), narrow.null_count, narrow.offset)


def _sorted_beside(values: pa.Array, bounds: pa.Array, share: float) -> _Beside:
    """Return the values beside a share of each group's, which lie group by group, by a sort."""
    before = kept_before(pc.is_valid(values), bounds)
    starts = before.slice(0, len(before) - 1)
    counts = pc.subtract(before.slice(1), starts)
    offsets = pc.cast(bounds, pa.int32())
    groups = pc.list_parent_indices(pa.ListArray.from_arrays(offsets, values))
    first, last = bounds[0].as_py(), bounds[len(bounds) - 1].as_py()
    rows = pa.RecordBatch.from_arrays([groups, values.slice(first, last - first)], ["group", "value"])
    rows = pc.filter(rows, pc.is_valid(rows.column(1)))
    order = pc.sort_indices(rows, sort_keys=[("group", "ascending"), ("value", "ascending")])
    is_there = pc.greater(counts, 0)
    place = pc.multiply(pc.cast(pc.subtract(counts, 1), pa.float64()), share)
    whole = pc.floor(place)
    low = pc.add(pc.cast(starts, _INT64), pc.cast(whole, _INT64))
    beside = [low, pc.add(low, pc.cast(pc.greater(place, whole), _INT64))]
    nothing = scalar_of(None, _INT64)
    found = [pc.take(rows.column(1), pc.take(order, pc.if_else(is_there, each, nothing))) for each in beside]
    return found[0], found[1], pc.if_else(is_there, pc.subtract(place, whole), 0.0)


def _wide_search(blocks: Blocks, data_type: pa.DataType, rows_max: int) -> Callable[[int], pa.Array]:
    """Return a search for decimals at a position: word by word, from the one with the sign on."""

    def at(place: int) -> pa.Array:
        found: list[int] = []
        for _ in range(data_type.byte_width // 8):
            parts = partial(_words_behind, blocks, tuple(found))
            word = ValueSearch(parts, _INT64, rows_max).at(place)[0].as_py()
            place -= sum(pc.sum(pc.less(part, word)).as_py() or 0 for part in parts())
            found.append(word)
        return _of_words(found, data_type)

    return at


def _words_behind(blocks: Blocks, known: tuple[int, ...]) -> Iterator[pa.Array]:
    """Yield the next word of the values whose higher ones are known, in the order of signed integers."""
    for block in blocks():
        values = pc.drop_null(block)
        for place, word in enumerate(known):
            values = pc.filter(values, pc.equal(_word(values, place), word))
        yield _word(values, len(known))


def _word(values: pa.Array, place: int) -> pa.Array:
    """Return a word of each decimal, the highest first, as signed integers of its order."""
    size = values.type.byte_width
    whole = pa.Array.from_buffers(pa.binary(size), len(values), [None, values.buffers()[1]], 0, values.offset)
    part = pc.binary_slice(whole, start=size - 8 * place - 8, stop=size - 8 * place)
    found = pa.Array.from_buffers(_INT64, len(part), [None, part.buffers()[1]], 0, part.offset)
    return pc.bit_wise_xor(found, scalar_of(-(2**63), _INT64)) if place else found


def _of_words(found: list[int], data_type: pa.DataType) -> pa.Array:
    """Return the decimal of words, the highest first."""
    number = found[0]
    for word in found[1:]:
        number = number * 2**64 + (word + 2**63)
    size = data_type.byte_width
    return pa.Array.from_buffers(data_type, 1, [None, pa.py_buffer(number.to_bytes(size, "little", signed=True))])


def between(low: pa.Array, high: pa.Array, fraction: pa.Array, scale: int = 0) -> pa.Array:
    """Interpolate from one value to the next; ``scale``: of integers that are decimals."""
    data_type = low.type
    if pa.types.is_decimal(data_type) and data_type.precision <= _DIGITS_MAX:
        return exact_between(_unscaled(low), _unscaled(high), fraction, data_type.scale)
    if pa.types.is_integer(data_type):
        return exact_between(pc.cast(low, _WIDEST), pc.cast(high, _WIDEST), fraction, scale)
    if pa.types.is_decimal(data_type):
        low, high = (pc.cast(pc.cast(each, pa.string()), pa.float64()) for each in (low, high))
    if pa.types.is_floating(low.type):
        moved = pc.add(pc.multiply(low, pc.subtract(1.0, fraction)), pc.multiply(high, fraction))
        return pc.if_else(pc.equal(low, high), low, moved)
    ticks = low.view(_INT64)
    way = pc.multiply(pc.cast(pc.subtract(high.view(_INT64), ticks), pa.float64(), safe=False), fraction)
    return pc.add(ticks, pc.cast(pc.round(way), _INT64, safe=False)).view(low.type)


def _unscaled(values: pa.Array) -> pa.Array:
    """Return decimals as their unscaled integers."""
    whole = pa.decimal128(_DIGITS_MAX, 0)
    return pc.cast(
        pa.Array.from_buffers(whole, len(values), values.buffers(), values.null_count, values.offset), _WIDEST
    )
