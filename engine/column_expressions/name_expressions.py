"""``.name`` of an expression: the name of its column, made of the name of the column that it reads first.

    (col("x") + 1).name.suffix("_1")             x_1
    cs.numeric().cast("string").name.map(f)      of each column that is chosen

Held by: tests/integration/test_selectors.py
"""

from __future__ import annotations

import builtins
from collections.abc import Callable

from engine.column_expressions.expression import Expr
from engine.column_expressions.other_names import HasOtherNames
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.expressions.text import expression_text
from engine.graph.expression import Aggregated, ColumnRef, Expression, children_of


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of an expression, those of an aggregate too."""
    if not isinstance(expression, Aggregated):
        return children_of(expression)
    where = () if expression.where is None else (expression.where,)
    return (*expression.arguments, *where, *(key.expression for key in expression.order_by))


def _first_column(expression: Expression) -> str:
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ColumnRef):
            return part.name
        waiting.extend(parts_of(part)[::-1])
    raise SchemaError(f"{expression_text(expression)}: it reads no column whose name .name could take; use alias(name)")


class NamedLater(Expr):
    """An expression whose name is made of that of a column, which a selector may not know yet."""

    __slots__ = ("naming",)

    def __init__(self, expression: Expression, naming: Callable[[str], str]) -> None:
        super().__init__(expression, naming(_first_column(expression)))
        #: function that returns the name, given that of the column
        self.naming = naming


class NameExpressions(HasOtherNames):
    """Names of an expression's column, made of the name of the column that it reads first."""

    _kind = ".name"

    def __init__(self, value: Expr) -> None:
        self._value = value

    def map(self, function: Callable[[str], str]) -> Expr:
        """Return the expression under the name that a function makes of the column's.

        >>> col("x").name.map(lambda name: name * 2).output_name
        'xx'
        """
        if not callable(function):
            raise SchemaError(f".name.map({function!r}): a function of a name")
        return NamedLater(self._value.expression, lambda name: check_column_name(function(name), ".name.map"))

    def prefix(self, text: str) -> Expr:
        """Return the expression under the column's name with a text in front.

        >>> (col("x") * 2).name.prefix("double_").output_name
        'double_x'
        """
        return self.map(lambda name: f"{text}{name}")

    def suffix(self, text: str) -> Expr:
        """Return the expression under the column's name with a text behind it.

        >>> (col("x") * 2).name.suffix("_doubled").output_name
        'x_doubled'
        """
        return self.map(lambda name: f"{name}{text}")

    def keep(self) -> Expr:
        """Return the expression under the column's own name.

        >>> (col("x") * 2).name.keep().output_name
        'x'
        """
        return self.map(builtins.str)

    def to_lowercase(self) -> Expr:
        """Return the expression under the column's name in lower case.

        >>> col("X").name.to_lowercase().output_name
        'x'
        """
        return self.map(builtins.str.lower)

    def to_uppercase(self) -> Expr:
        """Return the expression under the column's name in upper case.

        >>> col("x").name.to_uppercase().output_name
        'X'
        """
        return self.map(builtins.str.upper)

    def replace(self, old: builtins.str, new: builtins.str) -> Expr:
        """Return the expression under the column's name with a text in it replaced, wherever it stands.

        >>> col("a b").name.replace(" ", "_").output_name
        'a_b'
        """
        return self.map(lambda name: name.replace(old, new))
