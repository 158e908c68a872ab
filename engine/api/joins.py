"""Joins and unions: keys and columns widened to their common types, names checked.

    join     left columns, then right ones; on= gives one key column, left_on=/right_on= keep both; condition= is over
             the columns of both sides: what ON ... AND ... says behind the keys
    union    UNION ALL by name, in the order of the first

Where types differ a projection that casts is put in front, so the plan's Join and Union see equal types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.logical_node import LogicalNode
from engine.api.projections import cast_node, check_columns, column_names, project_node
from engine.errors import NotYetSupportedError, SchemaError
from engine.expressions.common_type import common_type, common_type_of
from engine.expressions.infer import check_predicate, with_typed_texts
from engine.expressions.schema_bridge import is_key_type
from engine.graph.expression import ColumnRef, Expression, NamedExpression, columns_of
from engine.graph.plan import Join, JoinHint, JoinType, Union

_LEFT_ONLY = (JoinType.SEMI, JoinType.ANTI)

Keys = object


class JoinKeys(NamedTuple):
    """The keys of a join as they are given: ``on``, or ``left_on`` and ``right_on``."""

    on: Keys = None
    left_on: Keys = None
    right_on: Keys = None


def join_type(how: str) -> JoinType:
    """Return the join type of a word; SchemaError listing them for another."""
    try:
        return JoinType(how)
    except ValueError:
        raise SchemaError(f"join how={how!r}: choose one of {', '.join(JoinType)}") from None


def join_hint(hint: JoinHint | str | None) -> JoinHint:
    """Return a hint, given as itself or by name; SchemaError listing them for another."""
    if hint is None:
        return JoinHint.OPTIMIZER_CHOOSES
    try:
        return JoinHint(hint)
    except ValueError:
        raise SchemaError(
            f"Unrecognized join hint {hint!r}: choose one of {', '.join(JoinHint)}. "
            "Hints are written in join(hint=...); in SQL they come with SQL, which is not supported yet"
        ) from None


def _key_columns(how: JoinType, keys: JoinKeys) -> tuple[list[str], list[str]]:
    """Return the key columns of both sides, as many."""
    given = [name for name, value in keys._asdict().items() if value is not None]
    if how is JoinType.CROSS:
        if given:
            raise SchemaError(f"a cross join has no keys; leave {' and '.join(given)} out")
        return [], []
    if given == ["on"]:
        left_keys = column_names(keys.on, "join on")
        right_keys = list(left_keys)
    elif given == ["left_on", "right_on"]:
        left_keys = column_names(keys.left_on, "join left_on")
        right_keys = column_names(keys.right_on, "join right_on")
    else:
        raise SchemaError(
            f"join: give on=, or left_on= and right_on=; {' and '.join(given) or 'neither'} given"
            " (pairs by a condition alone: how='cross', condition=...)"
        )
    if not left_keys or len(left_keys) != len(right_keys):
        raise SchemaError(f"join: {len(left_keys)} keys left, {len(right_keys)} right; they go in pairs")
    for names in (left_keys, right_keys):
        if len(set(names)) < len(names):
            raise SchemaError(f"join: a key is given twice: {', '.join(names)}")
    return left_keys, right_keys


def _common_key(left: pa.Field, right: pa.Field) -> pa.DataType:
    for field in (left, right):
        if not is_key_type(field.type):
            raise SchemaError(f"join: column {field.name!r} is {field.type}, which cannot be a key")
    wanted = common_type(left.type, right.type)
    if wanted is None:
        raise SchemaError(
            f"join: {left.name!r} is {left.type} left, {right.name!r} is {right.type} right;"
            " they have no common type: cast one of them"
        )
    return wanted


def join_node(
    left: LogicalNode,
    right: LogicalNode,
    how: str,
    keys: JoinKeys,
    hint: JoinHint | str | None,
    condition: object = None,
    null_aware: bool = False,
) -> LogicalNode:
    """Return the join of two nodes; SchemaError for keys, names or a condition that do not fit."""
    kind = join_type(how)
    left_keys, right_keys = _key_columns(kind, keys)
    check_columns(left_keys, left.schema)
    check_columns(right_keys, right.schema)
    types = [
        _common_key(left.schema.field(one), right.schema.field(other))
        for one, other in zip(left_keys, right_keys, strict=True)
    ]
    left = cast_node(left, dict(zip(left_keys, types, strict=True)))
    right = cast_node(right, dict(zip(right_keys, types, strict=True)))
    coalesce = keys.on is not None
    schema = (
        left.schema if kind in _LEFT_ONLY else _joined_schema(left.schema, right.schema, kind, right_keys, coalesce)
    )
    shared = left_keys if coalesce else []
    residual = None if condition is None else _condition(condition, left.schema, right.schema, shared)
    if null_aware:
        _check_null_aware(kind, left_keys, residual)
    operator = Join(
        kind, tuple(left_keys), tuple(right_keys), coalesce, join_hint(hint), residual, null_aware=bool(null_aware)
    )
    return LogicalNode(operator, (left, right), schema)


def _condition(condition: object, left: pa.Schema, right: pa.Schema, shared: Sequence[str]) -> Expression:
    """Return the expression of ``condition=`` after a look at its names and its type.

    shared: key columns of ``on=``, which have one name on both sides and the same value in a pair.
    """
    if not isinstance(condition, Expr):
        raise SchemaError(f"join condition={condition!r}: expected an expression such as col('a') < col('b')")
    expression = condition.expression
    both = set(left.names) & set(right.names) - set(shared)
    clashes = [name for name in dict.fromkeys(columns_of(expression)) if name in both]
    if clashes:
        names = ", ".join(map(repr, clashes))
        raise SchemaError(f"join condition: both sides have a column {names}; rename() it on one side")
    left_names = set(left.names)
    pair = pa.schema([*left, *(field for field in right if field.name not in left_names)])
    check_predicate(expression, pair)
    return with_typed_texts(expression, pair)


def _check_null_aware(kind: JoinType, keys: Sequence[str], condition: Expression | None) -> None:
    if kind is not JoinType.ANTI:
        raise SchemaError(f"join null_aware=True is NOT IN and goes with how='anti', not {kind.value!r}")
    if len(keys) != 1:
        raise NotYetSupportedError(f"a null-aware anti join by {len(keys)} keys")
    if condition is not None:
        raise NotYetSupportedError("a null-aware anti join with a condition")


def _joined_schema(
    left: pa.Schema, right: pa.Schema, kind: JoinType, right_keys: Sequence[str], coalesce: bool
) -> pa.Schema:
    """Return the columns of both sides; those of a side that may be missing are nullable."""
    taken = [field for field in right if not (coalesce and field.name in right_keys)]
    left_names = set(left.names)
    clashes = [field.name for field in taken if field.name in left_names]
    if clashes:
        names = ", ".join(map(repr, clashes))
        raise SchemaError(f"join: both sides have a column {names}; rename() or drop() it on one side (a key: use on=)")
    left_missing = kind in (JoinType.RIGHT, JoinType.FULL)
    right_missing = kind in (JoinType.LEFT, JoinType.FULL)
    fields = [field.with_nullable(field.nullable or left_missing) for field in left]
    fields += [field.with_nullable(field.nullable or right_missing) for field in taken]
    return pa.schema(fields)


def union_node(nodes: Sequence[LogicalNode]) -> LogicalNode:
    """Return all rows of several nodes; SchemaError when columns differ or have no common type."""
    first = nodes[0].schema
    wanted = dict.fromkeys(first.names)
    for position, node in enumerate(nodes[1:], start=2):
        given = dict.fromkeys(node.schema.names)
        missing = [name for name in wanted if name not in given]
        extra = [name for name in given if name not in wanted]
        if missing or extra:
            what = [f"has no {', '.join(missing)}"] if missing else []
            what += [f"has {', '.join(extra)}, which the first has not"] if extra else []
            raise SchemaError(f"union: data set {position} {' and '.join(what)}; columns are matched by name")
    types = {name: _common_column(name, nodes) for name in first.names}
    nullable = {name: any(node.schema.field(name).nullable for node in nodes) for name in first.names}
    schema = pa.schema([pa.field(name, types[name], nullable[name]) for name in first.names])
    return LogicalNode(Union(), tuple(_aligned(node, types) for node in nodes), schema)


def _common_column(name: str, nodes: Sequence[LogicalNode]) -> pa.DataType:
    found = [node.schema.field(name).type for node in nodes]
    wanted = common_type_of(found)
    if wanted is None:
        raise SchemaError(f"union: column {name!r} is {', '.join(map(str, found))}; no common type: cast it")
    return wanted


def _aligned(node: LogicalNode, types: dict[str, pa.DataType]) -> LogicalNode:
    """Return a node with columns in the order and of the types of ``types``."""
    widened = cast_node(node, types)
    if widened.schema.names == list(types):
        return widened
    return project_node(widened, [NamedExpression(name, ColumnRef(name)) for name in types], "union")
