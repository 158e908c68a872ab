"""SQL's functions of lists and structs by name; positions count from 1.

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when
from engine.column_expressions.row_functions import array, struct
from engine.errors import NotYetSupportedError
from engine.graph.expression import Literal
from engine.sql_values.arguments import Arguments, Function, constant_of


def _method(name: str) -> Function:
    def call(arguments: Arguments) -> Expr:
        found: Expr = getattr(arguments[0].list, name)(*arguments[1:])
        return found

    return call


def _element(arguments: Arguments) -> Expr:
    values, position = arguments
    if isinstance(position.expression, Literal):
        place = constant_of(position, "a position")
        return lit(None) if not place else values.list.get(place - 1 if place > 0 else place)
    # of no position there is nothing: far behind the end
    return values.list.get(when(position > 0).then(position - 1).when(position < 0).then(position).otherwise(2**31))


def _slice(arguments: Arguments) -> Expr:
    begin, end = (constant_of(one, "a position of a slice") for one in arguments[1:3])
    if len(arguments) > 3 and constant_of(arguments[3], "a step") != 1:
        raise NotYetSupportedError("sql: a part of a list with a step (write l[2:3])")
    start = begin - 1 if begin > 0 else begin
    stop = None if end == -1 else end + (end < 0)
    return arguments[0].list.slice(start, stop)


def _sort(arguments: Arguments) -> Expr:
    words = [str(constant_of(one, "an order")).upper() for one in arguments[1:]]
    descending = words[:1] == ["DESC"]
    nulls_last = words[1] == "NULLS LAST" if len(words) > 1 else not descending
    return arguments[0].list.sort(descending=descending, nulls_last=nulls_last)


def _has_all(arguments: Arguments) -> Expr:
    return arguments[1].list.drop_nulls().list.difference(arguments[0]).list.length() == 0


def _has_any(arguments: Arguments) -> Expr:
    return arguments[0].list.intersection(arguments[1]).list.drop_nulls().list.length() > 0


def _join(arguments: Arguments) -> Expr:
    """Return the texts of a list as one; of nulls alone there is none, as in DuckDB."""
    texts = arguments[0]
    joined = texts.list.join(str(constant_of(arguments[1], "what ARRAY_TO_STRING puts between texts")))
    has_text = (texts.list.length() == 0) | texts.list.sort(nulls_last=True).list.first().is_not_null()
    return when(has_text).then(joined).otherwise(None)


def _split(arguments: Arguments) -> Expr:
    return arguments[0].call("str_split", arguments[1], regex=False)


def _field(arguments: Arguments) -> Expr:
    return arguments[0].field(str(constant_of(arguments[1], "the name of a field")))


def is_any(values: Expr, value: Expr) -> Expr:
    """Return whether a value is one of a list, null where that is unknown: ``value = ANY (list)``."""
    is_empty, is_unknown = values.list.length() == 0, value.is_null() | _has_null(values)
    known = when(is_empty).then(False).when(values.list.contains(value)).then(True)
    return known.when(is_unknown).then(lit(None, pa.bool_())).when(values.is_not_null()).then(False)


def _has_null(values: Expr) -> Expr:
    return values.list.sort(nulls_last=False).list.first().is_null() & (values.list.length() > 0)


LIST_FUNCTIONS: Final[dict[str, Function]] = {
    "make_array": lambda arguments: array(*arguments),
    "array_has_all": _has_all,
    "array_has_any": _has_any,
    "array_length": lambda arguments: arguments[0].list.length(),
    "array_element": _element,
    "array_slice": _slice,
    "array_sort": _sort,
    "array_distinct": _method("distinct"),
    "array_sum": _method("sum"),
    "array_avg": _method("mean"),
    "array_min": _method("min"),
    "array_max": _method("max"),
    "array_concat": _method("concat"),
    "array_append": lambda arguments: arguments[0].list.concat(array(arguments[1])),
    "array_contains": _method("contains"),
    "array_reverse": _method("reverse"),
    "array_intersect": lambda arguments: arguments[0].list.intersection(arguments[1]).list.drop_nulls(),
    "array_union": _method("union"),
    "array_except": _method("difference"),
    "array_symmetric_difference": _method("symmetric_difference"),
    "array_compact": _method("drop_nulls"),
    "array_position": lambda arguments: arguments[0].list.position(arguments[1]) + 1,
    "array_prepend": lambda arguments: array(arguments[0]).list.concat(arguments[1]),
    "array_remove": lambda arguments: arguments[0].list.filter(lambda one: ~one.eq_null_safe(arguments[1])),
    "array_to_string": _join,
    "string_to_array": _split,
    "struct": lambda arguments: struct(**{f"c{number}": one for number, one in enumerate(arguments)}),
    "get_field": _field,
}
