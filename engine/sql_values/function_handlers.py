"""Functions of SQL as expressions of ours: handlers of ``function_calls``, which know the types of their arguments.

    of_texts(function)            other values are written as texts
    cast_to(function, *types)     arguments are cast
    alike(function)               constant texts and NULL have the type of the other arguments

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when
from engine.column_expressions.row_functions import coalesce, map_from, rand, sequence
from engine.errors import NotYetSupportedError, PlanError, SchemaError
from engine.expressions.argument_kinds import is_list
from engine.records.plain_scalars import scalar_of as arrow_scalar
from engine.sql_values.arguments import Function, constant_of
from engine.sql_values.casts import cast
from engine.sql_values.constants import computed, is_constant, scalar_of
from engine.sql_values.format_calls import formatted
from engine.sql_values.list_functions import LIST_FUNCTIONS
from engine.sql_values.operators import TypeOf, calculated, chosen_by, fitted, in_utc, is_moment, is_text, joined_texts
from engine.sql_values.own_functions import OWN
from engine.sql_values.scalar_functions import FUNCTIONS
from engine.sql_values.series import series_of
from engine.sql_values.spans import interval_of, moved, part_of_span, unit_named


class Known(NamedTuple):
    """Facts of a query that functions ask for: types of expressions, and its moment.

    ``once``: called by what gives another value when the query is asked again.
    """

    type_of: TypeOf
    moment: datetime
    once: Callable[[], None]


#: function of what is known, the name by which it is called, and the arguments
Handler = Callable[[Known, str, list[Expr]], Expr]


def plainly(function: Function) -> Handler:
    """Return a function that takes arguments as they are."""
    return lambda _known, _name, given: function(given)


def of_texts(function: Function, places: Sequence[int] = (0,)) -> Handler:
    """Return a function of texts: other values at some places are written as texts."""

    def call(known: Known, _name: str, given: list[Expr]) -> Expr:
        return function([text_of(known, one) if at in places else one for at, one in enumerate(given)])

    return call


def text_of(known: Known, value: Expr) -> Expr:
    """Return a value as a text."""
    data_type = known.type_of(value)
    return value if is_text(data_type) or pa.types.is_null(data_type) else cast(value, data_type, pa.string())


def cast_to(function: Callable[..., Any], *wanted: pa.DataType | None) -> Handler:
    """Return a function whose arguments are cast to types."""

    def call(known: Known, _name: str, given: list[Expr]) -> Expr:
        values = [
            one if kind is None else cast_argument(known, one, kind)
            for one, kind in zip(given, (*wanted, *[None] * len(given)), strict=False)
        ]
        found: Expr = function(values)
        return found

    return call


def cast_argument(known: Known, value: Expr, wanted: pa.DataType) -> Expr:
    """Return an argument as another type. Raises: SchemaError for one that is none."""
    source = known.type_of(value)
    if pa.types.is_timestamp(wanted) and pa.types.is_timestamp(source) and source.tz is not None:
        value = value.dt.to_timezone("UTC").dt.with_timezone(None)
        source = pa.timestamp(source.unit)
    if pa.types.is_timestamp(wanted) and pa.types.is_timestamp(source) and source.tz is None:
        return value
    if is_text(wanted) and is_text(source):
        return value
    if (pa.types.is_timestamp(wanted) and not (is_moment(source) or is_text(source))) or (
        is_text(source) and (pa.types.is_floating(wanted) or pa.types.is_integer(wanted)) and not is_constant(value)
    ):
        raise SchemaError("another type")
    return computed(cast(value, source, wanted))


def own(name: str) -> Handler:
    """Return a function of ``own_functions``."""
    given, _, function = OWN[name]
    return cast_to(function, *given)


def part(name: str) -> Handler:
    """Return the function of a part of a date."""
    return lambda known, _name, given: date_part(known, lit(name), given[0])


def date_part(known: Known, part: Expr, value: Expr) -> Expr:
    """Return a part of a moment or a span."""
    data_type = known.type_of(value)
    if pa.types.is_duration(data_type):
        return part_of_span(str(constant_of(part, "a part of a span")), value)
    if is_text(data_type) and is_constant(value):
        value = cast_argument(known, value, pa.timestamp("us"))
    elif not is_moment(data_type) and not pa.types.is_time(data_type):
        raise SchemaError("no date")
    return FUNCTIONS["date_part"]([part, in_utc(value, data_type)])


def date_trunc(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return the begin of a unit."""
    value, data_type = given[1], known.type_of(given[1])
    if is_text(data_type) and is_constant(value):
        value, data_type = cast_argument(known, value, pa.timestamp("us")), pa.timestamp("us")
    if not is_moment(data_type):
        raise SchemaError("no date")
    return FUNCTIONS["date_trunc"]([given[0], in_utc(value, data_type)])


def cut_to_whole(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return a number without its fraction, and what is no such number as it is."""
    data_type = known.type_of(given[0])
    has_fraction = pa.types.is_floating(data_type) or pa.types.is_decimal(data_type)
    return FUNCTIONS["trunc"](given) if has_fraction else given[0]


def round_to_whole(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return a float as a whole one, halves away from zero, and what is no float as it is."""
    return FUNCTIONS["round"](given) if pa.types.is_floating(known.type_of(given[0])) else given[0]


def unit_of(given: Expr) -> str:
    """Return the unit that an argument names."""
    return unit_named(str(constant_of(given, "the unit of a call")))


def difference(name: str) -> Handler:
    """Return the function of the units between two moments."""

    def call(known: Known, _name: str, given: list[Expr]) -> Expr:
        if len(given) == 2:
            if name == "date_sub":
                return added(known, name, given, is_back=True)
            days = [cast_argument(known, one, pa.date32()) for one in given]
            return days[0].dt.diff(days[1], "days")
        moments = [cast_argument(known, one, pa.timestamp("us")) for one in given[1:]]
        return OWN[name].call([lit(unit_of(given[0])), *moments])

    return call


def added(known: Known, name: str, given: list[Expr], is_back: bool = False) -> Expr:
    """Return a moment moved by a number of units."""
    if len(given) == 2:
        return calculated("-" if is_back else "+", given[0], given[1], known.type_of)
    unit, value = unit_of(given[0]), given[2]
    if is_text(known.type_of(value)):
        value = cast_argument(known, value, pa.timestamp("us"))
    data_type = known.type_of(value)
    if not is_moment(data_type):
        raise SchemaError("no date")
    is_date = bool(pa.types.is_date(data_type))
    return moved(in_utc(value, data_type), given[1], unit, is_date=is_date, is_back=is_back)


def months_added(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return a date moved by months."""
    return moved(cast_argument(known, given[0], pa.date32()), given[1], "month", is_date=True, is_back=False)


def to_date(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return a text as a date."""
    if len(given) == 1:
        return cast_argument(known, given[0], pa.date32())
    return OWN["strptime"].call(given).cast(pa.date32())


def normalized(given: Sequence[Expr]) -> Expr:
    """Return a text in a normal form."""
    form = str(constant_of(given[1], "the form of normalize()")) if len(given) > 1 else "NFC"
    return given[0].call("str_normalize", form=form)


def byte_length(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return the number of bytes of a text or of bytes."""
    data_type = known.type_of(given[0])
    if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type):
        return given[0].str.len_bytes()
    return text_of(known, given[0]).str.len_bytes()


def code_or_nothing(given: Sequence[Expr]) -> Expr:
    """Return the code of the first character, -1 of an empty text."""
    return when(given[0] == "").then(-1).otherwise(given[0].str.ascii())


def interval(_known: Known, name: str, given: list[Expr]) -> Expr:
    """Return an interval of a constant number."""
    if not is_constant(given[0]):
        raise NotYetSupportedError("an interval of a column that is not added to a date or a timestamp")
    unit = name.removeprefix("to_")
    return interval_of(str(scalar_of(given[0]).as_py()), unit, "")


def moment(data_type: pa.DataType) -> Handler:
    """Return the function of the query's moment."""

    def call(known: Known, _name: str, _given: list[Expr]) -> Expr:
        known.once()
        moment = arrow_scalar(known.moment, pa.timestamp("us", "UTC"))
        return lit(moment.cast(data_type))

    return call


def drawn(known: Known, _name: str, _given: list[Expr]) -> Expr:
    """Return another number for each row, and for each query."""
    known.once()
    return rand()


def alike(function: Function) -> Handler:
    """Return a function of values of one type."""
    return lambda known, _name, given: function(fitted(given, known.type_of))


def chosen(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return one value or the other."""
    return chosen_by([given[0]], given[1:], known.type_of)


def second(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return one value where there is one, else the other."""
    return chosen_by([given[0].is_not_null()], given[1:], known.type_of)


def length(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return the characters of a text, or the elements of a list or a map."""
    data_type = known.type_of(given[0])
    if is_list(data_type):
        return given[0].list.length()
    if pa.types.is_map(data_type):
        return given[0].map.keys().list.length()
    return text_of(known, given[0]).str.length()


def joined(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return texts put together; nulls are passed over."""
    kept = [one for one in given if not pa.types.is_null(known.type_of(one))]
    if any(is_list(known.type_of(one)) for one in kept):
        return LIST_FUNCTIONS["array_concat"](given)
    texts = [coalesce(text_of(known, one), "") for one in kept]
    return FUNCTIONS["str_concat"](texts) if len(texts) > 1 else texts[0] if texts else lit("")


def separated(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return texts with a separator between them."""
    values = [text_of(known, one) for one in given[1:] if not pa.types.is_null(known.type_of(one))]
    return FUNCTIONS["concat_ws"]([given[0], *values]) if values else lit("")


def formatted_text(known: Known, name: str, given: list[Expr]) -> Expr:
    """Return a text with values in its places."""
    if not is_constant(given[0]):
        raise NotYetSupportedError(f"{name}() of a format that is no constant; write a || b")
    pieces = formatted(name, str(scalar_of(given[0]).as_py()), len(given) - 1)
    parts = [lit(one) if isinstance(one, str) else text_of(known, given[one + 1]) for one in pieces]
    found = parts[0] if parts else lit("")
    for part in parts[1:]:
        found = joined_texts(found, part, known.type_of)
    return computed(found)


def bit_not(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return an integer with all bits turned."""
    if not pa.types.is_integer(known.type_of(given[0])):
        raise SchemaError("no integer")
    return given[0].bit_xor(lit(-1))


def modulo(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return the remainder, with the sign of the left side."""
    return calculated("%", given[0], given[1], known.type_of)


def positive_modulo(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return the remainder that is not negative."""
    rest = calculated("%", given[0], given[1], known.type_of)
    return calculated("%", rest + given[1], given[1], known.type_of)


def of_bits(function: Callable[..., Expr]) -> Handler:
    """Return a function of integers."""

    def call(known: Known, _name: str, given: list[Expr]) -> Expr:
        if not all(pa.types.is_integer(known.type_of(one)) for one in given):
            raise SchemaError("no integer")
        return function(*given)

    return call


def full_match(known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return whether a pattern is all of a text."""
    pattern = computed(lit("^(?:") + given[1] + lit(")$"))
    return FUNCTIONS["regexp_like"]([text_of(known, given[0]), pattern])


def row(_known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return a struct of values without names."""
    return LIST_FUNCTIONS["struct"](given)


def map_of(_known: Known, _name: str, given: list[Expr]) -> Expr:
    """Return a map of keys and values."""
    return map_from(*given)


def of_maps(function: Function) -> Handler:
    """Return a function of maps."""

    def call(known: Known, _name: str, given: list[Expr]) -> Expr:
        if not pa.types.is_map(known.type_of(given[0])):
            raise SchemaError("no map")
        return function(given)

    return call


def of_lists(name: str, count: int = 1) -> Handler:
    """Return a function of lists whose first arguments are lists."""

    def call(known: Known, _name: str, given: list[Expr]) -> Expr:
        if not all(is_list(known.type_of(one)) for one in given[:count]):
            raise SchemaError("no list")
        return LIST_FUNCTIONS[name](given)

    return call


def of_list_and_value(name: str) -> Handler:
    """Return a function of a list and a value like its elements: a constant text is of their type."""

    def call(known: Known, _name: str, given: list[Expr]) -> Expr:
        values, value = given
        data_type = known.type_of(values)
        if not is_list(data_type):
            raise SchemaError("no list")
        if is_text(known.type_of(value)) and is_constant(value) and not is_text(data_type.value_type):
            value = computed(cast(value, pa.string(), data_type.value_type))
        return LIST_FUNCTIONS[name]([values, value])

    return call


def prepended(known: Known, name: str, given: list[Expr]) -> Expr:
    """Return a list with a value in front."""
    given = given if is_list(known.type_of(given[1])) else given[::-1]
    return LIST_FUNCTIONS["array_prepend"](given)


def of_constants(function: Callable[..., Any]) -> Handler:
    """Return a function that columns do not have."""

    def call(_known: Known, name: str, given: list[Expr]) -> Expr:
        if not all(map(is_constant, given)):
            raise NotYetSupportedError(f"the function {name}() of columns")
        try:
            return lit(function(*(scalar_of(one).as_py() for one in given)))
        except (TypeError, ValueError) as error:
            raise PlanError(f"{name}(): {error}") from None

    return call


def series(_known: Known, name: str, given: list[Expr]) -> Expr:
    """Return the list of ``range()`` and ``generate_series()``, whose step of moments is a constant interval."""
    if name == "sequence" or not all(map(is_constant, given)):
        start, stop, *step = given if len(given) > 1 else [lit(0), *given]
        span = scalar_of(step[0]).as_py() if step and is_constant(step[0]) else None
        if name != "sequence" and getattr(span, "months", False):
            raise NotYetSupportedError(f"{name}() of columns by months; write sequence(), whose days are the first's")
        return sequence(start, stop, step[0] if step else None, "left" if name == "range" else "both")
    found = series_of(name, [scalar_of(one).as_py() for one in given])
    return lit(found.to_pylist(), pa.list_(found.type))
