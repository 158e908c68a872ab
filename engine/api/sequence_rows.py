"""Rows of ``env.sequence``: numbers, dates or timestamps from one to another by equal steps.

    sequence(0, 10**9)    ranges of 65,536 numbers, a row each ─► sequence(start, stop) of each row ─► explode

Numbers are made where they are used, so a sequence costs a table of its ranges.

Held by: tests/api/test_sequence_rows.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.column_expressions.expressions import col, lit
from engine.column_expressions.row_functions import sequence
from engine.errors import SchemaError
from engine.records.plain_scalars import array_of

if TYPE_CHECKING:
    from engine.choices import SequenceEnds

#: numbers that one row of ranges stands for
_RANGE: Final = 1 << 16
_RANGES_MAX: Final = 1 << 20


def ranges_of(start: int, stop: int, step: int, *, is_left: bool) -> pa.Table:
    """Return the first and the last number of each range."""
    last = stop - (1 if step > 0 else -1) if is_left else stop
    numbers = range(start, last + (1 if step > 0 else -1), step)
    begins = numbers[::_RANGE]
    if len(begins) > _RANGES_MAX:
        raise SchemaError(f"sequence({start}, {stop}): more than {_RANGE * _RANGES_MAX} numbers")
    ends = [numbers[min(at + _RANGE, len(numbers)) - 1] for at in range(0, len(numbers), _RANGE)]
    return pa.table({"start": array_of(list(begins), pa.int64()), "stop": array_of(ends, pa.int64())})


def sequence_rows(environment: Any, start: Any, stop: Any, step: Any, name: str, closed: SequenceEnds) -> Any:
    """Return the data set of one column. Raises: SchemaError for what is no sequence."""
    given = [start, stop, *([] if step is None else [step])]
    if all(isinstance(one, int) and not isinstance(one, bool) for one in given):
        if step == 0:
            raise SchemaError("sequence(step=0): a step of 0 leads nowhere")
        sequence(start, stop, step, closed)
        by = 1 if step is None else step
        ranges = environment.from_arrow(ranges_of(start, stop, by, is_left=closed == "left"))
        values = sequence(col("start"), col("stop"), by)
    else:
        ranges = environment.from_arrow(pa.table({"start": array_of([0], pa.int64())}))
        values = sequence(lit(start), lit(stop), step, closed)
    return ranges.select(values.alias(name)).explode(name, keep_empty=False)
