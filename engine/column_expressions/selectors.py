"""Selectors: columns chosen by type, name or place, wherever a data set takes columns.

    import drey.selectors as cs

    data.select(cs.numeric() - cs.by_name("id"))          a set of columns: | & - ~ and exclude
    data.with_columns(cs.float().round(2))                an expression for each of them, under its name
    data.group_by("k").agg(sum_(cs.integer()).name.suffix("_sum"))

    Selector ──► Columns, a leaf of an expression, which selected_columns replaces by the columns one by one

Nothing is chosen before a data set gives its schema; columns come in their order there. A selector that chooses no
column is an error, as a name that is not there.

Held by: tests/integration/test_selectors.py
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from engine.column_expressions.data_types import to_data_type
from engine.column_expressions.expression import Expr
from engine.column_expressions.selected_columns import Choose, Columns, chosen, columns_like, is_pattern
from engine.errors import SchemaError
from engine.expressions.column_names import check_columns
from engine.graph.expression import ColumnRef

__all__ = [
    "Selector",
    "all",
    "binary",
    "boolean",
    "by_dtype",
    "by_index",
    "by_name",
    "contains",
    "date",
    "datetime",
    "decimal",
    "duration",
    "ends_with",
    "exclude",
    "first",
    "float",
    "integer",
    "last",
    "list",
    "map",
    "matches",
    "numeric",
    "starts_with",
    "string",
    "struct",
    "temporal",
    "time",
]


class Selector(Expr):
    """A choice of columns. ``|``, ``&``, ``-`` and ``~`` with selectors are operations of sets."""

    __slots__ = ()

    def __init__(self, text: str, choose: Choose) -> None:
        super().__init__(Columns(text, choose))

    @property
    def columns(self) -> Columns:
        """The leaf that stands for the columns in an expression."""
        found = self.expression
        assert isinstance(found, Columns), "a selector is its columns"
        return found

    def __repr__(self) -> str:
        return f"<Selector {self.columns.name}>"

    def names(self, schema: pa.Schema) -> builtins.list[str]:
        """Return the names of the chosen columns; SchemaError where there is none."""
        return chosen(self.columns, schema)

    def _set(self, other: Any, sign: str, keeps: Callable[[bool, bool], bool]) -> Selector | None:
        """Return a set of two; None: the other is no set of columns."""
        if not isinstance(other, Selector):
            return None
        one, two = self.columns, other.columns

        def choose(schema: pa.Schema) -> builtins.list[str]:
            left, right = set(one.choose(schema)), set(two.choose(schema))
            return [name for name in schema.names if keeps(name in left, name in right)]

        return Selector(f"({one.name} {sign} {two.name})", choose)

    def __or__(self, other: Any) -> Expr:
        found = self._set(_as_selector(other), "|", lambda left, right: left or right)
        return super().__or__(other) if found is None else found

    def __and__(self, other: Any) -> Expr:
        found = self._set(_as_selector(other), "&", lambda left, right: left and right)
        return super().__and__(other) if found is None else found

    def __sub__(self, other: Any) -> Expr:
        found = self._set(other, "-", lambda left, right: left and not right)
        return super().__sub__(other) if found is None else found

    def __xor__(self, other: Any) -> Selector:
        found = self._set(_as_selector(other), "^", lambda left, right: left is not right)
        if found is None:
            raise SchemaError(f"{self!r} ^ {other!r}: both must be selectors")
        return found

    def __invert__(self) -> Selector:
        found = all()._set(self, "-", lambda left, right: left and not right)
        assert found is not None, "both are selectors"
        columns = found.columns
        return Selector(f"~{self.columns.name}", columns.choose)

    def exclude(self, *others: Any) -> Selector:
        """Return the columns without others: names, patterns ``^...$``, types, selectors."""
        found = self._set(_union(others, "exclude"), "-", lambda left, right: left and not right)
        assert found is not None, "both are selectors"
        return found

    def as_expr(self) -> Expr:
        """Return the columns as an expression, on which ``&``, ``|``, ``-`` and ``~`` compute."""
        return Expr(self.columns)


def _as_selector(value: Any) -> Any:
    """Return a plain column as the choice of it; anything else as it is."""
    if isinstance(value, Expr) and not isinstance(value, Selector) and type(value.expression) is ColumnRef:
        return by_name(value.expression.name)
    return value


def _union(values: Sequence[Any], what: str) -> Selector:
    """Return the choice of all that some names, patterns, types and selectors choose."""
    found: Selector | None = None
    for value in _opened(values):
        one = _selector_of(value, what)
        found = one if found is None else found | one  # type: ignore[assignment]
    if found is None:
        raise SchemaError(f"{what}: name at least one column")
    return found


def _selector_of(value: Any, what: str) -> Selector:
    value = _as_selector(value)
    if isinstance(value, Selector):
        return value
    if isinstance(value, str):
        return matches(value) if is_pattern(value) else by_name(value, require_all=False)
    if isinstance(value, pa.DataType | type):
        return by_dtype(value)
    raise SchemaError(f"{what}: {value!r} is no name, type or selector")


def _opened(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, builtins.list | tuple | set | frozenset):
            yield from _opened(value)
        else:
            yield value


# ---- the selectors


def _of_types(text: str, *kinds: Callable[[pa.DataType], bool]) -> Selector:
    def choose(schema: pa.Schema) -> builtins.list[str]:
        return [field.name for field in schema if _any_of(kinds, _plain(field.type))]

    return Selector(f"cs.{text}()", choose)


def _any_of(kinds: Sequence[Callable[[pa.DataType], bool]], data_type: pa.DataType) -> bool:
    """Whether a type is of one of some kinds."""
    return any(kind(data_type) for kind in kinds)


def _plain(data_type: pa.DataType) -> pa.DataType:
    """Return the type of values: of a dictionary's, of an extension's storage."""
    if types.is_dictionary(data_type):
        return data_type.value_type
    return data_type.storage_type if isinstance(data_type, pa.BaseExtensionType) else data_type


def _of_names(text: str, matching: Callable[[str], bool]) -> Selector:
    return Selector(f"cs.{text}", lambda schema: [name for name in schema.names if matching(name)])


def all() -> Selector:  # noqa: A001 - as in Polars
    """Choose all columns."""
    return _of_names("all()", lambda _: True)


def numeric() -> Selector:
    """Choose columns of integers, floats and decimals."""
    return _of_types("numeric", types.is_integer, types.is_floating, types.is_decimal)


def integer() -> Selector:
    """Choose columns of integers, with a sign or without."""
    return _of_types("integer", types.is_integer)


def float() -> Selector:  # noqa: A001 - as in Polars
    """Choose columns of floats."""
    return _of_types("float", types.is_floating)


def decimal() -> Selector:
    """Choose columns of decimals."""
    return _of_types("decimal", types.is_decimal)


def boolean() -> Selector:
    """Choose columns of bools."""
    return _of_types("boolean", types.is_boolean)


def string() -> Selector:
    """Choose columns of texts."""
    return _of_types("string", types.is_string, types.is_large_string, types.is_string_view)


def binary() -> Selector:
    """Choose columns of bytes."""
    kinds = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
    return _of_types("binary", *kinds)


def temporal() -> Selector:
    """Choose columns of dates, times, timestamps and durations."""
    return _of_types("temporal", types.is_date, types.is_time, types.is_timestamp, types.is_duration)


def date() -> Selector:
    """Choose columns of dates."""
    return _of_types("date", types.is_date)


def datetime() -> Selector:
    """Choose columns of timestamps, with a zone or without."""
    return _of_types("datetime", types.is_timestamp)


def time() -> Selector:
    """Choose columns of times of day."""
    return _of_types("time", types.is_time)


def duration() -> Selector:
    """Choose columns of durations."""
    return _of_types("duration", types.is_duration)


def list() -> Selector:  # noqa: A001 - as in Polars
    """Choose columns of lists."""
    return _of_types("list", types.is_list, types.is_large_list, types.is_fixed_size_list)


def struct() -> Selector:
    """Choose columns of structs."""
    return _of_types("struct", types.is_struct)


def map() -> Selector:  # noqa: A001 - as its type
    """Choose columns of maps."""
    return _of_types("map", types.is_map)


def by_dtype(*data_types: Any) -> Selector:
    """Choose columns of these types exactly: pyarrow's, their names, or int, float, str and bool."""
    wanted = [to_data_type(one) for one in _opened(data_types)]
    if not wanted:
        raise SchemaError("by_dtype: name at least one type")
    text = f"cs.by_dtype({', '.join(str(one) for one in wanted)})"
    return Selector(text, lambda schema: [field.name for field in schema if field.type in wanted])


def by_name(*names: Any, require_all: bool = True) -> Selector:
    """Choose columns by name, in the order of the data set.

    A name that is not there is an error, or with ``require_all=False`` left out.
    """
    wanted = builtins.list(_opened(names))
    if not wanted or not builtins.all(isinstance(name, str) for name in wanted):
        raise SchemaError(f"by_name{tuple(names)!r}: names of columns")

    def choose(schema: pa.Schema) -> builtins.list[str]:
        if require_all:
            check_columns(wanted, schema)
        return [name for name in schema.names if name in wanted]

    return Selector(f"cs.by_name({', '.join(wanted)})", choose)


def by_index(*places: Any) -> Selector:
    """Choose columns by place, from 0, in the order of the data set; -1 is the last one."""
    wanted = builtins.list(_opened(places))
    if not wanted or not builtins.all(isinstance(place, int) and not isinstance(place, bool) for place in wanted):
        raise SchemaError(f"by_index{tuple(places)!r}: places of columns, whole numbers")

    def choose(schema: pa.Schema) -> builtins.list[str]:
        beyond = [place for place in wanted if not -len(schema) <= place < len(schema)]
        if beyond:
            raise SchemaError(f"cs.by_index({beyond[0]}): there are {len(schema)} columns")
        chosen = {place % len(schema) for place in wanted}
        return [name for place, name in enumerate(schema.names) if place in chosen]

    return Selector(f"cs.by_index({', '.join(str(place) for place in wanted)})", choose)


def first() -> Selector:
    """Choose the first column."""
    return Selector("cs.first()", lambda schema: schema.names[:1])


def last() -> Selector:
    """Choose the last column."""
    return Selector("cs.last()", lambda schema: schema.names[-1:])


def matches(pattern: str) -> Selector:
    """Choose columns in whose name a regular expression (Python's ``re``) is found."""
    found = columns_like(pattern)
    return Selector(found.name, found.choose)


def contains(*texts: str) -> Selector:
    """Choose columns whose name contains one of these texts."""
    wanted = _texts(texts, "contains")
    return _of_names(_said("contains", wanted), lambda name: any(text in name for text in wanted))


def starts_with(*texts: str) -> Selector:
    """Choose columns whose name begins with one of these texts."""
    wanted = _texts(texts, "starts_with")
    return _of_names(_said("starts_with", wanted), lambda name: name.startswith(wanted))


def ends_with(*texts: str) -> Selector:
    """Choose columns whose name ends with one of these texts."""
    wanted = _texts(texts, "ends_with")
    return _of_names(_said("ends_with", wanted), lambda name: name.endswith(wanted))


def exclude(*others: Any) -> Selector:
    """Choose all columns but these: names, patterns ``^...$``, types, selectors."""
    return all().exclude(*others)


def _texts(texts: Sequence[Any], what: str) -> tuple[str, ...]:
    wanted = tuple(_opened(texts))
    if not wanted or not builtins.all(isinstance(text, str) for text in wanted):
        raise SchemaError(f"{what}{tuple(texts)!r}: parts of names")
    return wanted


def _said(what: str, texts: Sequence[str]) -> str:
    return f"{what}({', '.join(repr(text) for text in texts)})"
