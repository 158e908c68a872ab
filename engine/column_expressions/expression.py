"""Expr: what a user composes from ``col`` and ``lit``; a thin face of ``engine.graph.expression``.

    (col("price") * (1 - col("discount"))).alias("net")      col("name").str.upper()      col("day").dt.year()

An Expr is immutable. Comparisons give Exprs, so ``and``, ``or``, ``not`` and chained comparisons cannot work on them:
``&``, ``|``, ``~`` and ``between`` do (``python_habits`` has the errors). ``col("a") is None`` is decided by Python
and is always False: write ``is_null()``.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from engine.column_expressions.chains import Chain, chain_of, is_chained
from engine.column_expressions.data_types import to_data_type
from engine.column_expressions.number_functions import NumberFunctions
from engine.column_expressions.other_names import ON_EXPRESSIONS, HasOtherNames
from engine.column_expressions.python_habits import (
    HasValues,
    RowValue,
    check_own,
    warn_comparison_with_none,
    warn_plain_truth,
)
from engine.column_expressions.written_places import note
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.expressions.literals import make_literal
from engine.expressions.schema_bridge import type_to_ipc
from engine.expressions.text import expression_text
from engine.graph.expression import Call, Case, Cast, ColumnRef, Expression, NamedExpression, first_column
from engine.graph.function_table import with_constants
from engine.user_warnings import near_place

if TYPE_CHECKING:
    from engine.column_expressions.name_expressions import NameExpressions
    from engine.column_expressions.nested_expressions import ListExpressions, MapExpressions, StructExpressions
    from engine.column_expressions.string_expressions import StringExpressions
    from engine.column_expressions.time_expressions import TimeExpressions

_NO_DEFAULT: Final = object()


class Expr(NumberFunctions, RowValue, HasOtherNames):
    """A value computed for each row. ``name`` is what the column is called, "" when it was not given."""

    __slots__ = ("_expression", "_name", "_place", "chain")
    _kind = "an expression"
    _other_names = ON_EXPRESSIONS
    _spaces = ("str", "dt", "list", "struct", "map", "name")

    def __init__(self, expression: Expression | Chain, name: str = "") -> None:
        #: two operands that a chain of the function was built from
        self.chain = expression if isinstance(expression, Chain) else None
        self._expression = None if isinstance(expression, Chain) else expression
        self._place = near_place() if isinstance(expression, Chain) else None
        self._name = name
        if self._expression is not None:
            note(self._expression)

    @property
    def expression(self) -> Expression:
        """The expression that computes it."""
        if self._expression is None:
            assert self.chain is not None, "an expression is given, or what it is put together of"
            self._expression = self.chain.expression()
            note(self._expression, self._place)
        return self._expression

    def __repr__(self) -> str:
        alias = f".alias({self._name!r})" if self._name else ""
        return f"<Expr {expression_text(self.expression)}{alias}>"

    def call(self, function: str, *others: Any, **options: Any) -> Expr:
        """Return a function of this value and others; plain values become constants."""
        if is_chained(function, 1 + len(others)):
            return reduce(
                lambda left, right: Expr(chain_of(function, left, as_expression(right), options)), others, self
            )
        arguments = [self.expression, *(to_expression(other) for other in others)]
        named = {name: one.expression for name, one in options.items() if isinstance(one, Expr)}
        plain = {name: one for name, one in options.items() if name not in named}
        return Expr(with_constants(function, arguments, plain, named))

    def made(self, value: Any) -> Expr:
        """Return a column or a call of the plan, an Expr, or a plain value as an Expr."""
        return Expr(value) if isinstance(value, ColumnRef | Call) else as_expression(value)

    def _reversed(self, function: str, left: Any) -> Expr:
        if is_chained(function, 2):
            return Expr(chain_of(function, as_expression(left), self, {}))
        return Expr(Call(function, (to_expression(left), self.expression)))

    def alias(self, name: str) -> Expr:
        """Return this expression under another column name."""
        return Expr(self.expression, check_column_name(name, "alias"))

    def named_by(self, naming: Callable[[builtins.str], builtins.str], *, of_column: bool = False) -> Expr:
        """Return this expression under a name that a function makes of its alias, or of the column it reads first."""
        given = "" if of_column else self._name
        return NamedLater(self.expression, (lambda _column: naming(given)) if given else naming)

    @property
    def output_name(self) -> str:
        """Name of the column: the alias, the column's own, or the text of the expression."""
        if self._name:
            return self._name
        return self.expression.name if isinstance(self.expression, ColumnRef) else expression_text(self.expression)

    @property
    def has_name(self) -> bool:
        """Whether a name was given, by ``alias``."""
        return bool(self._name)

    def named(self) -> NamedExpression:
        """Return the expression with its column name."""
        return NamedExpression(self.output_name, self.expression)

    def __add__(self, other: Any) -> Expr:
        return self.call("add", other)

    def __radd__(self, other: Any) -> Expr:
        return self._reversed("add", other)

    def __sub__(self, other: Any) -> Expr:
        return self.call("subtract", other)

    def __rsub__(self, other: Any) -> Expr:
        return self._reversed("subtract", other)

    def __mul__(self, other: Any) -> Expr:
        return self.call("multiply", other)

    def __rmul__(self, other: Any) -> Expr:
        return self._reversed("multiply", other)

    def __truediv__(self, other: Any) -> Expr:
        return self.call("divide", other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self._reversed("divide", other)

    def __floordiv__(self, other: Any) -> Expr:
        return self.call("floor_divide", other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return self._reversed("floor_divide", other)

    def __mod__(self, other: Any) -> Expr:
        return self.call("modulo", other)

    def __rmod__(self, other: Any) -> Expr:
        return self._reversed("modulo", other)

    def __pow__(self, other: Any) -> Expr:
        return self.call("power", other)

    def __rpow__(self, other: Any) -> Expr:
        return self._reversed("power", other)

    def __neg__(self) -> Expr:
        return self.call("negate")

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return self.call("abs")

    def __round__(self, digits: int = 0) -> Expr:
        return self.round(digits)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        warn_comparison_with_none(other, "==", "is_null")
        return self.call("equal", other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        warn_comparison_with_none(other, "!=", "is_not_null")
        return self.call("not_equal", other)

    def __lt__(self, other: Any) -> Expr:
        return self.call("less", other)

    def __le__(self, other: Any) -> Expr:
        return self.call("less_equal", other)

    def __gt__(self, other: Any) -> Expr:
        return self.call("greater", other)

    def __ge__(self, other: Any) -> Expr:
        return self.call("greater_equal", other)

    def __and__(self, other: Any) -> Expr:
        warn_plain_truth(other, "&")
        return self.call("and", other)

    def __rand__(self, other: Any) -> Expr:
        warn_plain_truth(other, "&")
        return self._reversed("and", other)

    def __or__(self, other: Any) -> Expr:
        warn_plain_truth(other, "|")
        return self.call("or", other)

    def __ror__(self, other: Any) -> Expr:
        warn_plain_truth(other, "|")
        return self._reversed("or", other)

    def __invert__(self) -> Expr:
        return self.call("not")

    def __hash__(self) -> int:
        return id(self)

    def is_null(self) -> Expr:
        """Whether the value is null; never null itself.

        >>> values(col("x").is_null(), x=[1, None])
        [False, True]
        """
        return self.call("is_null")

    def is_not_null(self) -> Expr:
        """Whether there is a value; never null itself.

        >>> values(col("x").is_not_null(), x=[1, None])
        [True, False]
        """
        return self.call("is_not_null")

    def if_null(self, other: Any) -> Expr:
        """Return the value, and another one where it is null; both widen to their common type.

        >>> values(col("x").if_null(col("y")), x=[1, None], y=[5, 6])
        [1, 6]
        """
        return self.call("coalesce", other)

    def fill_null(self, value: Any) -> Expr:
        """Return the value, and another one where it is null; a constant gets the type of the value.

        A constant that does not fit into that type is an error: ``cast`` first. With an expression both widen to their
        common type, as in ``if_null``.

        >>> values(col("x").fill_null(0), x=[1, None])
        [1, 0]
        """
        return self.call("fill_null", value)

    def fill_nan(self, value: Any) -> Expr:
        """Return the value, and another one where it is NaN; null stays.

        >>> values(col("x").fill_nan(0), x=[1.5, float("nan"), None])
        [1.5, 0.0, None]
        """
        return Expr(Case(((self.is_nan().expression, to_expression(value)),), self.expression))

    def replace(self, mapping: Mapping[Any, Any]) -> Expr:
        """Return the value that a mapping has for it, and the value itself where it is none of the keys.

        Keys and values are constants; both widen to a common type with the value. None may be a key.

        >>> values(col("x").replace({"a": "A", None: "?"}), x=["a", "b", None])
        ['A', 'b', '?']
        """
        return self.call("replace", *_mapped(mapping, "replace"))

    def replace_strict(self, mapping: Mapping[Any, Any], default: Any = _NO_DEFAULT) -> Expr:
        """Return the value that a mapping has for it; one that is none of the keys fails the job, or is the default.

        Null that is no key is null, or the default. The type is that of the new values.

        >>> values(col("x").replace_strict({1: "one", 2: "two"}, default="many"), x=[1, 2, 3])
        ['one', 'two', 'many']
        """
        keys, values = _mapped(mapping, "replace_strict")
        if default is _NO_DEFAULT:
            return self.call("replace", keys, values, strict=True)
        return self.call("replace", keys, values, default)

    def nullif(self, other: Any) -> Expr:
        """Return the value, null where it equals another one.

        >>> values(col("x").nullif(""), x=["a", "", None])
        ['a', None, None]
        """
        return self.call("nullif", other)

    def eq_null_safe(self, other: Any) -> Expr:
        """Whether both are equal or both null; never null itself.

        >>> values(col("x").eq_null_safe(col("y")), x=[1, 1, None], y=[1, None, None])
        [True, False, True]
        """
        return self.call("eq_null_safe", other)

    def require(self, condition: Any, message: str) -> Expr:
        """Return the value as it is; a row of which the condition is false or null ends the job with the message.

        >>> values(col("price").require(col("price") > 0, "a price is above zero"), price=[1, 2])
        [1, 2]
        """
        return self.call("require", condition, message=message)

    def is_in(self, *values: Any) -> Expr:
        """Whether the value is one of some constants: ``is_in([1, 2])`` or ``is_in(1, 2)``; null as in SQL.

        >>> values(col("x").is_in(1, 2), x=[1, 3, None])
        [True, False, None]

        A data set of one column is a list of values too, in ``select``, ``with_columns`` and ``filter``.
        """
        if len(values) == 1 and isinstance(values[0], HasValues):
            found: Expr = values[0].has_value(self)
            return found
        if len(values) == 1 and isinstance(values[0], Iterable) and not isinstance(values[0], str | bytes | Expr):
            values = tuple(values[0])
        return self.call("is_in", *values)

    def between(self, lower: Any, upper: Any) -> Expr:
        """Whether ``lower <= value <= upper``.

        >>> values(col("x").between(1, 2), x=[0, 1, 2, None])
        [False, True, True, None]
        """
        return self.call("between", lower, upper)

    def cast(self, data_type: pa.DataType | type | str) -> Expr:
        """Return the value as another type (a pyarrow type, its name, or int, float, str, bool).

        A value that the type cannot hold fails the job, naming the value.

        >>> values(col("x").cast(int), x=["12", None])
        [12, None]
        """
        target = to_data_type(data_type)
        return Expr(Cast(self.expression, type_to_ipc(target), str(target)), self._cast_name())

    def try_cast(self, data_type: pa.DataType | type | str) -> Expr:
        """Return the value as another type, null where the type cannot hold it.

        >>> values(col("x").try_cast(int), x=["12", "no", None])
        [12, None, None]
        """
        nothing = make_literal(None, to_data_type(data_type))
        return Expr(Call("try_cast", (self.expression, nothing)), self._cast_name())

    def _cast_name(self) -> str:
        """Return the name: a column that is cast keeps its own."""
        return self._name or (self.expression.name if isinstance(self.expression, ColumnRef) else "")

    def md5(self) -> Expr:
        """Return the MD5 digest of a text's or binary value's bytes, as 32 hex digits.

        >>> values(col("x").md5(), x=["abc"])
        ['900150983cd24fb0d6963f7d28e17f72']
        """
        return self.call("md5")

    def sha256(self) -> Expr:
        """Return the SHA-256 digest of a text's or binary value's bytes, as 64 hex digits.

        >>> values(col("x").sha256().str.left(16), x=["abc"])
        ['ba7816bf8f01cfea']
        """
        return self.call("sha256")

    def sha1(self) -> Expr:
        """Return the SHA-1 digest of a text's or binary value's bytes, as 40 hex digits.

        >>> values(col("x").sha1().str.left(16), x=["abc"])
        ['a9993e364706816a']
        """
        return self.call("sha1")

    def sha512(self) -> Expr:
        """Return the SHA-512 digest of a text's or binary value's bytes, as 128 hex digits.

        >>> values(col("x").sha512().str.left(16), x=["abc"])
        ['ddaf35a193617aba']
        """
        return self.call("sha512")

    def crc32(self) -> Expr:
        """Return the CRC-32 of a text's or binary value's bytes, as int64.

        >>> values(col("x").crc32(), x=["abc"])
        [891568578]
        """
        return self.call("crc32")

    def to_json(self) -> Expr:
        """Return the value as a JSON text: structs are objects, lists arrays, moments and decimals texts; null is null.

        NaN and infinite floats are ``null``, for which JSON has no text.

        >>> values(col("x").to_json(), x=[{"a": [1, None]}, None])
        ['{"a":[1,null]}', None]
        """
        return self.call("to_json")

    def field(self, name: str) -> Expr:
        """Return a field of a struct; null where the struct is.

        >>> values(col("x").field("a"), x=[{"a": 1}, None])
        [1, None]
        """
        return Expr(Call("field", (self.expression,), {"name": name}), self._name or name)

    @property
    def name(self) -> NameExpressions[Expr]:
        """Names of the column, made of the name of the one that is read."""
        from engine.column_expressions.name_expressions import NameExpressions

        return NameExpressions(self)

    @property
    def str(self) -> StringExpressions[Expr]:
        """Functions of strings."""
        from engine.column_expressions.string_expressions import StringExpressions

        return StringExpressions(self)

    @property
    def dt(self) -> TimeExpressions[Expr]:
        """Functions of dates and times."""
        from engine.column_expressions.time_expressions import TimeExpressions

        return TimeExpressions(self)

    @property
    def list(self) -> ListExpressions[Expr]:
        """Functions of lists."""
        from engine.column_expressions.nested_expressions import ListExpressions

        return ListExpressions(self)

    @property
    def struct(self) -> StructExpressions[Expr]:
        """Functions of structs."""
        from engine.column_expressions.nested_expressions import StructExpressions

        return StructExpressions(self)

    @property
    def map(self) -> MapExpressions[Expr]:
        """Functions of maps."""
        from engine.column_expressions.nested_expressions import MapExpressions

        return MapExpressions(self)


def _mapped(mapping: Mapping[Any, Any], what: str) -> tuple[Expr, Expr]:
    """Return the keys and the values of a mapping, as constant lists."""
    if not isinstance(mapping, Mapping) or not mapping:
        raise SchemaError(f"{what}({mapping!r}): give it keys and values, as in {what}({{1: 'a'}})")
    return Expr(make_literal(list(mapping.keys()))), Expr(make_literal(list(mapping.values())))


class NamedLater(Expr):
    """An expression whose name is made of that of a column, which a selector may not know yet."""

    __slots__ = ("naming",)

    def __init__(self, expression: Expression, naming: Callable[[str], str]) -> None:
        column = first_column(expression)
        if column is None:
            raise SchemaError(f"{expression_text(expression)}: it reads no column to be named after; use alias(name)")
        super().__init__(expression, naming(column))
        #: function that returns the name, given that of the column
        self.naming = naming

    def named_by(self, naming: Callable[[builtins.str], builtins.str], *, of_column: bool = False) -> Expr:
        """Return this expression under a name that a function makes of the one that it has, or of the column's."""
        own = self.naming
        return NamedLater(self.expression, naming if of_column else lambda column: naming(own(column)))


def as_expression(value: Any) -> Expr:
    """Return an Expr as it is, and a plain value as a constant."""
    return value if isinstance(value, Expr) else Expr(to_expression(value))


def to_expression(value: Any) -> Expression:
    """Return the expression of an Expr, or the constant of a plain value."""
    if isinstance(value, Expr):
        return value.expression
    check_own(value, "")
    if hasattr(value, "over"):
        raise SchemaError(f"{value!r} needs a window: call .over(partition_by, order_by)")
    if hasattr(value, "then"):
        raise SchemaError("when(condition) has no value yet: write when(condition).then(value)")
    return make_literal(value)
