"""Conditions of joins: from the plan's expression over both sides to what a join asks about candidate pairs.

    col("a") < col("b")  ─►  PairCondition(((0, 2), (1, 1)), schema(a, b), compiled predicate)

A name that both sides have is the left one's: a coalesced key, whose values are the same in every pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from engine.expressions.evaluate import compile_predicate
from engine.graph.expression import columns_of
from engine.join.pair_condition import PairCondition
from engine.records.plain_types import plain_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.graph.expression import Expression
    from engine.records.row_mask import Mask


def pair_condition(
    expression: Expression | None, left: pa.Schema, right: pa.Schema, check: Callable[[], None]
) -> PairCondition | None:
    """Return a join's condition over the schemas of its inputs, or None when it has none.

    check: called before each batch of pairs: a join may try pairs for hours and return none.
    """
    if expression is None:
        return None
    # rows are counted by a column, so a constant condition gets one as well
    names = dict.fromkeys(columns_of(expression)) or {left.names[0]: None}
    columns = tuple(
        (0, left.get_field_index(name)) if name in left.names else (1, right.get_field_index(name)) for name in names
    )
    schema = plain_schema(pa.schema([(left, right)[side].field(index) for side, index in columns]))
    compiled = compile_predicate(expression, schema)

    def predicate(pairs: pa.RecordBatch) -> Mask:
        check()
        return compiled.mask(pairs)

    return PairCondition(columns, schema, predicate)
