"""``rand(seed)``, ``row_place()`` and ``uuid()``: values that a row has by its place in its subtask.

    row_place() = number of the subtask * 2**44 + how many rows were seen there before
    number of a row = the first 53 bits of XXH64(place of the row, seed XXH64(seed, number of the subtask)), over 2**53

A number follows from the seed, the subtask and how many rows the expression has seen there, however they lie in
batches. Splits of a source are given to subtasks in their order, before a job runs: behind a source, and what looks at
one row at a time, a seed gives the same rows the same numbers as long as files and parallelism are the same. Rows that
other tasks have sent come in another order each time. Two ``rand`` with one seed are the same number in a row.

Places grow from row to row and from subtask to subtask, so they are the order in which ``collect()`` gives the rows.

Invariant: the expression is evaluated once for each row, in the order of rows; it stands in projections only, which
are neither repeated nor moved with it (``engine.graph.function_table.is_deterministic``).

Held by: tests/expressions/test_random_numbers.py
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

import pyarrow as pa

from engine.expressions.byte_transforms import fold_words
from engine.expressions.character_kernels import digits_of
from engine.expressions.list_parts import positions
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: number of the subtask that opens its operators in this thread
SUBTASK: Final[ContextVar[int]] = ContextVar("SUBTASK", default=0)
_UNIT: Final = 2.0**-53
_UUID_VERSION: Final = "4"
#: number larger than that of the rows of a subtask
_PLACES: Final = 2**44


class _Stage:
    """The place of this process among many, each with subtasks of its own: a task of Spark."""

    first_subtask = 0


def set_first_subtask(number: int) -> None:
    """Set the number of this process's subtask 0, for operators that are opened from now on."""
    _Stage.first_subtask = number


def _subtask() -> int:
    return _Stage.first_subtask + SUBTASK.get()


def _places() -> Callable[[pa.RecordBatch], pa.Array]:
    """Return a function that numbers the rows of batches, one after another."""
    seen = 0

    def places(batch: pa.RecordBatch) -> pa.Array:
        nonlocal seen
        found = pc.add(positions(batch.num_rows), scalar_of(seen))
        seen += batch.num_rows
        return found

    return places


def random_numbers(seed: int) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return a function that gives random numbers to batches, one after another."""
    (stream,) = fold_words(pa.array([_subtask()], pa.int64()), pa.array([seed], pa.int64()))
    places_of = _places()

    def numbers(batch: pa.RecordBatch) -> pa.Array:
        bits = fold_words(places_of(batch), pa.repeat(stream, batch.num_rows)).view(pa.uint64())
        whole = pc.cast(pc.shift_right(bits, pa.scalar(11, pa.uint64())), pa.float64())
        return pc.multiply(whole, scalar_of(_UNIT))

    return numbers


def uuids(seed: int) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return a function that gives random UUIDs of version 4 to batches, one after another."""
    subtask = pa.array([_subtask()] * 2, pa.int64())
    streams = fold_words(subtask, pa.array([seed, ~seed], pa.int64()))
    places_of = _places()

    def texts(batch: pa.RecordBatch) -> pa.Array:
        count, places = batch.num_rows, places_of(batch)
        first, second = (_digits_of(fold_words(places, pa.repeat(stream, count))) for stream in streams)
        # the version, 4, and the variant, whose digit is 8, 9, a or b
        variant = pc.replace_substring_regex(_part(second, 0, 1), "[4-7]", "9")
        for pattern, digit in (("[0-3]", "8"), ("[c-f]", "b")):
            variant = pc.replace_substring_regex(variant, pattern, digit)
        third, fourth = ([_UUID_VERSION, _part(first, 13, 16)], [variant, _part(second, 1, 4)])
        parts = [_joined(each) for each in (third, fourth)]
        return _joined([_part(first, 0, 8), _part(first, 8, 12), *parts, _part(second, 4, 16)], "-")

    return texts


def _digits_of(words: pa.Array) -> pa.Array:
    """Return the 16 hexadecimal digits of each integer."""
    return pc.utf8_lower(pc.utf8_lpad(pc.cast(digits_of(words, 4), pa.string()), 16, "0"))


def _part(texts: pa.Array, start: int, stop: int) -> pa.Array:
    return pc.utf8_slice_codeunits(texts, start, stop)


def _joined(parts: list[Any], separator: str = "") -> pa.Array:
    return pc.binary_join_element_wise(*parts, separator)


def row_places() -> Callable[[pa.RecordBatch], pa.Array]:
    """Return a function that gives row numbers to batches, one after another."""
    next_place = _subtask() * _PLACES

    def places(batch: pa.RecordBatch) -> pa.Array:
        nonlocal next_place
        first, next_place = next_place, next_place + batch.num_rows
        return pc.add(positions(batch.num_rows), scalar_of(first))

    return places
