"""The rows of range() and generate_series() of each row: its numbers, by places in a list of as many.

Held by: tests/sql/test_subqueries.py
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from engine.api.data_set import DataSet
from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit
from engine.errors import NotYetSupportedError, PlanError
from engine.sql.frames import Binder
from engine.sql_values.constants import is_constant, scalar_of


def numbers_beside(data: DataSet, column: str, name: str, values: Sequence[Expr], binder: Binder) -> DataSet:
    """Return rows with a column of the numbers of a call whose arguments are of each row. Raises: PlanError."""
    if not 1 <= len(values) <= 3 or not all(pa.types.is_integer(binder.type_of(one)) for one in values):
        raise PlanError(f"{name}() of values of rows takes one to three whole numbers; cast them to BIGINT")
    given = [one if is_constant(one) else one.cast(pa.int64()) for one in values]
    start, stop, *rest = given if len(given) > 1 else [lit(0), *given]
    if rest and not is_constant(rest[0]):
        raise NotYetSupportedError(f"the step of {name}() of values of rows that is no constant")
    step = scalar_of(rest[0]).as_py() if rest else 1
    if not step:
        raise PlanError(f"{name}() with a step of 0")
    last = stop - (1 if step > 0 else -1) if name == "range" else stop
    count = (last - start) // step + 1
    some = data.with_columns(**{column: count}).filter(col(column) > 0)
    places = some.with_columns(**{column: lit(",").str.repeat(col(column) - 1).str.split(",")})
    found = places.explode(column, f"{column} place", keep_empty=False)
    return found.with_columns(**{column: start + col(f"{column} place") * step}).drop(f"{column} place")
