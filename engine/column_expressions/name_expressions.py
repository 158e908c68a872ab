"""``.name`` of an expression: the name of its column, made of its alias, or of the column that it reads first.

    (col("x") + 1).name.suffix("_1")             x_1
    cs.numeric().cast("string").name.map(f)      of each column that is chosen

Held by: tests/integration/test_selectors.py
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Generic, Protocol, Self, TypeVar

from engine.column_expressions.other_names import HasOtherNames
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name


class Named(Protocol):
    """The protocol that these functions build on."""

    def named_by(self, naming: Callable[[builtins.str], builtins.str], *, of_column: bool = False) -> Self:
        """Return this value under a name that is made of the one that it has, or of that of its column."""
        ...


NamedT = TypeVar("NamedT", bound=Named)


class NameExpressions(HasOtherNames, Generic[NamedT]):
    """Names of an expression's column, made of its alias, or of the name of the column that it reads first."""

    _kind = ".name"

    def __init__(self, value: NamedT) -> None:
        self._value = value

    def map(self, function: Callable[[str], str]) -> NamedT:
        """Return the expression under the name that a function makes of the column's.

        >>> col("x").name.map(lambda name: name * 2).output_name
        'xx'
        """
        if not callable(function):
            raise SchemaError(f".name.map({function!r}): a function of a name")
        return self._value.named_by(lambda name: check_column_name(function(name), ".name.map"))

    def prefix(self, text: str) -> NamedT:
        """Return the expression under the column's name with a text in front.

        >>> (col("x") * 2).name.prefix("double_").output_name
        'double_x'
        """
        return self.map(lambda name: f"{text}{name}")

    def suffix(self, text: str) -> NamedT:
        """Return the expression under the column's name with a text behind it.

        >>> (col("x") * 2).name.suffix("_doubled").output_name
        'x_doubled'
        """
        return self.map(lambda name: f"{name}{text}")

    def keep(self) -> NamedT:
        """Return the expression under the column's own name.

        >>> (col("x") * 2).name.keep().output_name
        'x'
        """
        return self._value.named_by(builtins.str, of_column=True)

    def to_lowercase(self) -> NamedT:
        """Return the expression under the column's name in lower case.

        >>> col("X").name.to_lowercase().output_name
        'x'
        """
        return self.map(builtins.str.lower)

    def to_uppercase(self) -> NamedT:
        """Return the expression under the column's name in upper case.

        >>> col("x").name.to_uppercase().output_name
        'X'
        """
        return self.map(builtins.str.upper)

    def replace(self, old: builtins.str, new: builtins.str) -> NamedT:
        """Return the expression under the column's name with a text in it replaced, wherever it stands.

        >>> col("a b").name.replace(" ", "_").output_name
        'a_b'
        """
        return self.map(lambda name: name.replace(old, new))
