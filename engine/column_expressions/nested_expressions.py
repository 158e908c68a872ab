"""``col("x").list``, ``.struct`` and ``.map``: functions of nested values. Nulls among elements are passed over.

Held by: tests/expressions/test_nested_functions.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic

from engine.column_expressions.element_bodies import body_call
from engine.column_expressions.other_names import ON_LISTS, ON_MAPS, ON_STRUCTS, HasOtherNames
from engine.column_expressions.string_expressions import ExprT
from engine.errors import SchemaError
from engine.expressions.column_names import check_column_name
from engine.expressions.lambda_bodies import ELEMENT, PLACE, TOTAL


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

    def any(self, condition: Any = None) -> ExprT:
        """Whether an element is true, or a condition of one is, as ``filter`` takes it; false of none.

        >>> values(col("x").list.any(lambda x: x > 1), x=[[1, 2], [None], []])
        [True, False, False]
        """
        return self._value.call("list_any") if condition is None else ListExpressions(self.transform(condition)).any()

    def all(self, condition: Any = None) -> ExprT:
        """Whether no element is false, or a condition of none is, as ``filter`` takes it; true of none.

        >>> values(col("x").list.all(lambda x: x > 1), x=[[1, 2], [None], []])
        [False, True, True]
        """
        return self._value.call("list_all") if condition is None else ListExpressions(self.transform(condition)).all()

    def exists(self, condition: Any) -> ExprT:
        """Whether a condition of an element is true: ``any`` under the name that Spark has.

        >>> values(col("x").list.exists(lambda x: x == col("y")), x=[[1, 2], [3]], y=[2, 2])
        [True, False]
        """
        return self.any(condition)

    def transform(self, function: Any) -> ExprT:
        """Return the list of what an expression of each element is: a function of the element, or of ``element()``.

        The function is called once, with expressions: of the element and, if it takes two, of its place from 0. It may
        read columns.

        >>> values(col("x").list.transform(lambda x, place: x * col("y") + place), x=[[1, 2], []], y=[10, 0])
        [[10, 21], []]
        """
        return body_call(self._value, "list_transform", function)

    def eval(self, function: Any) -> ExprT:
        """Return the list of what an expression of each element is: ``transform`` under the name that Polars has.

        >>> values(col("x").list.eval(element() + 1), x=[[1, None]])
        [[2, None]]
        """
        return self.transform(function)

    def filter(self, condition: Any) -> ExprT:
        """Return the elements for which a condition is true: a function as ``transform`` takes it.

        >>> values(col("x").list.filter(lambda x: x > 1), x=[[1, 2, None, 3]])
        [[2, 3]]
        """
        return body_call(self._value, "list_filter", condition)

    def reduce(self, function: Callable[..., Any], initial: Any = None) -> ExprT:
        """Return the total that a function of the total and an element ends with, from the first element or a value on.

        >>> values(col("x").list.reduce(lambda total, x: total * 10 + x), x=[[1, 2, 3], []])
        [123, None]
        """
        first = () if initial is None else (initial,)
        return body_call(self._value, "list_reduce", function, first, (TOTAL, ELEMENT, PLACE))

    def union(self, other: Any) -> ExprT:
        """Return the elements of it and of another list, each once, in the order of their first places.

        >>> values(col("x").list.union(col("y")), x=[[2, 1, 2]], y=[[1, None]])
        [[2, 1, None]]
        """
        return self._value.call("list_union", other)

    def intersection(self, other: Any) -> ExprT:
        """Return the elements that another list has, too, each once; null equals null.

        >>> values(col("x").list.intersection(col("y")), x=[[2, 1, 2, None]], y=[[2, None]])
        [[2, None]]
        """
        return self._value.call("list_intersection", other)

    def difference(self, other: Any) -> ExprT:
        """Return the elements that another list has not, each once.

        >>> values(col("x").list.difference(col("y")), x=[[2, 1, 1]], y=[[2]])
        [[1]]
        """
        return self._value.call("list_difference", other)

    def symmetric_difference(self, other: Any) -> ExprT:
        """Return the elements that just one of two lists has, each once.

        >>> values(col("x").list.symmetric_difference(col("y")), x=[[1, 2]], y=[[2, 3]])
        [[1, 3]]
        """
        return self._value.call("list_symmetric_difference", other)

    def reverse(self) -> ExprT:
        """Return the elements from the last to the first.

        >>> values(col("x").list.reverse(), x=[[1, None, 3], []])
        [[3, None, 1], []]
        """
        return self._value.call("list_reverse")

    def position(self, value: Any) -> ExprT:
        """Return the place of the first element that equals a value, from 0; null where there is none.

        >>> values(col("x").list.position(2), x=[[1, 2, 2], [3], []])
        [1, None, None]
        """
        return self._value.call("list_position", value)

    def drop_nulls(self) -> ExprT:
        """Return the elements that are not null.

        >>> values(col("x").list.drop_nulls(), x=[[1, None], [None]])
        [[1], []]
        """
        return self.filter(lambda one: one.is_not_null())

    def zip(self, *others: Any, names: Any = None) -> ExprT:
        """Return the structs of what several lists have at each place, as long as the longest; null has no elements.

        names: of the fields, one for each list; without them ``part0``, ``part1`` and so on.

        >>> values(col("x").list.zip(col("y"), names=["a", "b"]), x=[[1, 2]], y=[["p"]])
        [[{'a': 1, 'b': 'p'}, {'a': 2, 'b': None}]]
        """
        if not others:
            raise SchemaError("list.zip(): give it another list")
        zipped = self._value.call("list_zip", *others)
        if names is None:
            return zipped
        if isinstance(names, str) or len(names) != len(others) + 1:
            raise SchemaError(f"list.zip(names={names!r}): there are {len(others) + 1} lists; give as many names")
        parts = {f"part{at}": check_column_name(name, "list.zip") for at, name in enumerate(names)}
        return ListExpressions(zipped).transform(lambda one: one.struct.rename_fields(parts))


class StructExpressions(HasOtherNames, Generic[ExprT]):
    """Functions of a struct; null gives null."""

    _kind = ".struct"
    _other_names = ON_STRUCTS

    def __init__(self, value: ExprT) -> None:
        self._value = value

    def field(self, name: str) -> ExprT:
        """Return a field: ``col("x").field(name)``, under the name that Polars has.

        >>> values(col("x").struct.field("a"), x=[{"a": 1}, None])
        [1, None]
        """
        value: Any = self._value
        found: ExprT = value.field(name)
        return found

    def with_fields(self, **fields: Any) -> ExprT:
        """Return the struct with some fields replaced, or added at the end.

        >>> values(col("x").struct.with_fields(b=col("x").field("a") + 1), x=[{"a": 1}, None])
        [{'a': 1, 'b': 2}, None]
        """
        if not fields:
            raise SchemaError("struct.with_fields(): give it at least one field, as in with_fields(a=col('b'))")
        names = {str(at): check_column_name(name, "struct.with_fields") for at, name in enumerate(fields)}
        return self._value.call("struct_with_fields", *fields.values(), **names)

    def rename_fields(self, names: Mapping[str, str]) -> ExprT:
        """Return the struct with other names of some fields: old name to new name.

        >>> values(col("x").struct.rename_fields({"a": "b"}), x=[{"a": 1}])
        [{'b': 1}]
        """
        if not isinstance(names, Mapping) or not names:
            raise SchemaError(f"struct.rename_fields({names!r}): give it old and new names, as in {{'a': 'b'}}")
        checked = {old: check_column_name(new, "struct.rename_fields") for old, new in names.items()}
        return self._value.call("struct_rename_fields", **checked)

    def drop(self, *names: str) -> ExprT:
        """Return the struct without some fields.

        >>> values(col("x").struct.drop("a"), x=[{"a": 1, "b": 2}])
        [{'b': 2}]
        """
        if not names:
            raise SchemaError("struct.drop(): give it at least one name of a field")
        checked = {str(at): check_column_name(name, "struct.drop") for at, name in enumerate(names)}
        return self._value.call("struct_drop", **checked)


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

    def length(self) -> ExprT:
        """Return the number of entries.

        >>> values(map_from(array("a", "b"), array(1, 2)).map.length())
        [2]
        """
        return ListExpressions(self.keys()).length()

    def contains(self, key: Any) -> ExprT:
        """Whether there is a key.

        >>> values(map_from(array("a", "b"), array(1, 2)).map.contains("b"))
        [True]
        """
        return ListExpressions(self.keys()).contains(key)

    def entries(self) -> ExprT:
        """Return the entries, as a list of structs with ``key`` and ``value``.

        >>> values(map_from(array("a"), array(1)).map.entries())
        [[{'key': 'a', 'value': 1}]]
        """
        return self._value.call("map_entries")

    def concat(self, *others: Any) -> ExprT:
        """Return the map with the entries of others behind its own; a key twice fails the job.

        >>> values(map_from(array("a"), array(1)).map.concat(map_from(array("b"), array(2))))
        [[('a', 1), ('b', 2)]]
        """
        if not others:
            raise SchemaError("map.concat(): give it another map")
        entries = [self._value.made(other).call("map_entries") for other in others]
        return ListExpressions(self.entries()).concat(*entries).call("map_from_entries")

    def filter(self, condition: Callable[[Any, Any], Any]) -> ExprT:
        """Return the map of the entries for which a condition of key and value is true.

        >>> values(map_from(array("a", "b"), array(1, 2)).map.filter(lambda key, value: value > 1))
        [[('b', 2)]]
        """
        entries = ListExpressions(self.entries())
        return entries.filter(lambda one: condition(one.field("key"), one.field("value"))).call("map_from_entries")

    def transform_values(self, function: Callable[[Any, Any], Any]) -> ExprT:
        """Return the map with what a function of key and value makes of each value.

        >>> values(map_from(array("a", "b"), array(1, 2)).map.transform_values(lambda key, value: value * 10))
        [[('a', 10), ('b', 20)]]
        """
        return self._transformed(lambda key, value: (key, function(key, value)))

    def transform_keys(self, function: Callable[[Any, Any], Any]) -> ExprT:
        """Return the map with what a function of key and value makes of each key; one twice fails the job.

        >>> values(map_from(array("a", "b"), array(1, 2)).map.transform_keys(lambda key, value: key.str.upper()))
        [[('A', 1), ('B', 2)]]
        """
        return self._transformed(lambda key, value: (function(key, value), value))

    def _transformed(self, function: Callable[[Any, Any], Any]) -> ExprT:
        def entry(one: Any) -> Any:
            key, value = function(one.field("key"), one.field("value"))
            return one.made(key).call("struct", value, **{"0": "key", "1": "value"})

        return ListExpressions(self.entries()).transform(entry).call("map_from_entries")
