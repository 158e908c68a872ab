"""Python's ``if``, ``in``, ``len``, ``for``, ``sum``, ``float`` and NumPy on expressions: what to write instead.

    if col("a") > 1        col("a") and col("b")      truth: neither true nor false before rows are read
    sum(col("a"))          for x in col("a")          an expression is one value of each row, not a list of values
    1 in col("a")          len(col("a"))              the same
    math.sqrt(col("a"))    float(col("a"))            the same
    numpy.sqrt(col("a"))   numpy.float64(2) * col("a")  the method or the operator of that name, where there is one
    numpy.where(col("a") > 1, 1, 2)                   an error: NumPy's functions compute arrays

Each is an error that says what to write. What Python decides without asking the value cannot be caught here:
``col("a") is None`` is a plain ``False``, and so is ``x is not None`` a plain ``True``; ``plain_truth`` says so where
such a bool is given to ``filter``, and ``warn_plain_truth`` where a bool may be meant. ``col("a") == None`` is null in
every row, as in SQL, so a filter with it keeps none: ``warn_comparison_with_none``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol, TypeVar, cast, runtime_checkable

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
_NO_NUMBER = (
    "an expression is no number before rows are read: col('a').sqrt(), ln(), floor() and the like are the functions"
    " of math, col('a').cast(float) and col('a').trunc().cast(int) are float() and int()"
)
_NO_ARRAY = (
    "numpy.{name}() does not compute expressions: {advice}; a function of arrays is called by @udf(type, batch='numpy')"
)
#: ufuncs that are methods or functions of other names here
_UFUNC_METHODS: Final = {
    **{"log": "ln", "absolute": "abs", "isnan": "is_nan", "isfinite": "is_finite"},
    **{"isinf": "is_infinite", "arcsin": "asin", "arccos": "acos", "arctan": "atan"},
}
_UFUNC_OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    **{"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv},
    **{"floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "negative": operator.neg},
    **{"equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le},
    **{"greater": operator.gt, "greater_equal": operator.ge, "logical_and": operator.and_},
    **{"logical_or": operator.or_, "logical_not": operator.invert},
}
_NUMPY_ADVICE: Final = {
    "where": "write when(condition).then(1).otherwise(2)",
    "mean": "write avg(col('a'))",
    "sum": "write sum_(col('a'))",
    "max": "write max_(col('a'))",
    "min": "write min_(col('a'))",
    "median": "write median(col('a'))",
    "std": "write stddev_pop(col('a'))",
    "var": "write variance_pop(col('a'))",
    "round": "write col('a').round(2, mode='half_to_even')",
    "rint": "write col('a').round(mode='half_to_even')",
    "clip": "write col('a').clip(0, 10)",
    "maximum": "write greatest(col('a'), col('b'))",
    "minimum": "write least(col('a'), col('b'))",
    "select": "write when(condition).then(1).when(other).then(2).otherwise(3)",
}
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

    def __float__(self) -> NoReturn:
        raise SchemaError(_NO_NUMBER)

    def __int__(self) -> NoReturn:
        raise SchemaError(_NO_NUMBER)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_options: Any) -> Any:
        """Compute what a method or an operator has, one value of NumPy being a plain one."""
        name = ufunc.__name__
        values = [one.item() if getattr(type(one), "ndim", None) and not one.ndim else one for one in inputs]
        if method == "__call__" and not any(getattr(type(one), "ndim", None) for one in values):
            if name in _UFUNC_OPERATORS:
                return _UFUNC_OPERATORS[name](*values)
            called = getattr(type(self), _UFUNC_METHODS.get(name, name), None)
            if called is not None and len(inputs) == 1:
                return called(self)
        raise _no_array(name)

    def __array_function__(self, function: Any, *_call: Any) -> NoReturn:
        raise _no_array(function.__name__)

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


def _no_array(name: str) -> SchemaError:
    return SchemaError(_NO_ARRAY.format(name=name, advice=_NUMPY_ADVICE.get(name, "its functions take arrays")))


_F = TypeVar("_F", bound=Callable[..., Any])
_OF_WINDOWS: Final = {
    **dict.fromkeys(("desc", "reverse"), "descending=True"),
    **dict.fromkeys(("asc", "ascending"), "descending=, the other way round"),
    **dict.fromkeys(("partitionBy", "partition", "by", "group_by"), "partition_by="),
    **dict.fromkeys(("orderBy", "order", "sort_by"), "order_by="),
    **dict.fromkeys(("rowsBetween", "frame", "window_size"), "rows=(-2, 0)"),
    "rangeBetween": "range=(-2, 0)",
    "nulls_first": "nulls_last=, the other way round",
}


def with_options_of_windows(over: _F) -> _F:
    """Make ``over`` raise advice for options of other libraries."""
    known = ("partition_by", "order_by", "descending", "nulls_last", "rows", "range", "groups", "exclude")

    @functools.wraps(over)
    def call(*args: Any, **options: Any) -> Any:
        for option in options:
            if option not in known:
                advice = f"write {_OF_WINDOWS[option]}" if option in _OF_WINDOWS else f"it has {', '.join(known)}"
                raise TypeError(f"over() has no option {option}=: {advice}")
        return over(*args, **options)

    return cast("_F", call)


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
