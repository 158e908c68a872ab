"""Expressions of Substrait as ours.

    selection(4)                    col(the name of the fourth column)
    scalar_function(f, arguments)   functions.py
    window_function                 windows.py
    cast, if_then, singular_or_list cast(), when().then(), is_in()
    subquery                        a column that relations.py has joined

Held by: tests/sql/test_expressions.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from engine.api.data_set import DataSet
from engine.api.expression import Expr
from engine.api.expressions import col, lit, when
from engine.errors import NotYetSupportedError
from engine.expressions.infer import infer_type
from engine.graph.expression import Literal
from engine.sql.functions import FUNCTIONS
from engine.sql.marked_membership import marked_value
from engine.sql.types import arrow_type, constant
from engine.sql.windows import window

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression

#: of a cast: null for what the type cannot hold
_RETURN_NULL: Final = 1
#: what the planner makes of doubles and of floats beside decimals: it is too narrow for some, and rounds the others
_OF_FLOATS: Final = {(30, 15), (14, 7)}
_WIDE_INTEGERS: Final = {pa.int64(), pa.uint64()}
_COMPARISONS: Final = frozenset(
    ("equal", "not_equal", "lt", "lte", "gt", "gte", "between", "is_distinct_from", "is_not_distinct_from")
)
#: of the decimals of SQL
_MOST_DIGITS: Final = 38


class ExpressionReader:
    """Reads expressions over the columns of one relation."""

    def __init__(
        self,
        columns: Sequence[str],
        data: Sequence[DataSet],
        function_names: dict[int, str],
        scalar_column: Callable[[Expression.Subquery], str],
    ) -> None:
        self._columns = columns
        self._data = data
        self._function_names = function_names
        self._scalar_column = scalar_column

    def read(self, message: Expression) -> Expr:
        """Return an expression; NotYetSupportedError for a kind or a function that is not here."""
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
                return window(self.read, self._function_names[call.function_reference], call)
            case "cast":
                return self._cast(message.cast)
            case "if_then":
                marked = marked_value(message, self._function_names)
                return self._case(message.if_then) if marked is None else self.read(marked)
            case "singular_or_list":
                options = [self.read(option) for option in message.singular_or_list.options]
                return self.read(message.singular_or_list.value).is_in(options)
            case "subquery":
                return col(self._scalar_column(message.subquery))
            case _:
                raise NotYetSupportedError(f"the SQL expression {kind}")

    def position(self, message: Expression) -> int:
        """Return which column a reference means; NotYetSupportedError for a part of a nested value."""
        reference = message.selection.direct_reference
        if reference.WhichOneof("reference_type") != "struct_field" or reference.struct_field.HasField("child"):
            raise NotYetSupportedError("a part of a nested column in SQL")
        return int(reference.struct_field.field)

    def _call(self, call: Expression.ScalarFunction) -> Expr:
        name = self._function_names[call.function_reference]
        if name not in FUNCTIONS:
            raise NotYetSupportedError(f"the SQL function {name}()")
        messages = [argument.value for argument in call.arguments]
        arguments = self._compared(messages) if name in _COMPARISONS else [self.read(message) for message in messages]
        if name == "subtract" and call.output_type.WhichOneof("kind") == "i64" and self._is_date(arguments[0]):
            return arguments[0].dt.diff(arguments[1], "days")
        return FUNCTIONS[name](arguments, arrow_type(call.output_type) if call.HasField("output_type") else None)

    def _compared(self, messages: Sequence[Expression]) -> list[Expr]:
        """Return the sides of a comparison; of a decimal and a float both as floats, not as decimals."""
        floats = [self._float_as_decimal(message) for message in messages]
        if all(value is None for value in floats):
            return [self.read(message) for message in messages]
        return [
            self._uncast(message).cast(pa.float64()) if value is None else value
            for message, value in zip(messages, floats, strict=True)
        ]

    def _uncast(self, message: Expression) -> Expr:
        """Return a decimal without the digits that a cast adds: with them it becomes another float."""
        value = self.read(message)
        inner = self.read(message.cast.input) if message.WhichOneof("rex_type") == "cast" else value
        return inner if pa.types.is_decimal(self._type(inner)) else value

    def _float_as_decimal(self, message: Expression) -> Expr | None:
        """Return the float that a cast makes a decimal of, as the planner does it beside decimals."""
        if message.WhichOneof("rex_type") != "cast" or message.cast.type.WhichOneof("kind") != "decimal":
            return None
        wanted = message.cast.type.decimal
        value = self.read(message.cast.input) if (wanted.precision, wanted.scale) in _OF_FLOATS else None
        return value if value is not None and pa.types.is_floating(self._type(value)) else None

    def _cast(self, message: Expression.Cast) -> Expr:
        wanted, value = arrow_type(message.type), self.read(message.input)
        if message.failure_behavior == _RETURN_NULL:
            return self._rounded(value, wanted).try_cast(wanted)
        source = None if isinstance(value.expression, Literal) else self._type(value)
        if source in _WIDE_INTEGERS and pa.types.is_float64(wanted):
            return value * 1.0  # rounds what a double cannot hold, where a cast is exact or an error
        if source is not None and pa.types.is_timestamp(source) and source.tz is None and pa.types.is_string(wanted):
            return _moment_as_text(value, source.unit)
        return self._rounded(value, wanted).cast(wanted)

    def _is_date(self, value: Expr) -> bool:
        return bool(pa.types.is_date(self._type(value)))

    def _type(self, value: Expr) -> pa.DataType:
        fields = [field for each in self._data for field in each.schema]
        return infer_type(value.expression, pa.schema(fields))

    def _rounded(self, value: Expr, wanted: pa.DataType) -> Expr:
        """Return what a cast takes: in SQL it rounds, halves of floats to the even integer, others away from zero."""
        if not (pa.types.is_integer(wanted) or pa.types.is_decimal(wanted)):
            return value
        source, digits = self._type(value), wanted.scale if pa.types.is_decimal(wanted) else 0
        if pa.types.is_floating(source):
            return value.call("round", digits=digits, to_even=pa.types.is_integer(wanted))
        if not pa.types.is_decimal(source) or source.scale <= digits:
            return value
        # what has all of its digits rounds to one more, for which there may be room in the type that is wanted
        is_full = source.precision == _MOST_DIGITS
        return (value.cast(pa.decimal256(_MOST_DIGITS + 1, source.scale)) if is_full else value).round(digits)

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


def _moment_as_text(value: Expr, unit: str) -> Expr:
    """Return a moment as SQL writes it: of the fraction of a second only what is not zero."""
    text = value.cast(pa.string())
    return text if unit == "s" else text.str.replace(r"\.?0+$", "", regex=True)
