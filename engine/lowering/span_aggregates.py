"""Sums and means of durations, from those of their ticks.

    of_spans(expression, schema) -> expression

    sum(x)      ──►   sum(ticks of x)                         64 bits: beyond them is an error
    avg(x)      ──►   sum(ticks of x) / count(x)              exact, rounded to the unit

in groups and over windows, with the filter, the order and the frame of the one that was written. Ticks are integers of
the unit that the durations have; under a mean they add up in 38 digits.

Held by: tests/integration/test_durations.py
"""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from engine.expressions.infer import infer_type
from engine.graph.expression import Aggregated, Expression, Over, has_window, replaced
from engine.lowering.terms import call, cast

_TICKS = pa.int64()
_EXACT = pa.decimal128(19, 0)


def of_spans(expression: Expression, schema: pa.Schema) -> Expression:
    """Return an expression over columns of a schema whose sums and means of durations are made of integers."""

    def written(part: Expression) -> Expression | None:
        if not isinstance(part, Aggregated | Over):
            return None
        value = _value(part)
        if value is None:
            return part
        data_type = infer_type(value, schema)
        if not pa.types.is_duration(data_type):
            return part
        ticks = cast(value, _TICKS)
        if part.function == "sum":
            return cast(_of(part, "sum", ticks), data_type)
        return cast(cast(_mean(_of(part, "sum", cast(ticks, _EXACT)), _of(part, "count", ticks)), _TICKS), data_type)

    return replaced(expression, written)


def _value(part: Aggregated | Over) -> Expression | None:
    """Return the value that is added up; None: there is none, or it has no type of its own yet."""
    if part.function not in ("sum", "avg"):
        return None
    value = part.argument if isinstance(part, Over) else next(iter(part.arguments), None)
    return None if value is None or has_window(value) else value


def _of(part: Aggregated | Over, function: str, value: Expression) -> Expression:
    if isinstance(part, Over):
        return replace(part, function=function, argument=value)
    return replace(part, function=function, arguments=(value,))


def _mean(total: Expression, count: Expression) -> Expression:
    """Return the whole number that is nearest to a quotient, the lower one of two."""
    less = call("subtract", count, call("multiply", total, 2))
    return call("negate", call("floor_divide", less, call("multiply", count, 2)))
