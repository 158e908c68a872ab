"""``rand(seed)``: numbers from 0 up to 1, one for each row.

    number of a row = the first 53 bits of XXH64(place of the row, seed XXH64(seed, number of the subtask)), over 2**53

A number follows from the seed, the subtask and how many rows the expression has seen there, however they lie in
batches. Which subtask reads which rows is decided while a job runs, so a seed makes a job repeatable with one subtask
only. Two ``rand`` with one seed are the same number in a row.

Invariant: the expression is evaluated once for each row, in the order of rows; it stands in projections only, which
are neither repeated nor moved with it (``engine.graph.function_table.is_deterministic``).

Held by: tests/expressions/test_random_numbers.py
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

import pyarrow as pa

from engine.expressions.byte_transforms import fold_words
from engine.expressions.list_parts import positions
from engine.records.arrow_functions import pc
from engine.records.plain_scalars import scalar_of

#: number of the subtask whose operators are opened in this thread
SUBTASK: Final[ContextVar[int]] = ContextVar("SUBTASK", default=0)
_UNIT: Final = 2.0**-53


def random_numbers(seed: int) -> Callable[[pa.RecordBatch], pa.Array]:
    """Return what gives the numbers of batches, one after another."""
    (stream,) = fold_words(pa.array([SUBTASK.get()], pa.int64()), pa.array([seed], pa.int64()))
    seen = 0

    def numbers(batch: pa.RecordBatch) -> pa.Array:
        nonlocal seen
        count = batch.num_rows
        places = pc.add(positions(count), scalar_of(seen))
        seen += count
        bits = fold_words(places, pa.repeat(stream, count)).view(pa.uint64())
        whole = pc.cast(pc.shift_right(bits, pa.scalar(11, pa.uint64())), pa.float64())
        return pc.multiply(whole, scalar_of(_UNIT))

    return numbers
