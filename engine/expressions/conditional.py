"""when/then/otherwise, and, or and coalesce over a batch. Of a case, the first true condition wins, and null is false.

Where no branch can fail, all are evaluated over the whole batch and chosen from. Where a value can make one fail
(``when(y != 0).then(x // y)``), each branch sees just the rows that reach it:

    rows ──► condition 1 ─true─► value 1 ─┐
               └─false─► condition 2 ─true─► value 2 ─┤──► put back in the order of the rows
                           └─false─► otherwise ───────┘

The operands of and, or and coalesce are evaluated over the whole batch as well. Where a value makes one fail, each sees
just the rows that those before it leave open: not false for and, not true for or, null for coalesce. The others count
as null, which changes none of the three.

Held by: tests/expressions/test_open_rows.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa

from engine.expressions.binding import UNFIT, Datum, Form, Operand, as_array, fill_false
from engine.records.arrow_functions import pc
from engine.records.choices import if_else
from engine.records.plain_scalars import scalar_of

_ONE: Final = scalar_of(1, pa.int64())
_NO_PLACE: Final = scalar_of(None, pa.int64())

Branches = Sequence[tuple[Operand, Operand]]
Evaluate = Callable[[pa.RecordBatch], Datum]
#: functions whose result may be known from the first operands, with the rows that these leave open
OPEN_ROWS: Final[Mapping[str, Callable[[pa.Array], pa.Array]]] = {
    "and": lambda known: pc.fill_null(known, True),
    "or": lambda known: pc.invert(fill_false(known)),
    "coalesce": pc.is_null,
    "fill_null": pc.is_null,
}


def bind_case(branches: Branches, otherwise: Operand, columns: Sequence[int]) -> Operand:
    """Return the operand of a case whose values all have the type of ``otherwise``; ``columns`` are those it reads."""
    parts = [operand for branch in branches for operand in branch] + [otherwise]
    can_raise = any(operand.can_raise for operand in parts)
    evaluate = _lazily(branches, otherwise) if can_raise and columns else _eagerly(branches, otherwise)
    return Operand(otherwise.type, evaluate, can_raise, form=Form("case", tuple(parts)))


def _eagerly(branches: Branches, otherwise: Operand) -> Callable[[pa.RecordBatch], Datum]:
    def evaluate(batch: pa.RecordBatch) -> Datum:
        result = otherwise.evaluate(batch)
        for condition, value in reversed(branches):
            result = if_else(fill_false(condition.evaluate(batch)), value.evaluate(batch), result)
        return result

    return evaluate


def _lazily(branches: Branches, otherwise: Operand) -> Callable[[pa.RecordBatch], Datum]:
    def evaluate(batch: pa.RecordBatch) -> Datum:
        rest = batch
        rest_positions = pc.cumulative_sum(pa.repeat(_ONE, batch.num_rows))
        pieces: list[pa.Array] = []
        positions: list[pa.Array] = []
        for condition, value in branches:
            mask = as_array(fill_false(condition.evaluate(rest)), rest.num_rows)
            taken = pc.filter(rest, mask)
            pieces.append(as_array(value.evaluate(taken), taken.num_rows))
            positions.append(pc.filter(rest_positions, mask))
            others = pc.invert(mask)
            rest, rest_positions = pc.filter(rest, others), pc.filter(rest_positions, others)
        pieces.append(as_array(otherwise.evaluate(rest), rest.num_rows))
        positions.append(rest_positions)
        order = pc.sort_indices(pa.concat_arrays(positions))
        return pc.take(pa.concat_arrays(pieces), order)

    return evaluate


def bind_open_rows(function: str, kernel: Callable[..., Datum], operands: Sequence[Evaluate]) -> Evaluate:
    """Return the evaluation of one of OPEN_ROWS where a later operand can fail."""
    is_open = OPEN_ROWS[function]

    def evaluate(batch: pa.RecordBatch) -> Datum:
        try:
            return kernel(*[operand(batch) for operand in operands])
        except UNFIT:
            known = as_array(operands[0](batch), batch.num_rows)
        for operand in operands[1:]:
            mask = is_open(known)
            rows = pc.filter(batch, mask)
            places = pc.subtract(pc.cumulative_sum(pc.cast(mask, pa.int64())), _ONE)
            values = as_array(operand(rows), rows.num_rows)
            known = kernel(known, pc.take(values, if_else(mask, places, _NO_PLACE)))
        return known

    return evaluate
