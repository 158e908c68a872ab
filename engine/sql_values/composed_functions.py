"""Functions that are made of others: of lists by the name of an aggregate, of texts as digits, parts of dates.

    list_aggregate(l, 'sum')     list_sum(l)
    days_in_month(d)             the day of last_day(d)

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import col, lit, when
from engine.column_expressions.row_functions import coalesce, sequence, struct, uuid
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.expressions.argument_kinds import is_list
from engine.expressions.lambda_bodies import ELEMENT, body_text
from engine.sql_values.arguments import Arguments, constant_of
from engine.sql_values.constants import is_null
from engine.sql_values.data_types import shown_type
from engine.sql_values.function_handlers import Handler, Known, cast_to, own, part, text_of
from engine.sql_values.list_functions import LIST_FUNCTIONS
from engine.sql_values.operators import TypeOf, fitted, is_text

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


def zipped(known: Known, name: str, given: list[Expr]) -> Expr:
    """Return structs of what lists have at each place, whose fields have the names of a row's."""
    if pa.types.is_boolean(known.type_of(given[-1])):
        raise NotYetSupportedError(f"the end of {name}() at the shortest list; write the lists alone")
    if not all(is_list(known.type_of(one)) for one in given):
        raise SchemaError("no list")
    return given[0].list.zip(*given[1:], names=[f"c{place}" for place in range(len(given))])


def repeated(_known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return a list with a value as often as a number says."""
    return sequence(1, given[1]).list.transform(lambda _: given[0])


def named_struct(_known: Known, name: str, given: list[Expr]) -> Expr:
    """Return a struct of names and values by turns."""
    if len(given) % 2:
        raise PlanError(f"{name}() takes names and values by turns, as in {name}('a', x, 'b', y)")
    names = [str(constant_of(one, f"a name in {name}()")) for one in given[::2]]
    if len(set(names)) < len(names):
        raise PlanError(f"{name}() has a name twice: {', '.join(names)}")
    return struct(**dict(zip(names, given[1::2], strict=True)))


def chosen_by_place(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return the value at a place, from 1; null where there is none."""
    values = fitted(given[1:], known.type_of)
    found = when(given[0] == 1).then(values[0])
    for place, value in enumerate(values[1:], 2):
        found = found.when(given[0] == place).then(value)
    return found


def drawn_uuid(known: Known, _name: str, _given: list[Expr]) -> Expr:
    """Return another UUID for each row, and for each query."""
    known.once()
    return uuid()


def _place_among(given: Arguments) -> Expr:
    value, low, high, count = given
    span = when(low != high).then(high - low)
    place = (value - low) * count.cast(pa.float64()) / span
    is_before = when(low < high).then(value < low).otherwise(value > low)
    is_behind = when(low < high).then(value >= high).otherwise(value <= high)
    within = when(is_behind).then(count + 1).otherwise(place.floor().try_cast(pa.int64()) + 1)
    found = when(is_before).then(lit(0, pa.int64())).otherwise(within)
    return when((count > 0) & span.is_finite() & ~value.is_nan()).then(found)


#: width_bucket(x, low, high, count); null where there are no such parts
place_among: Final = cast_to(_place_among, pa.float64(), pa.float64(), pa.float64(), pa.int64())

#: patterns of the parts of an URL
_BEFORE: Final = r"^[^:/?#]+://"
_URL_PARTS: Final = {
    "PROTOCOL": r"^([^:/?#]+):",
    "AUTHORITY": rf"{_BEFORE}([^/?#]+)",
    "USERINFO": rf"{_BEFORE}([^/?#@]+)@",
    "HOST": rf"{_BEFORE}(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^:/?#]+)",
    "PATH": r"^(?:[^:/?#]+:)?(?://[^/?#]*)?([^?#]*)",
    "FILE": r"^(?:[^:/?#]+:)?(?://[^/?#]*)?([^#]*)",
    "QUERY": r"^[^?#]*\?([^#]*)",
    "REF": r"#(.*)$",
}


def part_of_url(known: Known, name: str, given: list[Expr]) -> Expr:
    """Return a part of an URL, or the value of a key of its query; null where there is none."""
    part_name = str(constant_of(given[1], f"the part of {name}()"))
    if part_name not in _URL_PARTS:
        raise PlanError(f"{name}(url, '{part_name}'); there are {', '.join(_URL_PARTS)}")
    found = text_of(known, given[0]).str.extract(_URL_PARTS[part_name], 1)
    if len(given) == 2:
        return found
    if part_name != "QUERY":
        raise PlanError(f"{name}(url, '{part_name}', key): a key is one of the QUERY")
    key = str(constant_of(given[2], f"the key of {name}()"))
    return found.str.extract(rf"(?:^|&){re.escape(key)}=([^&]*)", 1)


def with_fields(type_of: TypeOf, name: str, value: Expr, fields: dict[str, Expr]) -> Expr:
    """Return struct_insert(s, b := x), whose fields are new, or struct_update(s, a := x). Raises: PlanError."""
    data_type = type_of(value)
    if not pa.types.is_struct(data_type):
        raise PlanError(f"{name}() of {shown_type(data_type)}, which is no struct")
    own = {field.name.lower(): field.name for field in data_type}
    known = next((field for field in fields if field.lower() in own), None)
    if name == "struct_insert" and known is not None:
        raise PlanError(f"{name}(): the field {known} is there; struct_update() replaces it")
    return value.struct.with_fields(**{own.get(field.lower(), field): made for field, made in fields.items()})


def divisor(one: Expr, other: Expr) -> Expr:
    """Return the greatest common divisor of two integers."""
    return one.gcd(other)


def multiple(one: Expr, other: Expr) -> Expr:
    """Return the least common multiple of two integers."""
    common = divisor(one, other)
    return when(common == 0).then(0).otherwise(one.abs() // when(common == 0).then(1).otherwise(common) * other.abs())
