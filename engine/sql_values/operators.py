"""Operators of SQL over values whose types are known.

    a / b of integers        cut toward zero, as a % b is
    date + 3, ts - ts        days; a span of time
    k = '7', d > '2024-1-5'  a constant text is a value of the other side's type
    2 < k                    k > 2, for estimates

Held by: tests/sql/test_expressions.py
Held by: tests/sql/test_coercions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import and_
from typing import Any, Final

import pyarrow as pa

from engine.column_expressions.expression import Expr
from engine.column_expressions.expressions import lit, when
from engine.errors import PlanError
from engine.expressions.binding import UNFIT
from engine.expressions.common_type import common_type, result_type_of
from engine.expressions.literals import literal_scalar, make_literal
from engine.graph.expression import Cast, Literal
from engine.records.arrow_functions import pc
from engine.sql_values.casts import cast, text_as
from engine.sql_values.constants import computed, is_constant, scalar_of
from engine.sql_values.data_types import shown_type
from engine.sql_values.spans import with_spans

TypeOf = Callable[[Expr], pa.DataType]

_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_COMPARED: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "IS NOT DISTINCT FROM": lambda left, right: left.eq_null_safe(right),
    "IS DISTINCT FROM": lambda left, right: ~left.eq_null_safe(right),
}
_ARITHMETIC: Final[dict[str, Callable[[Expr, Expr], Expr]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
}
#: type of all integers
_INTEGERS: Final = pa.decimal128(20, 0)
_BITS: Final = {"&": "bit_and", "|": "bit_or", "<<": "shift_left", ">>": "shift_right"}


class NotDefinedError(PlanError):
    """An operator that is not there for the types of its sides."""

    def __init__(self, left: pa.DataType, sign: str, right: pa.DataType) -> None:
        super().__init__(f"{shown_type(left)} {sign} {shown_type(right)} is not defined; cast one side")


def is_text(data_type: pa.DataType) -> bool:
    """Return whether a type is one of texts."""
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type) or data_type == pa.string_view())


def is_number(data_type: pa.DataType) -> bool:
    """Return whether a type is one of numbers."""
    return bool(pa.types.is_integer(data_type) or pa.types.is_decimal(data_type) or pa.types.is_floating(data_type))


def is_moment(data_type: pa.DataType) -> bool:
    """Return whether a type is one of dates or timestamps."""
    return bool(pa.types.is_date(data_type) or pa.types.is_timestamp(data_type))


def in_utc(value: Expr, data_type: pa.DataType) -> Expr:
    """Return a moment as clocks in UTC show it, whatever the zone of its column: SQL has one zone for all."""
    has_zone = pa.types.is_timestamp(data_type) and data_type.tz not in (None, "UTC")
    return value.dt.to_timezone("UTC") if has_zone else value


def fitted(values: Sequence[Expr], type_of: TypeOf) -> list[Expr]:
    """Return values beside each other: constant texts and NULL get the type that the others have.

    Raises: PlanError where a text is no value of that type.
    """
    types = [type_of(value) for value in values]
    others = [
        one
        for one, value in zip(types, values, strict=True)
        if not pa.types.is_null(one) and not (is_text(one) and is_constant(value))
    ]
    if not others:
        texts = [one for one in types if is_text(one)]
        return [_typed(value, one, texts[0]) if texts else value for value, one in zip(values, types, strict=True)]
    wanted = next((one for one in others if not is_text(one)), others[0])
    if any(map(has_zone, others)):
        wanted = next(filter(has_zone, others))
        values = [_zoned(value, one) for value, one in zip(values, types, strict=True)]
    return [_typed(value, one, wanted) for value, one in zip(values, types, strict=True)]


def has_zone(data_type: pa.DataType) -> bool:
    """Return whether a type is one of moments that are the same in every zone."""
    return bool(pa.types.is_timestamp(data_type)) and data_type.tz is not None


def _zoned(value: Expr, data_type: pa.DataType) -> Expr:
    """Return a moment without a zone as one in UTC."""
    if not is_moment(data_type) or has_zone(data_type):
        return value
    local = value.cast(pa.timestamp("us")) if pa.types.is_date(data_type) else value
    return computed(local.dt.with_timezone("UTC"))


def _typed(value: Expr, own: pa.DataType, wanted: pa.DataType) -> Expr:
    if pa.types.is_null(own):
        return lit(None, wanted)
    if is_text(own) and is_constant(value) and not is_text(wanted) and not pa.types.is_nested(wanted):
        text = scalar_of(value).as_py()
        return lit(None, wanted) if text is None else lit(text_as(text, _read_as(wanted)))
    return value


def _read_as(wanted: pa.DataType) -> pa.DataType:
    """Return the type that a text beside a decimal is read as: it may have more digits."""
    return pa.float64() if pa.types.is_decimal(wanted) and wanted.precision > 38 else wanted


def chosen_by(conditions: Sequence[Expr], values: Sequence[Expr], type_of: TypeOf) -> Expr:
    """Return the value of the first condition that is true, the last value where none is."""
    *values, otherwise = fitted(values, type_of)
    types = [type_of(value) for value in (*values, otherwise)]
    if result_type_of(types) is None:
        shown = " and ".join(dict.fromkeys(shown_type(one) for one in types if not pa.types.is_null(one)))
        raise PlanError(f"the values of CASE are {shown}, which have no common type; cast them")
    chain: Any = None
    for condition, value in zip(conditions, values, strict=True):
        chain = when(condition).then(value) if chain is None else chain.when(condition).then(value)
    found: Expr = chain.otherwise(otherwise)
    return found


def compared(sign: str, left: Expr, right: Expr, type_of: TypeOf) -> Expr:
    """Return a comparison. Raises: NotDefinedError, PlanError for a text that is no value."""
    left, right = fitted([left, right], type_of)
    left, right = with_spans([left, right], type_of)
    left, right = without_widening([left, right], type_of)
    left, right = _as_of_column(left, right, type_of), _as_of_column(right, left, type_of)
    one, other = type_of(left), type_of(right)
    if common_type(one, other) is None and not (is_moment(one) and is_moment(other)):
        raise NotDefinedError(one, sign, other)
    if is_constant(left) and not is_constant(right) and sign in _MIRRORED:
        sign, left, right = _MIRRORED[sign], right, left
    return _COMPARED[sign](left, right)


def rows_compared(sign: str, left: Sequence[Expr], right: Sequence[Expr], type_of: TypeOf) -> Expr:
    """Return a comparison of rows: of their first values that differ. Raises: PlanError."""
    if len(left) != len(right):
        raise PlanError(f"rows of {len(left)} and of {len(right)} values are compared")
    pairs = list(zip(left, right, strict=True))
    if sign in ("=", "IS NOT DISTINCT FROM"):
        return reduce(and_, (compared(sign, one, other, type_of) for one, other in pairs))
    if sign in ("<>", "IS DISTINCT FROM"):
        same = "=" if sign == "<>" else "IS NOT DISTINCT FROM"
        return ~rows_compared(same, left, right, type_of)
    found = compared(sign, *pairs[-1], type_of)
    for one, other in reversed(pairs[:-1]):
        found = compared(sign[0], one, other, type_of) | (compared("=", one, other, type_of) & found)
    return found


def calculated(sign: str, left: Expr, right: Expr, type_of: TypeOf) -> Expr:
    """Return a sum, a difference, a product, a quotient or a remainder. Raises: NotDefinedError."""
    one, other = type_of(left), type_of(right)
    if pa.types.is_null(one) and pa.types.is_null(other):
        return lit(None, pa.int64())
    left, right, one, other = _numbers(left, right, one, other)
    if pa.types.is_null(one) or pa.types.is_null(other):
        known = other if pa.types.is_null(one) else one
        return lit(None, known if is_number(known) or sign in "+-" else pa.int64())
    if sign in "+-" and (is_moment(one) or is_moment(other)):
        if is_moment(one) and is_moment(other):
            left, right = fitted([left, right], type_of)
            one, other = type_of(left), type_of(right)
        return _moved(sign, left, right, one, other)
    is_calculated = is_number(one) and is_number(other)
    is_span = pa.types.is_duration(one) or pa.types.is_duration(other) or pa.types.is_interval(one)
    if not is_calculated and not is_span and not pa.types.is_time(one):
        raise NotDefinedError(one, sign, other)
    if (
        sign in ("/", "//", "%")
        and _is_unsigned(left, one)
        and _is_unsigned(right, other)
        and pa.uint64() in (one, other)
    ):
        left, right = _as_unsigned(left, one), _as_unsigned(right, other)
        return left % right if sign == "%" else left // right
    if sign == "/":
        return _cut_quotient(left, right) if pa.types.is_integer(one) and pa.types.is_integer(other) else left / right
    if pa.types.is_duration(one) and sign in ("//", "%"):
        return left // right if sign == "//" else left % right
    if sign == "//":
        return (
            _cut_quotient(left, right)
            if pa.types.is_integer(one) and pa.types.is_integer(other)
            else (left / right).floor()
        )
    if sign == "%":
        return _remainder(left, right, pa.types.is_integer(one) and pa.types.is_integer(other))
    unsigned = _unsigned(sign, left, right, one, other)
    if unsigned is not None and not (is_constant(left) and is_constant(right)):
        return unsigned
    found = _ARITHMETIC[sign](left, right)
    if is_constant(left) and is_constant(right) and pa.types.is_integer(one) and pa.types.is_integer(other):
        found = computed(found)
        if not is_constant(found):
            width = max(one.bit_width, other.bit_width)
            raise PlanError(f"{scalar_of(left)} {sign} {scalar_of(right)} overflows an integer of {width} bits")
    return found


def _unsigned(sign: str, left: Expr, right: Expr, one: pa.DataType, other: pa.DataType) -> Expr | None:
    """Return a sum of integers of which one has no sign and 64 bits, by decimals; None for other numbers.

    As in DuckDB it has no sign either beside a constant that is not negative. Others have room for all results.
    """
    sides = ((left, one), (right, other))
    if not any(map(pa.types.is_uint64, (one, other))) or not all(map(pa.types.is_integer, (one, other))):
        return None
    wide = [value.cast(_INTEGERS) if not is_constant(value) else value for value, _ in sides]
    found = _ARITHMETIC[sign](*wide)
    has_sign = any(not pa.types.is_uint64(kind) and not _is_positive(value) for value, kind in sides)
    return found if has_sign else found.cast(pa.uint64())


def _is_unsigned(value: Expr, data_type: pa.DataType) -> bool:
    """Return whether all of an integer's values have no sign."""
    is_constant_one = pa.types.is_integer(data_type) and _is_positive(value)
    return pa.types.is_unsigned_integer(data_type) or is_constant_one


def _as_unsigned(value: Expr, data_type: pa.DataType) -> Expr:
    if is_constant(value):
        return lit(scalar_of(value).as_py(), pa.uint64())
    return value if pa.types.is_uint64(data_type) else value.cast(pa.uint64())


def _is_positive(value: Expr) -> bool:
    return is_constant(value) and scalar_of(value).as_py() >= 0


def bits(sign: str, left: Expr, right: Expr, type_of: TypeOf) -> Expr:
    """Return an operator of bits. Raises: NotDefinedError."""
    left, right = fitted([left, right], type_of)
    one, other = type_of(left), type_of(right)
    if pa.types.is_null(one) or pa.types.is_null(other):
        return lit(None, pa.int64())
    if not (pa.types.is_integer(one) and pa.types.is_integer(other)):
        raise NotDefinedError(one, sign, other)
    found: Expr = getattr(left, _BITS[sign])(right)
    return found


def joined_texts(left: Expr, right: Expr, type_of: TypeOf) -> Expr:
    """Return ``left || right``: texts, or lists. Raises: NotDefinedError."""
    one, other = type_of(left), type_of(right)
    if pa.types.is_list(one) or pa.types.is_list(other):
        return left.list.concat(right)
    if pa.types.is_null(one) or pa.types.is_null(other):
        return lit(None, pa.string())
    texts = [
        value if is_text(data_type) else cast(value, data_type, pa.string())
        for value, data_type in ((left, one), (right, other))
    ]
    return texts[0] + texts[1]


def _numbers(
    left: Expr, right: Expr, one: pa.DataType, other: pa.DataType
) -> tuple[Expr, Expr, pa.DataType, pa.DataType]:
    """Return both sides; a constant text beside a number is one, beside a moment an interval or a moment."""
    if is_text(other) and is_constant(right) and is_number(one):
        right = lit(text_as(scalar_of(right).as_py(), _number_type(scalar_of(right).as_py())))
        other = scalar_of(right).type
    elif is_text(one) and is_constant(left) and is_number(other):
        left = lit(text_as(scalar_of(left).as_py(), _number_type(scalar_of(left).as_py())))
        one = scalar_of(left).type
    elif is_text(other) and is_constant(right) and is_moment(one):
        right = lit(text_as(scalar_of(right).as_py(), one))
        other = scalar_of(right).type
    elif is_text(one) and is_constant(left) and is_moment(other):
        left = lit(text_as(scalar_of(left).as_py(), other))
        one = scalar_of(left).type
    return left, right, one, other


def _number_type(text: str) -> pa.DataType:
    try:
        int(text)
    except ValueError:
        return pa.float64()
    return pa.int64()


def _moved(sign: str, left: Expr, right: Expr, one: pa.DataType, other: pa.DataType) -> Expr:
    """Return a moment moved by a span, an interval or days, or the difference of two."""
    if is_moment(one) and is_moment(other):
        if sign == "+":
            raise NotDefinedError(one, sign, other)
        if pa.types.is_date(one) and pa.types.is_date(other):
            return left.dt.diff(right, "days")
        moments = [
            value.cast(pa.timestamp("us")) if pa.types.is_date(kind) else value
            for value, kind in ((left, one), (right, other))
        ]
        return moments[0] - moments[1]
    if not is_moment(one):
        if sign == "-":
            raise NotDefinedError(one, sign, other)
        left, right, one, other = right, left, other, one
    left = in_utc(left, one)
    if pa.types.is_integer(other):
        if not pa.types.is_date(one):
            raise NotDefinedError(one, sign, other)
        if is_constant(right):
            days = int(scalar_of(right).as_py())
            return left.dt.add(days=days if sign == "+" else -days)
        span = (right.cast(pa.int64()) * (86400 * 10**6)).cast(pa.duration("us"))
        moved = left.cast(pa.timestamp("us")) + span if sign == "+" else left.cast(pa.timestamp("us")) - span
        return moved.cast(pa.date32())
    if not (pa.types.is_interval(other) or pa.types.is_duration(other)):
        raise NotDefinedError(one, sign, other)
    if pa.types.is_duration(other) and pa.types.is_date(one):
        left = left.cast(pa.timestamp("us"))
    return left + right if sign == "+" else left - right


def _cut_quotient(left: Expr, right: Expr) -> Expr:
    """Return the whole quotient, cut toward zero: that of ``//`` is cut toward the smaller number."""
    if is_constant(left) and is_constant(right) and (divisor := scalar_of(right).as_py()):
        dividend = scalar_of(left).as_py()
        if dividend is not None:
            quotient = abs(dividend) // abs(divisor)
            return lit(quotient if (dividend < 0) == (divisor < 0) else -quotient)
    floored = left // right
    is_inexact = (left % right) != 0
    return when(((left < 0) != (right < 0)) & is_inexact).then(floored + 1).otherwise(floored)


def _remainder(left: Expr, right: Expr, is_whole: bool) -> Expr:
    if is_whole:
        return left - right * _cut_quotient(left, right)
    # that of Python has the sign of the right side, that of SQL the sign of the left one
    positive = left.abs() % right.abs()
    return when(left < 0).then(-positive).otherwise(positive)


def without_widening(values: Sequence[Expr], type_of: TypeOf) -> list[Expr]:
    """Return the compared values, a column beside constants without a cast that changes none of its values."""
    wide = [place for place, value in enumerate(values) if isinstance(value.expression, Cast)]
    if len(wide) != 1 or sum(map(is_constant, values)) != len(values) - 1:
        return list(values)
    operand = values[wide[0]].expression
    assert isinstance(operand, Cast)
    value = Expr(operand.operand)
    source, target = type_of(value), type_of(values[wide[0]])
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target) and source.tz == target.tz:
        return _in_unit(values, wide[0], value, source)
    if not _is_exact(source) or not _is_exact(target) or common_type(source, target) != target:
        return list(values)
    return [value if place == wide[0] else other for place, other in enumerate(values)]


def _as_of_column(value: Expr, beside: Expr, type_of: TypeOf) -> Expr:
    """Return a constant number in the type of the column beside it, where that has the number."""
    wanted = type_of(beside)
    if not is_constant(value) or is_constant(beside) or not _is_exact(wanted) or not _is_exact(type_of(value)):
        return value
    assert isinstance(value.expression, Literal), "it is a constant"
    found = _in_type(value.expression, wanted)
    return value if found is None else Expr(found)


@lru_cache(maxsize=1024)
def _in_type(constant: Literal, wanted: pa.DataType) -> Literal | None:
    """Return a constant in another type, None where that does not have its value."""
    try:
        return make_literal(pc.cast(literal_scalar(constant), wanted))
    except UNFIT:
        return None


def _is_exact(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(data_type) or pa.types.is_decimal(data_type))


def _in_unit(values: Sequence[Expr], place: int, value: Expr, unit: pa.DataType) -> list[Expr]:
    try:
        return [value if at == place else lit(pc.cast(scalar_of(other), unit)) for at, other in enumerate(values)]
    except UNFIT:
        return list(values)


def truth(value: Expr, type_of: TypeOf, what: str) -> Expr:
    """Return a condition. Raises: PlanError for a value that is none."""
    data_type = type_of(value)
    if pa.types.is_null(data_type):
        return lit(None, pa.bool_())
    if is_text(data_type) and is_constant(value):
        return lit(text_as(scalar_of(value).as_py(), pa.bool_()))
    if not pa.types.is_boolean(data_type):
        raise PlanError(f"{what} takes a condition, this is {shown_type(data_type)}; write = ... or IS NOT NULL")
    return value


def conjoined(values: Sequence[Expr], is_and: bool) -> Expr:
    """Return the conditions connected by AND or OR, without those that change nothing: k = 1 AND TRUE is k = 1."""
    from engine.graph.expression import conjunction, disjunction

    kept = [one for one in values if not _is_bool(one, is_and)]
    if any(_is_bool(one, not is_and) for one in kept):
        return lit(not is_and)
    if not kept:
        return lit(is_and)
    return computed(Expr((conjunction if is_and else disjunction)(one.expression for one in kept)))


def _is_bool(value: Expr, wanted: bool) -> bool:
    return isinstance(value.expression, Literal) and value.expression.value is wanted
