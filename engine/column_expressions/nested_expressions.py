"""``col("x").list`` and ``col("x").map``: functions of lists and maps. Nulls among elements are passed over.

Held by: tests/expressions/test_nested_functions.py
"""

from __future__ import annotations

from typing import Any, Generic

from engine.column_expressions.other_names import ON_LISTS, ON_MAPS, HasOtherNames
from engine.column_expressions.string_expressions import ExprT
from engine.errors import SchemaError


class ListExpressions(HasOtherNames, Generic[ExprT]):
    """Functions of a list; null gives null."""

    _kind = ".list"
    _other_names = ON_LISTS

    def __init__(self, value: ExprT) -> None:
        self._value = value

    def length(self) -> ExprT:
        """Return the number of elements, nulls among them.

        >>> values(col("x").list.length(), x=[[1, None], [], None])
        [2, 0, None]
        """
        return self._value.call("list_length")

    def get(self, index: Any) -> ExprT:
        """Return the element at a position, from 0, negative from the end; null where there is none.

        >>> values(col("x").list.get(1), x=[[1, 2], [3], []])
        [2, None, None]
        """
        return self._value.call("list_get", index)

    def first(self) -> ExprT:
        """Return the first element; null of an empty list.

        >>> values(col("x").list.first(), x=[[1, 2], []])
        [1, None]
        """
        return self.get(0)

    def last(self) -> ExprT:
        """Return the last element; null of an empty list.

        >>> values(col("x").list.last(), x=[[1, 2], []])
        [2, None]
        """
        return self.get(-1)

    def slice(self, start: int, stop: int | None = None) -> ExprT:
        """Return Python's ``value[start:stop]``; negative positions count from the end.

        >>> values(col("x").list.slice(-2), x=[[1, 2, 3], [4]])
        [[2, 3], [4]]
        """
        if not isinstance(start, int) or not isinstance(stop, int | None):
            raise SchemaError(f"list.slice({start!r}, {stop!r}): positions are integers")
        return self._value.call("list_slice", start=start, stop=stop)

    def contains(self, value: Any) -> ExprT:
        """Whether an element equals a value.

        >>> values(col("x").list.contains(2), x=[[1, 2], [None], []])
        [True, False, False]
        """
        return self._value.call("list_contains", value)

    def sum(self) -> ExprT:
        """Return the sum, null of no element; of integers an int64, overflow is an error.

        >>> values(col("x").list.sum(), x=[[1, 2, None], []])
        [3, None]
        """
        return self._value.call("list_sum")

    def min(self) -> ExprT:
        """Return the least element, null of no element.

        >>> values(col("x").list.min(), x=[[3, 1, None], []])
        [1, None]
        """
        return self._value.call("list_min")

    def max(self) -> ExprT:
        """Return the greatest element, null of no element; NaN is the greatest number.

        >>> values(col("x").list.max(), x=[[3, 1, None], []])
        [3, None]
        """
        return self._value.call("list_max")

    def mean(self) -> ExprT:
        """Return the mean as float64, null of no element.

        >>> values(col("x").list.mean(), x=[[1, 2, None], []])
        [1.5, None]
        """
        return self._value.call("list_mean")

    def sort(self, descending: bool = False, nulls_last: bool = False) -> ExprT:
        """Return the elements in order, nulls first unless ``nulls_last``.

        >>> values(col("x").list.sort(), x=[[3, None, 1]])
        [[None, 1, 3]]
        """
        return self._value.call("list_sort", descending=descending, nulls_last=nulls_last)

    def distinct(self) -> ExprT:
        """Return each different element once, in the order of their first places.

        >>> values(col("x").list.distinct(), x=[[2, 1, 2, None, None]])
        [[2, 1, None]]
        """
        return self._value.call("list_distinct")

    def flatten(self) -> ExprT:
        """Return the elements of the lists in a list, one list of them; a null among the lists has none.

        >>> values(col("x").list.flatten(), x=[[[1, 2], None, [3]], []])
        [[1, 2, 3], []]
        """
        return self._value.call("list_flatten")

    def join(self, separator: str) -> ExprT:
        """Return texts as one, with a separator between them.

        >>> values(col("x").list.join("-"), x=[["a", None, "b"], []])
        ['a-b', '']
        """
        return self._value.call("list_join", separator=separator)

    def concat(self, *others: Any) -> ExprT:
        """Return the elements of it followed by those of other lists; null where one is null.

        >>> values(col("x").list.concat(col("y")), x=[[1], [2]], y=[[3, 4], None])
        [[1, 3, 4], None]
        """
        return self._value.call("list_concat", *others)

    def any(self) -> ExprT:
        """Whether an element is true; false of none.

        >>> values(col("x").list.any(), x=[[False, True], [None], []])
        [True, False, False]
        """
        return self._value.call("list_any")

    def all(self) -> ExprT:
        """Whether no element is false; true of none.

        >>> values(col("x").list.all(), x=[[False, True], [None], []])
        [False, True, True]
        """
        return self._value.call("list_all")


class MapExpressions(HasOtherNames, Generic[ExprT]):
    """Functions of a map; null gives null."""

    _kind = ".map"
    _other_names = ON_MAPS

    def __init__(self, value: ExprT) -> None:
        self._value = value

    def get(self, key: Any) -> ExprT:
        """Return the value of a constant key, the first one of it; null where there is none.

        >>> values(map_from(array("a", "b"), array(1, 2)).map.get("b"))
        [2]
        """
        return self._value.call("map_get", key)

    def keys(self) -> ExprT:
        """Return the keys, as a list.

        >>> values(map_from(array("a", "b"), array(1, 2)).map.keys())
        [['a', 'b']]
        """
        return self._value.call("map_keys")

    def values(self) -> ExprT:
        """Return the values, as a list.

        >>> values(map_from(array("a", "b"), array(1, 2)).map.values())
        [[1, 2]]
        """
        return self._value.call("map_values")
