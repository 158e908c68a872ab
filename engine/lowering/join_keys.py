"""Keys of joins in the form of the plan: two inputs, key columns with names of their own.

    left_on=col("a") % 10        a hidden column on that side, which the result does not have
    null_safe=True               a key as two hidden ones: whether it is null, and its value with a constant for null
    keys of two types            a hidden column in the type in which both are compared (``exact_keys``)
    suffix="_right"              right columns whose names the left has too, renamed
    no keys but a condition      one hidden key that all rows share; of an inner join, a cross join

    keyed_sides(...) ─► KeyedSides(left, right, keys) ─► Join ─► shown(...)     the columns that the user sees

Held by: tests/integration/test_join_forms.py
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from engine.errors import NotYetSupportedError, SchemaError
from engine.expressions.column_names import check_columns
from engine.graph.expression import Call, Case, ColumnRef, Expression, NamedExpression
from engine.graph.said_operators import JoinType
from engine.lowering.exact_keys import check_shared, compared_type, compared_value
from engine.lowering.logical_node import LogicalNode
from engine.lowering.projections import columns_as_they_are, project_node
from engine.lowering.terms import call, case
from engine.records.plain_scalars import scalar_of

#: keys of both sides, pairwise
Pairs = Sequence[tuple[Expression, Expression]]


class JoinKeys(NamedTuple):
    """The keys of a join, pairwise: of the left input, and of the right one."""

    pairs: Pairs = ()
    #: True if both sides name the keys alike, and they come out once
    is_on: bool = False
    #: True if null equals null, for each key; none if empty
    null_safe: Sequence[bool] = ()

    @property
    def shared_names(self) -> list[str]:
        """Names of the columns that are keys of both sides and come out once."""
        return [left.name for left, _ in self.pairs if isinstance(left, ColumnRef)] if self.is_on else []


def keys_on(names: Iterable[str], *, null_safe: bool = False) -> JoinKeys:
    """Return columns that both sides have as keys."""
    columns = [ColumnRef(name) for name in names]
    return JoinKeys([(column, column) for column in columns], True, [null_safe] * len(columns))


class KeyedSides(NamedTuple):
    """Two inputs with a column for each key, of pairwise equal types."""

    left: LogicalNode
    right: LogicalNode
    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    #: True if the keys of both sides have equal names and appear once in the output
    coalesce: bool
    #: columns of the left in the output
    left_shown: tuple[str, ...]
    #: columns of the right in the output, behind those of the left
    right_shown: tuple[str, ...]
    #: columns with the right's values of keys that come out once, where the keys that are compared are hidden ones
    right_of: dict[str, str]


def keyed_sides(
    left: LogicalNode,
    right: LogicalNode,
    pairs: Pairs,
    merged: Sequence[bool],
    suffix: str | None,
    null_safe: Sequence[bool] = (),
    totals: Sequence[bool] = (),
) -> KeyedSides:
    """Return both inputs with columns for the keys; SchemaError for keys or names that do not fit.

    merged: of each key, whether both sides name it alike and it comes out once.
    totals: of each key, whether each value must have one in the compared type (``exact_keys``); none if empty.
    """
    coalesce = bool(pairs) and all(merged)
    shown = (tuple(left.schema.names), tuple(right.schema.names))
    names = _FreeNames(*shown)
    left, left_keys = _with_key_columns(left, [one for one, _ in pairs], names, "" if coalesce else "left_")
    right, right_keys = _with_key_columns(right, [other for _, other in pairs], names, "" if coalesce else "right_")
    coalesced = [name for name, is_one in zip(right_keys, merged, strict=True) if is_one and name in shown[1]]
    own_keys = ([*left_keys], [*right_keys])
    safe = [
        is_safe and left.schema.field(one).nullable and right.schema.field(other).nullable
        for is_safe, one, other in zip(null_safe or [False] * len(pairs), left_keys, right_keys, strict=True)
    ]
    totals = totals or [False] * len(pairs)
    types = [
        compared_type(left.schema.field(one), right.schema.field(other), is_total=is_total)
        for one, other, is_total in zip(left_keys, right_keys, totals, strict=True)
    ]
    left, left_keys = _compared(left, left_keys, types, totals, names, "")
    right, right_keys = _compared(right, right_keys, types, totals, names, "_right")
    are_exact = (left_keys, right_keys) != own_keys
    coalesce = coalesce and not are_exact
    if any(safe):
        left, left_keys = _null_safe(left, left_keys, own_keys[0], safe, "" if coalesce else "left_", names)
        right, right_keys = _null_safe(right, right_keys, own_keys[1], safe, "" if coalesce else "right_", names)
    right_of: dict[str, str] = {}
    if are_exact:
        right_of = {name: names.free(f"right_{name}") for name in coalesced}
    elif coalesce:
        right_of = {
            name: names.free(f"right_{name}")
            for name, is_safe in zip(own_keys[0], safe, strict=True)
            if is_safe and name in coalesced
        }
    new_names = {**_suffixed(shown, coalesced, suffix), **right_of}
    if new_names:
        kept = [NamedExpression(new_names.get(name, name), ColumnRef(name)) for name in right.schema.names]
        right = project_node(right, kept, "join suffix")
        right_keys = [new_names.get(name, name) for name in right_keys]
    right_shown = tuple(new_names.get(name, name) for name in shown[1] if name not in coalesced)
    return KeyedSides(left, right, tuple(left_keys), tuple(right_keys), coalesce, shown[0], right_shown, right_of)


def shown(joined: LogicalNode, sides: KeyedSides, how: JoinType) -> LogicalNode:
    """Return a join without the columns that were added for its keys."""
    visible = sides.left_shown + (() if how in (JoinType.SEMI, JoinType.ANTI) else sides.right_shown)
    if tuple(joined.schema.names) == visible:
        return joined
    named = []
    for name in visible:
        column = ColumnRef(name)
        right = ColumnRef(sides.right_of.get(name, name))
        if how is JoinType.RIGHT:
            named.append(NamedExpression(name, right))
        elif how is JoinType.FULL and right != column:
            check_shared(joined.schema.field(name), joined.schema.field(right.name))
            named.append(NamedExpression(name, Case(((Call("is_null", (column,)), right),), column)))
        else:
            named.append(NamedExpression(name, column))
    return project_node(joined, named, "join")


class _FreeNames:
    """Return names for hidden columns, which no other column has; most joins need none."""

    def __init__(self, *used: Iterable[str]) -> None:
        self._sides = used

    @cached_property
    def _used(self) -> set[str]:
        return set().union(*self._sides)

    def free(self, name: str) -> str:
        """Return a name like this one that is not a user's."""
        found = f"__{name}"
        while found in self._used:
            found = f"_{found}"
        return found


def _with_key_columns(
    source: LogicalNode, keys: Sequence[Expression], names: _FreeNames, side: str
) -> tuple[LogicalNode, list[str]]:
    """Return an input with a column for each key that is an expression, and the names of all."""
    found: list[str] = []
    computed: list[NamedExpression] = []
    for index, key in enumerate(keys):
        if not isinstance(key, ColumnRef):
            name = names.free(f"{side}key{index}")
            computed.append(NamedExpression(name, key))
        else:
            name = key.name
            check_columns([name], source.schema)
            if name in found:
                computed.append(NamedExpression(names.free(f"{side}key{index}"), ColumnRef(name)))
                name = computed[-1].name
        found.append(name)
    return _with_added(source, computed, "join key"), found


def _with_added(source: LogicalNode, added: Sequence[NamedExpression], what: str) -> LogicalNode:
    if not added:
        return source
    return project_node(source, [*columns_as_they_are(source.schema.names), *added], what)


def _compared(
    source: LogicalNode,
    keys: Sequence[str],
    types: Sequence[pa.DataType],
    totals: Sequence[bool],
    names: _FreeNames,
    side: str,
) -> tuple[LogicalNode, list[str]]:
    """Return an input with a hidden column for each key that is compared in another type, and the names of all.

    side: end of the hidden names, which explain() shows.
    """
    found: list[str] = []
    added: list[NamedExpression] = []
    for key, wanted, is_total in zip(keys, types, totals, strict=True):
        own = source.schema.field(key).type
        shown_type = re.sub(r"\W+", "_", str(wanted)).strip("_")
        found.append(key if own == wanted else names.free(f"{key}_as_{shown_type}{side}"))
        if own != wanted:
            value = compared_value(ColumnRef(key), own, wanted, is_total=is_total)
            added.append(NamedExpression(found[-1], value))
    return _with_added(source, added, "join key"), found


def _suffixed(
    shown: tuple[Sequence[str], Sequence[str]], coalesced: Sequence[str], suffix: str | None
) -> dict[str, str]:
    if suffix is None:
        return {}
    if not isinstance(suffix, str) or not suffix:
        raise SchemaError(f"join suffix={suffix!r}: a text that makes other names, such as '_right'")
    lefts, rights = shown
    new_names = {name: name + suffix for name in rights if name in lefts and name not in coalesced}
    taken = [name for name in new_names.values() if name in lefts or name in rights]
    if taken:
        raise SchemaError(f"join suffix={suffix!r}: there is a column {taken[0]!r} already; choose another suffix")
    return new_names


def _null_safe(
    source: LogicalNode, keys: Sequence[str], own: Sequence[str], safe: Sequence[bool], side: str, names: _FreeNames
) -> tuple[LogicalNode, list[str]]:
    """Return an input with two columns for each null-safe key: whether it is null, and its value or a constant.

    own: of each key, the column that it was made of; its null is a null, a null of the key alone equals nothing.
    """
    found: list[str] = []
    added: list[NamedExpression] = []
    for index, (key, origin, is_safe) in enumerate(zip(keys, own, safe, strict=True)):
        if not is_safe:
            found.append(key)
            continue
        value, is_null = ColumnRef(key), call("is_null", ColumnRef(origin))
        data_type = source.schema.field(key).type
        try:
            constant = scalar_of(_some_value(data_type), data_type)
            filled = call("fill_null", value, constant)
            if key != origin:
                filled = case((is_null, constant), otherwise=value)
            columns = {"null": is_null, "value": filled}
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
            raise NotYetSupportedError(f"a join key where null equals null of {data_type}") from None
        for what, column in columns.items():
            found.append(names.free(f"{side}{what}{index}"))
            added.append(NamedExpression(found[-1], column))
    return _with_added(source, added, "join null_safe"), found


def _some_value(data_type: pa.DataType) -> object:
    """Return a value that a type has."""
    if pa.types.is_decimal(data_type):
        return Decimal(0)
    if pa.types.is_boolean(data_type):
        return False
    if pa.types.is_string(data_type) or pa.types.is_large_string(data_type):
        return ""
    if pa.types.is_fixed_size_binary(data_type):
        return bytes(data_type.byte_width)
    if pa.types.is_date32(data_type):
        return date(1970, 1, 1)
    return b"" if pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) else 0
