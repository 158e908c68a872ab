"""Functions that are made of others: of lists by the name of an aggregate, of texts as digits, parts of dates.

    list_aggregate(l, 'sum')     list_sum(l)
    days_in_month(d)             the day of last_day(d)

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit, when
from engine.column_expressions.row_functions import coalesce
from engine.errors import NotYetSupportedError, SchemaError
from engine.expressions.argument_kinds import is_list
from engine.expressions.lambda_bodies import ELEMENT, body_text
from engine.sql_values.arguments import Arguments, constant_of
from engine.sql_values.constants import is_null
from engine.sql_values.function_handlers import Handler, Known, cast_to, own, part, text_of
from engine.sql_values.list_functions import LIST_FUNCTIONS
from engine.sql_values.operators import is_text

if TYPE_CHECKING:
    from engine.choices import TextEncoding


def _known_elements(values: Expr) -> Expr:
    """Return the number of elements of a list that are not null."""
    is_there = when(col(ELEMENT).is_not_null()).then(1).otherwise(0)
    counted = values.call("list_transform", body=body_text(is_there.expression)).list.sum()
    return when(values.is_not_null()).then(coalesce(counted, 0))


def _of_some(values: Expr, found: Expr) -> Expr:
    """Return a value of a list with elements that are not null; null for others."""
    return when(_known_elements(values) > 0).then(found)


def _any(arguments: Arguments) -> Expr:
    return _of_some(arguments[0], arguments[0].list.any())


def _all(arguments: Arguments) -> Expr:
    return _of_some(arguments[0], arguments[0].list.all())


def _texts(arguments: Arguments) -> Expr:
    joined = LIST_FUNCTIONS["array_to_string"]([*arguments, lit(",")][:2])
    return _of_some(arguments[0], joined)


_AGGREGATES: Final[dict[str, Callable[[Arguments], Expr]]] = {
    "sum": LIST_FUNCTIONS["array_sum"],
    **dict.fromkeys(("avg", "mean"), LIST_FUNCTIONS["array_avg"]),
    "min": LIST_FUNCTIONS["array_min"],
    "max": LIST_FUNCTIONS["array_max"],
    "count": lambda arguments: _known_elements(arguments[0]),
    "first": lambda arguments: arguments[0].list.first(),
    "last": lambda arguments: arguments[0].list.last(),
    "bool_and": _all,
    "bool_or": _any,
    "string_agg": _texts,
}


def of_lists_by(name: str) -> Handler:
    """Return an aggregate of the elements of a list."""

    def call(known: Known, _name: str, given: list[Expr]) -> Expr:
        if not is_list(known.type_of(given[0])):
            raise SchemaError("no list")
        return _AGGREGATES[name](given)

    return call


def list_aggregate(known: Known, name: str, given: list[Expr]) -> Expr:
    """Return the aggregate of a list that the second argument names. Raises: NotYetSupportedError for others."""
    wanted = str(constant_of(given[1], f"the aggregate of {name}()")).lower()
    if wanted not in _AGGREGATES:
        raise NotYetSupportedError(f"{name}(l, '{wanted}'); there are {', '.join(_AGGREGATES)}")
    return of_lists_by(wanted)(known, name, [given[0], *given[2:]])


def flattened(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return the elements of the lists in a list."""
    data_type = known.type_of(given[0])
    if not is_list(data_type) or not is_list(data_type.value_type):
        raise SchemaError("no list")
    return given[0].list.flatten()


def encoded(encoding: TextEncoding) -> Handler:
    """Return a text or bytes as digits."""

    def call(known: Known, _name: str, given: list[Expr]) -> Expr:
        data_type = known.type_of(given[0])
        if encoding == "hex" and pa.types.is_integer(data_type):
            return given[0].to_hex()
        if not (is_text(data_type) or pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type)):
            raise SchemaError("another type")
        digits = given[0].str.encode(encoding)
        return digits.str.upper() if encoding == "hex" else digits

    return call


def decoded(encoding: TextEncoding) -> Handler:
    """Return the bytes that digits stand for."""
    return lambda known, _name, given: text_of(known, given[0]).str.decode(encoding)


def days_in_month(known: Known, name: str, given: list[Expr]) -> Expr:
    """Return the number of days of a date's month."""
    return part("day")(known, name, [own("last_day")(known, name, given)])


def year_and_week(known: Known, name: str, given: list[Expr]) -> Expr:
    """Return the year and the week of a date as one number, by ISO 8601."""
    return part("isoyear")(known, name, given) * 100 + part("week")(known, name, given)


def _floored(arguments: Arguments) -> Expr:
    return (arguments[0] / arguments[1]).floor()


_DOUBLES: Final = (pa.float64(), pa.float64())
floored_quotient: Final = cast_to(_floored, *_DOUBLES)
floored_remainder: Final = cast_to(lambda given: given[0] - given[1] * _floored(given), *_DOUBLES)
hypotenuse: Final = cast_to(lambda given: (given[0] * given[0] + given[1] * given[1]).sqrt(), *_DOUBLES)
not_nan: Final = cast_to(lambda given: when(given[0].is_nan()).then(given[1]).otherwise(given[0]), *_DOUBLES)


def of_environment(value: str) -> Handler:
    """Return a name that an environment has, such as that of its catalog."""
    return lambda _known, _name, _given: lit(value)


def is_key(_known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return whether a map has a key."""
    return lit(None, pa.bool_()) if is_null(given[1]) else given[0].map.keys().list.contains(given[1])
