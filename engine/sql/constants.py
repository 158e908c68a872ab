"""Constants of a query, evaluated by the code that evaluates columns, so that both have equal values.

    computed(lit("2024-02-29").cast(date) + interval) -> lit(2024-03-01 12:00)
    constant_call("make_date", [lit(2024), lit(2), lit(29)])    functions that columns do not have: the planner's own

The planner's own rule for constants is turned off: it computes them by other rules than Drey does columns, and drops
casts that round. What has no value (1 / 0) stays as it is, and fails where a row is there to be computed.

Held by: tests/sql/test_constants.py
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.expressions import lit
from engine.errors import DataError, NotYetSupportedError, PlanError, SchemaError
from engine.expressions.evaluate import evaluate
from engine.expressions.literals import literal_scalar
from engine.graph.expression import ColumnRef, Literal, columns_of
from engine.graph.function_table import is_deterministic
from engine.records.plain_scalars import array_of
from engine.sql.call_table import REFUSED

_ONE_ROW: Final = pa.record_batch({"": pa.nulls(1)})
#: functions with another value for each row
_RANDOM: Final = frozenset(("random", "uuid"))
_MOMENTS: Final = {"now": pa.timestamp("us", "UTC"), "current_date": pa.date32(), "current_time": pa.time64("ns")}


_NAMES: Final = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "REAL",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
}


class NoValueError(PlanError):
    """A text of a query is no value of the type that it is cast to."""

    def __init__(self, text: str, wanted: pa.DataType) -> None:
        self.text = text
        name = _NAMES.get(wanted) or str(wanted).partition("[")[0].replace("decimal128", "decimal").upper()
        self.sentence = f"'{text}' is no {name}"
        super().__init__(f"sql: {self.sentence}")


class NoFunctionError(NotYetSupportedError):
    """The planner knows a function that Drey does not compute of columns."""

    def __init__(self, name: str, place: str = "") -> None:
        self.name = name
        hint = f" ({REFUSED[name]})" if name in REFUSED else ""
        super().__init__(f"sql: {place}the function {name}() of columns{hint}")


def is_constant(value: Expr) -> bool:
    """Return whether an expression is a constant."""
    return isinstance(value.expression, Literal)


def is_null(value: Expr) -> bool:
    """Return whether an expression is NULL."""
    return is_constant(value) and not scalar_of(value).is_valid


def scalar_of(value: Expr) -> pa.Scalar:
    """Return the value of a constant."""
    assert isinstance(value.expression, Literal)
    return literal_scalar(value.expression)


def computed(value: Expr) -> Expr:
    """Return the constant that an expression is, or the expression where it reads columns or has no value."""
    expression = value.expression
    if isinstance(expression, Literal | ColumnRef) or next(columns_of(expression), None) is not None:
        return value
    try:
        return lit(evaluate(expression, _ONE_ROW)[0]) if is_deterministic(expression) else value
    except (DataError, SchemaError):
        return value


def constant_call(name: str, arguments: Sequence[Expr], moment: datetime) -> Expr:
    """Return the value of a planner's function over constants; NotYetSupportedError for columns.

    moment: that of the query, which now() is wherever it stands.
    """
    if name in _MOMENTS:
        return lit(pa.scalar(moment, pa.timestamp("us", "UTC")).cast(_MOMENTS[name]))
    if name in _RANDOM or not all(map(is_constant, arguments)):
        raise NoFunctionError(name)
    from datafusion import SessionContext

    places = {f"a{number}": scalar_of(value) for number, value in enumerate(arguments)}
    query = f"SELECT {name}({', '.join(f'${place}' for place in places)})"
    try:
        (value,) = SessionContext().sql(query, param_values=places).to_arrow_table().column(0).to_pylist()
    except Exception as error:
        raise PlanError(f"sql: {name}: {str(error).rpartition(': ')[2]}") from None
    if name == "map":
        raise NotYetSupportedError("the SQL function map() (write map_from(keys, values) in Python)")
    return lit(value)


def constant_cast(text: str, wanted: pa.DataType) -> Expr:
    """Return a text that Drey does not read as a date or time, as the planner does: '2024-1-5'.

    Raises: NoValueError where it does not either.
    """
    from datafusion import SessionContext, column

    if not pa.types.is_temporal(wanted):
        raise NoValueError(text, wanted)
    try:
        row = SessionContext().from_arrow(pa.table({"a": array_of([text])})).select(column("a").cast(wanted).alias("a"))
        return lit(row.to_arrow_table().column(0)[0].cast(wanted))
    except Exception:
        if wanted == pa.timestamp("ns"):
            return constant_cast(text, pa.timestamp("us"))  # of a year that has no nanoseconds
        raise NoValueError(text, wanted) from None
