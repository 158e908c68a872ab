"""``col("x").str``: functions of strings. Positions and lengths count characters.

Held by: tests/api/test_expression.py
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar

from engine.errors import SchemaError


class Value(Protocol):
    """What the functions are made of."""

    def call(self, function: str, *others: Any, **options: bool | int | float | str | None) -> Self:
        """Return a function of this value."""
        ...


ExprT = TypeVar("ExprT", bound=Value)


class StringExpressions(Generic[ExprT]):
    """Functions of a string value; null gives null."""

    def __init__(self, value: ExprT) -> None:
        self._value = value

    def length(self) -> ExprT:
        """Return the number of characters.

        >>> values(col("x").str.length(), x=["añ😀", ""])
        [3, 0]
        """
        return self._value.call("str_length")

    def upper(self) -> ExprT:
        """Return it in upper case.

        >>> values(col("x").str.upper(), x=["año"])
        ['AÑO']
        """
        return self._value.call("str_upper")

    def lower(self) -> ExprT:
        """Return it in lower case.

        >>> values(col("x").str.lower(), x=["AÑO"])
        ['año']
        """
        return self._value.call("str_lower")

    def strip(self, characters: str | None = None) -> ExprT:
        """Return it without white space, or those characters, at both ends.

        >>> values(col("x").str.strip(), x=[" a "])
        ['a']
        """
        return self._value.call("str_strip", characters=characters)

    def lstrip(self, characters: str | None = None) -> ExprT:
        """Return it without white space, or those characters, at the beginning.

        >>> values(col("x").str.lstrip("0"), x=["007"])
        ['7']
        """
        return self._value.call("str_lstrip", characters=characters)

    def rstrip(self, characters: str | None = None) -> ExprT:
        """Return it without white space, or those characters, at the end.

        >>> values(col("x").str.rstrip(), x=[" a "])
        [' a']
        """
        return self._value.call("str_rstrip", characters=characters)

    def contains(self, pattern: str, regex: bool = False) -> ExprT:
        """Whether a constant occurs in it; ``regex``: whether a regular expression (RE2) matches somewhere.

        >>> values(col("x").str.contains("b"), x=["abc", "x"])
        [True, False]
        """
        return self._value.call("str_contains", pattern, regex=regex)

    def starts_with(self, prefix: str) -> ExprT:
        """Whether it begins with a constant.

        >>> values(col("x").str.starts_with("a"), x=["abc", "x"])
        [True, False]
        """
        return self._value.call("str_starts_with", prefix)

    def ends_with(self, suffix: str) -> ExprT:
        """Whether it ends with a constant.

        >>> values(col("x").str.ends_with("c"), x=["abc", "x"])
        [True, False]
        """
        return self._value.call("str_ends_with", suffix)

    def replace(self, pattern: str, replacement: str, regex: bool = False) -> ExprT:
        r"""Return it with every occurrence replaced; ``regex``: RE2 syntax, groups as ``\1``.

        >>> values(col("x").str.replace("a", "o"), x=["banana"])
        ['bonono']
        """
        return self._value.call("str_replace", pattern, replacement, regex=regex)

    def slice(self, start: int, stop: int | None = None) -> ExprT:
        """Return Python's ``value[start:stop]``; negative positions count from the end.

        >>> values(col("x").str.slice(1, -1), x=["(a)"])
        ['a']
        """
        if not isinstance(start, int) or not isinstance(stop, int | None):
            raise SchemaError(f"str.slice({start!r}, {stop!r}): positions are integers")
        return self._value.call("str_slice", start=start, stop=stop)

    def concat(self, *others: Any, separator: str = "") -> ExprT:
        """Return it followed by others (expressions or constants); null when one is null.

        >>> values(col("x").str.concat("-", col("y")), x=["a", None], y=["b", "c"])
        ['a-b', None]
        """
        return self._value.call("str_concat", *others, separator=separator)
