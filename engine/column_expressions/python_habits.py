"""Python's ``if``, ``in``, ``len``, ``for`` and ``sum`` on expressions: what to write instead.

    if col("a") > 1        col("a") and col("b")      truth: neither true nor false before rows are read
    sum(col("a"))          for x in col("a")          an expression is one value of each row, not a list of values
    1 in col("a")          len(col("a"))              the same

Each is an error that says what to write. What Python decides without asking the value cannot be caught here:
``col("a") is None`` is a plain ``False``, and so is ``x is not None`` a plain ``True``; ``plain_truth`` says so where
such a bool is given to ``filter``, and ``warn_plain_truth`` where a bool may be meant. ``col("a") == None`` is null in
every row, as in SQL, so a filter with it keeps none: ``warn_comparison_with_none``.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, Protocol, runtime_checkable

from engine.errors import SchemaError
from engine.user_warnings import warn_user

_NO_TRUTH = (
    "an expression is neither true nor false here, it is evaluated for each row later: use & for and, | for or,"
    " ~ for not (with parentheses around comparisons), between() for a < x < b, is_in([...]) for in,"
    " when(...).then(...).otherwise(...) for if, and for min() and max() of two columns"
)
_NOT_A_LIST = (
    "an expression is one value of each row, evaluated later, and cannot be iterated over: a column is added up with"
    " group_by(...).agg(total=sum_(col('a'))) (count, min_, max_, avg likewise); its values come back with collect()"
)
_NO_LENGTH = (
    "an expression has no length before rows are read: col('a').str.length() is the length of each string,"
    " data_set.count() the number of rows"
)
_NO_MEMBERS = "in does not work on an expression: write col('a').is_in([1, 2]), or col('a').str.contains('text')"
_NO_ITEMS = (
    "an expression cannot be indexed: {advice}; rows are chosen with filter() and limit(), columns with select()"
)
_PLAIN = (
    "is {value!r} before any row is read, a plain bool. Python decides `is None`, `is not None` and"
    " comparisons of plain values by itself: write col('a').is_null() or col('a').is_not_null()"
)
#: names of the classes of expressions elsewhere, and the libraries
_FOREIGN: Final = frozenset({"Expr", "Column", "Expression"})
_LIBRARIES: Final = frozenset({"duckdb", "ibis", "polars", "pyspark"})


class RowValue:
    """Base of expressions: what Python would ask of a value that is there is an error."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise SchemaError(_NO_TRUTH)

    def __iter__(self) -> NoReturn:
        raise SchemaError(_NOT_A_LIST)

    def __len__(self) -> NoReturn:
        raise SchemaError(_NO_LENGTH)

    def __contains__(self, _value: object) -> NoReturn:
        raise SchemaError(_NO_MEMBERS)

    def __getitem__(self, index: object) -> NoReturn:
        text, items = "slice(start, stop)", f"get({index!r})"
        if isinstance(index, slice):
            text = items = f"slice({index.start or 0}{'' if index.stop is None else f', {index.stop}'})"
        advice = f"col('a').str.{text} is a part of a text, col('a').list.{items} of a list"
        if isinstance(index, str):
            advice = f"col('a').field({index!r}) is a field of a struct, col('a').map.get({index!r}) a value of a map"
        raise SchemaError(_NO_ITEMS.format(advice=advice))


def check_own(value: object, what: str) -> None:
    """Refuse an expression of another library, which may have the methods that are looked for here."""
    for kind in type(value).__mro__:
        library = kind.__module__.partition(".")[0].lstrip("_")
        if library in _LIBRARIES and kind.__name__ in _FOREIGN:
            raise SchemaError(f"{what}an expression of {library}, {value!r}: write it with col of drey")


@runtime_checkable
class HasValues(Protocol):
    """Something whose values an expression may be one of, such as a data set of one column."""

    def has_value(self, tested: Any) -> Any:
        """Return whether a value is one of its values, as an expression."""
        ...


def plain_truth(value: bool, what: str) -> SchemaError:
    """Return the error for a bool where an expression is needed."""
    return SchemaError(f"{what}({value!r}): expected an expression, but this {_PLAIN.format(value=value)}")


def warn_plain_truth(value: Any, what: str) -> None:
    """Warn of a bool where one is possible, and a mistake more often than not."""
    if isinstance(value, bool):
        warn_user(f"{what}: one side {_PLAIN.format(value=value)}; lit({value!r}) if the constant is meant")


def warn_comparison_with_none(other: object, operator: str, method: str) -> None:
    """Warn of a comparison with None, which is null in every row."""
    if other is None:
        warn_user(
            f"{operator} None: a comparison with null is null, neither true nor false, and a filter with it keeps no"
            f" row; write {method}()"
        )
