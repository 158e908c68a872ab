"""Expressions of Substrait as ours.

    selection(4)                    col(the name of the fourth column)
    scalar_function(f, arguments)   scalar_functions.py
    window_function                 windows.py
    cast, if_then, singular_or_list cast(), when().then(), is_in()
    subquery                        a column that relations.py has joined

What reads no column is computed here, by what computes columns (see ``constants``).

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.api.data_set import DataSet
from engine.api.expression import Expr
from engine.api.expressions import col, lit, when
from engine.errors import NotYetSupportedError, PlanError
from engine.expressions.argument_kinds import is_list
from engine.expressions.infer import infer_type
from engine.graph.expression import Cast, ColumnRef
from engine.sql.arguments import constant_of
from engine.sql.coercions import Coercions, without_widening
from engine.sql.constants import computed, constant_call, constant_cast, is_constant, is_null, scalar_of
from engine.sql.list_functions import LIST_FUNCTIONS, is_any, null_position
from engine.sql.marked_membership import marked_value
from engine.sql.own_functions import OWN
from engine.sql.scalar_functions import FUNCTIONS, OVER_NULLS
from engine.sql.spans import INTERVAL_OF, moved, part_of_span, with_spans
from engine.sql.types import arrow_type, constant, in_microseconds
from engine.sql.windows import window
from engine.sql.written_otherwise import MARK
from engine.sql.zone_calls import zone_call

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression

#: failure mode of a cast: null for values that the type cannot hold
_RETURN_NULL: Final = 1
_WIDE_INTEGERS: Final = {pa.int64(), pa.uint64()}
_MIRRORED: Final = {"lt": "gt", "lte": "gte", "gt": "lt", "gte": "lte", "equal": "equal", "not_equal": "not_equal"}
_COMPARISONS: Final = frozenset(
    ("equal", "not_equal", "lt", "lte", "gt", "gte", "between", "is_distinct_from", "is_not_distinct_from")
)
_NANOSECONDS: Final = pa.timestamp("ns")
_MICROSECONDS: Final = pa.timestamp("us")
_UNITS: Final = ("s", "ms", "us", "ns")
#: largest precision of SQL's decimals
_MOST_DIGITS: Final = 38
#: type as which a text is read that is a decimal, before it is rounded
_MOST: Final = pa.decimal256(76, _MOST_DIGITS)


class ExpressionReader:
    """Reads expressions over the columns of one relation."""

    def __init__(
        self,
        columns: Sequence[str],
        data: Sequence[DataSet],
        function_names: dict[int, str],
        scalar_column: Callable[[Expression.Subquery], str],
        coercions: Coercions,
        unique: Callable[[str], str],
        element: Callable[[Expr, Expr], Expr | None],
    ) -> None:
        self._columns = columns
        self._data = data
        self._function_names = function_names
        self._scalar_column = scalar_column
        self._coercions = coercions
        #: schema of all columns, made when the first type is asked for
        self._schema: pa.Schema | None = None
        self._unique = unique
        self._element = element
        #: columns that must be computed before the expression
        self.before: dict[str, Expr] = {}

    def read(self, message: Expression) -> Expr:
        """Return an expression; NotYetSupportedError for a kind or a function that is not here."""
        return computed(self._read(message))

    def _read(self, message: Expression) -> Expr:
        kind = str(message.WhichOneof("rex_type"))
        match kind:
            case "selection":
                return col(self._columns[self.position(message)])
            case "literal":
                return lit(constant(message.literal))
            case "scalar_function":
                return self._call(message.scalar_function)
            case "window_function":
                call = message.window_function
                return window(self.read, self._function_names[call.function_reference], call, self._type, self._made)
            case "cast":
                return self._cast(message.cast)
            case "if_then":
                marked = marked_value(message, self._function_names)
                return self._case(message.if_then) if marked is None else self.read(marked)
            case "singular_or_list":
                return self._is_in(message.singular_or_list)
            case "subquery":
                return col(self._scalar_column(message.subquery))
            case _:
                raise NotYetSupportedError(f"the SQL expression {kind}")

    def _made(self, value: Expr) -> Expr:
        """Return a column of row numbers that is there before, as others of the same rows are."""
        name = next((name for name, known in self.before.items() if known.expression == value.expression), None)
        name = name or self._unique("row")
        self.before[name] = value
        return col(name)

    def position(self, message: Expression) -> int:
        """Return the column index of a reference; NotYetSupportedError for a part of a nested value."""
        reference = message.selection.direct_reference
        if reference.WhichOneof("reference_type") != "struct_field" or reference.struct_field.HasField("child"):
            raise NotYetSupportedError("a part of a nested column in SQL")
        return int(reference.struct_field.field)

    def _call(self, call: Expression.ScalarFunction) -> Expr:
        name = self._function_names[call.function_reference]
        if name in ("add", "subtract"):
            shifted = self._moved(call, is_back=name == "subtract")
            if shifted is not None:
                return shifted
        arguments = [self.read(message) for message in self._operands(call, name)]
        zoned = zone_call(name, arguments)
        if zoned is not None:
            return zoned
        if name in OWN:
            is_unknown = any(map(is_null, arguments))
            return lit(None, OWN[name].made) if is_unknown else OWN[name].call(arguments)
        if name in ("date_part", "date_trunc"):
            arguments = [arguments[0], self._in_utc(arguments[1])]
        if name in ("add", "subtract"):
            arguments = [self._in_utc(one) for one in arguments]  # a day of the calendar is one of UTC
        if name == "array_has" and self._is_marked(call.arguments[0].value):
            return is_any(arguments[0], arguments[1])
        if name == "array_position":
            return null_position(arguments)
        if name == "array_element" and (element := self._element(arguments[0], arguments[1])) is not None:
            return element
        if name in LIST_FUNCTIONS:
            return LIST_FUNCTIONS[name](arguments, None)
        if name not in FUNCTIONS:
            return constant_call(name, arguments, self._coercions.moment)
        wanted = arrow_type(call.output_type) if call.HasField("output_type") else None
        if name not in OVER_NULLS and any(map(is_null, arguments[:2])):
            # LIKE alone has no type, and a third argument that may be null
            return lit(None, wanted or pa.bool_())
        if name in _COMPARISONS:
            arguments = with_spans(arguments, self._type)
            arguments = without_widening(arguments, self._type)
            if name in _MIRRORED and is_constant(arguments[0]):
                # as 2 < k is estimated: k > 2
                name, arguments = _MIRRORED[name], arguments[::-1]
        if name == "character_length" and is_list(self._type(_without_cast(arguments[0]))):
            # length() of a list, which the planner takes for a text
            return _without_cast(arguments[0]).list.length()
        if name == "date_part" and pa.types.is_duration(self._type(arguments[1])):
            return part_of_span(str(constant_of(arguments[0], "a part of a span")), arguments[1])
        if name == "subtract" and call.output_type.WhichOneof("kind") == "i64" and self._is_date(arguments[0]):
            return arguments[0].dt.diff(arguments[1], "days")
        return FUNCTIONS[name](arguments, wanted)

    def _operands(self, call: Expression.ScalarFunction, name: str) -> list[Expression]:
        """Return the arguments of a call; of AND and OR, which the planner nests in pairs, those of the whole chain."""
        found: list[Expression] = []
        waiting = [argument.value for argument in reversed(call.arguments)]
        while waiting:
            message = waiting.pop()
            inner = message.scalar_function
            is_chain = name in ("and", "or") and message.WhichOneof("rex_type") == "scalar_function"
            if is_chain and self._function_names[inner.function_reference] == name:
                waiting.extend(argument.value for argument in reversed(inner.arguments))
            else:
                found.append(message)
        return found

    def _is_marked(self, message: Expression) -> bool:
        """Return whether a list is that of = ANY (list)."""
        call = message.scalar_function
        is_call = message.WhichOneof("rex_type") == "scalar_function"
        return is_call and self._function_names[call.function_reference] == MARK.lower() and len(call.arguments) == 1

    def _is_in(self, message: Expression.SingularOrList) -> Expr:
        options = [self.read(option) for option in message.options]
        value, *options = without_widening([self.read(message.value), *options], self._type)
        if all(map(is_constant, options)):
            return value.is_in(options)
        return reduce(or_, (value == option for option in options))

    def _cast(self, message: Expression.Cast) -> Expr:
        value = self.read(message.input)
        source = self._type(value)
        if message.type.WhichOneof("kind") == "interval_compound" and pa.types.is_duration(source):
            return value  # beside intervals, which become spans of time, too
        wanted = arrow_type(message.type)
        if pa.types.is_integer(source) and (pa.types.is_timestamp(wanted) or pa.types.is_date(wanted)):
            raise PlanError("sql: a number as a date or a time; write from_unixtime(seconds), make_date(y, m, d)")
        if wanted == _NANOSECONDS and (pa.types.is_date(source) or (pa.types.is_timestamp(source) and not source.tz)):
            # the unit of a TIMESTAMP without digits, too, in which years end with 2262: nothing is lost in another one
            return value.cast(_MICROSECONDS) if pa.types.is_date(source) else value
        if pa.types.is_string(source) and pa.types.is_boolean(wanted):
            value = computed(_as_condition(value))
        elif pa.types.is_string(source) and not is_constant(value):
            value, wanted = _readable(value, wanted)
        if self._coercions.is_of_counts(source, wanted):
            return value if source == pa.int64() else value.cast(pa.int64())
        if self._coercions.makes_double(source, wanted):
            return self._as_double(value, source)
        if message.failure_behavior == _RETURN_NULL:
            return self._rounded(value, wanted, is_tried=True).try_cast(wanted)
        if pa.types.is_float64(wanted):
            return self._as_double(value, source)
        if pa.types.is_float32(wanted) and source in _WIDE_INTEGERS:
            return self._as_double(value, source).cast(wanted)
        if pa.types.is_timestamp(source) and pa.types.is_string(wanted):
            return _moment_as_text(value, source)
        if pa.types.is_timestamp(source) and pa.types.is_timestamp(wanted) and _is_finer(source, wanted):
            # without the digits that the other type has not
            zoned = value if source.tz == wanted.tz else value.cast(pa.timestamp(source.unit, wanted.tz))
            return zoned.dt.epoch(wanted.unit).cast(pa.timestamp(wanted.unit)).cast(wanted)
        cast = self._rounded(value, wanted).cast(wanted)
        if not (pa.types.is_string(source) and is_constant(value)):
            return cast
        if not is_constant(found := computed(cast)):
            found = constant_cast(scalar_of(value).as_py(), wanted)
        return lit(in_microseconds(scalar_of(found)))

    def _as_double(self, value: Expr, source: pa.DataType) -> Expr:
        if source in _WIDE_INTEGERS:
            return value * 1.0  # rounds what a double cannot hold, where a cast is exact or an error
        return value if source == pa.float64() else value.cast(pa.float64())

    def _moved(self, call: Expression.ScalarFunction, *, is_back: bool) -> Expr | None:
        """Return a moment and an interval that is a number of units; None for other sums."""
        messages = [argument.value for argument in call.arguments]
        units = [self._units(message) for message in messages]
        place = next((place for place, unit in enumerate(units) if unit is not None), None)
        if place is None or len(messages) != 2 or (is_back and place == 0):
            return None
        count, unit = units[place] or (lit(0), "day")
        value = self._in_utc(self.read(messages[1 - place]))
        return moved(value, count, unit, is_date=self._is_date(value), is_back=is_back)

    def _units(self, message: Expression) -> tuple[Expr, str] | None:
        """Return number and unit of an interval that is computed: of interval_of(), and of ``date + n``.

        The planner makes a duration of such days, and an interval of that.
        """
        kind = message.WhichOneof("rex_type")
        if (
            kind == "scalar_function"
            and self._function_names[message.scalar_function.function_reference] == INTERVAL_OF
        ):
            count, unit = (self.read(argument.value) for argument in message.scalar_function.arguments)
            return count, str(constant_of(unit, "the unit of an interval"))
        if kind != "cast" or message.cast.type.WhichOneof("kind") != "interval_compound":
            return None
        days = message.cast.input
        seconds = days.cast.input.scalar_function if days.WhichOneof("rex_type") == "cast" else None
        if seconds is None or len(seconds.arguments) != 2:
            return None
        return self.read(seconds.arguments[0].value), "day"

    def _is_date(self, value: Expr) -> bool:
        return bool(pa.types.is_date(self._type(value)))

    def _in_utc(self, value: Expr) -> Expr:
        """Return a moment as clocks in UTC show it, whatever the zone of its column: SQL has one zone for all."""
        data_type = self._type(value)
        has_zone = pa.types.is_timestamp(data_type) and data_type.tz not in (None, "UTC")
        return value.dt.to_timezone("UTC") if has_zone else value

    def _type(self, value: Expr) -> pa.DataType:
        if self._schema is None:
            self._schema = pa.schema([field for each in self._data for field in each.schema])
        if missing := [name for name in self.before if name not in self._schema.names]:
            self._schema = pa.unify_schemas([self._schema, pa.schema([(name, pa.int64()) for name in missing])])
        expression = value.expression
        if isinstance(expression, ColumnRef):
            return self._schema.field(expression.name).type
        return infer_type(expression, self._schema)

    def _rounded(self, value: Expr, wanted: pa.DataType, is_tried: bool = False) -> Expr:
        """Return the operand of a cast, also from text (see ``rounded``)."""
        if pa.types.is_decimal(wanted) and pa.types.is_string(self._type(value)):
            value = value.try_cast(_MOST) if is_tried else value.cast(_MOST)
        return rounded(value, self._type(value), wanted)

    def _case(self, message: Expression.IfThen) -> Expr:
        clauses, chain, compared = list(message.ifs), None, None
        if clauses and not clauses[0].HasField("then"):
            # CASE x WHEN 1 THEN ...: x stands in front, as a condition without a value
            compared = self.read(getattr(clauses.pop(0), "if"))
        for clause in clauses:
            condition, value = self.read(getattr(clause, "if")), self.read(clause.then)
            condition = condition if compared is None else compared == condition
            chain = when(condition).then(value) if chain is None else chain.when(condition).then(value)
        if chain is None:
            raise NotYetSupportedError("a CASE without WHEN")
        return chain.otherwise(self.read(getattr(message, "else"))) if message.HasField("else") else chain


def _as_condition(value: Expr) -> Expr:
    """Return a text with true and false for the other words that stand for them."""
    word = value.str.strip(" ").str.lower()
    return (
        when(word.is_in(["t", "yes", "y"]))
        .then("true")
        .when(word.is_in(["f", "no", "n"]))
        .then("false")
        .otherwise(word)
    )


def rounded(value: Expr, source: pa.DataType, wanted: pa.DataType) -> Expr:
    """Return the rounded operand of a cast, as in SQL: halves of floats to even, others away from zero."""
    if not (pa.types.is_integer(wanted) or pa.types.is_decimal(wanted)):
        return value
    digits = wanted.scale if pa.types.is_decimal(wanted) else 0
    if pa.types.is_floating(source):
        return value.call("round", digits=digits, to_even=pa.types.is_integer(wanted))
    if not pa.types.is_decimal(source) or source.scale <= digits:
        return value
    return value.round(digits)


def _readable(value: Expr, wanted: pa.DataType) -> tuple[Expr, pa.DataType]:
    """Return a text and the type it is read as: a TIMESTAMP has microseconds, and blanks around it do not count."""
    if pa.types.is_timestamp(wanted) and wanted.unit == "ns":
        value = value.str.replace(r"(\.\d{6})\d+", r"\1", regex=True)
        wanted = pa.timestamp("us", wanted.tz)
    is_read = pa.types.is_integer(wanted) or pa.types.is_floating(wanted) or pa.types.is_temporal(wanted)
    return (value.str.strip(" ") if is_read or pa.types.is_decimal(wanted) else value), wanted


def _is_finer(one: pa.DataType, other: pa.DataType) -> bool:
    return _UNITS.index(one.unit) > _UNITS.index(other.unit)


def _without_cast(value: Expr) -> Expr:
    return Expr(value.expression.operand) if isinstance(value.expression, Cast) else value


def _moment_as_text(value: Expr, data_type: pa.DataType) -> Expr:
    """Return a moment as SQL writes it: of the fraction of a second only what is not zero, and the zone as +00."""
    if data_type.tz is not None:
        return _moment_as_text(value.dt.to_timezone("UTC").dt.with_timezone(None), pa.timestamp(data_type.unit)) + "+00"
    text = value.cast(pa.string())
    return text if data_type.unit == "s" else text.str.replace(r"\.?0+$", "", regex=True)
