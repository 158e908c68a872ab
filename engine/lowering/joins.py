"""Joins and unions: keys and columns widened to their common types, names checked.

    join     left columns, then right ones; on= gives one key column, left_on=/right_on= keep both; condition= is over
             the columns of both sides: what ON ... AND ... says behind the keys. Keys: ``join_keys``
    union    UNION ALL by name, in the order of the first

Where types differ a projection that casts is put in front, so the plan's Join and Union see equal types.

Held by: tests/api/test_joins.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from engine.errors import SchemaError
from engine.expressions.common_type import result_type_of
from engine.expressions.infer import check_predicate, with_constants, with_typed_texts
from engine.expressions.literals import make_literal
from engine.graph.expression import ColumnRef, Expression, NamedExpression, columns_of
from engine.graph.plan import Join, Union
from engine.graph.said_operators import JoinBy, JoinHint, JoinType
from engine.lowering.compared_columns import ComparedColumns
from engine.lowering.join_keys import JoinKeys, KeyedSides, keyed_sides, shown
from engine.lowering.logical_node import LogicalNode
from engine.lowering.null_aware_joins import not_in_node
from engine.lowering.projections import cast_node, project_node

_LEFT_ONLY = (JoinType.SEMI, JoinType.ANTI)
_NONE_MISSING = (JoinType.INNER, JoinType.CROSS)


def joined(left: LogicalNode, right: LogicalNode, said: JoinBy) -> LogicalNode:
    """Return the join of two nodes as a user says it."""
    keys = JoinKeys(said.keys, said.is_on, said.null_safe)
    return join_node(left, right, said.how, keys, said.hint, said.condition, said.null_aware, said.suffix)


def join_node(
    left: LogicalNode,
    right: LogicalNode,
    kind: JoinType,
    keys: JoinKeys,
    hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES,
    condition: Expression | None = None,
    null_aware: bool = False,
    suffix: str | None = None,
) -> LogicalNode:
    """Return the join of two nodes; SchemaError for keys, names or a condition that do not fit."""
    pairs = keys.pairs
    if not pairs and kind is JoinType.INNER:
        kind = JoinType.CROSS
    if not pairs and kind is not JoinType.CROSS:
        pairs = [(make_literal(1), make_literal(1))]
    merged = [keys.is_on] * len(pairs)
    sides = keyed_sides(left, right, pairs, merged, suffix, keys.null_safe, [null_aware] * len(pairs))
    residual = None if condition is None else _condition(condition, sides)
    if residual is not None and not keys.pairs:
        compared = ComparedColumns(sides)
        residual = compared.condition(residual)
        left, right = compared.nodes()
        sides = sides._replace(left=left, right=right)
    left, right = sides.left, sides.right
    schema = left.schema
    if kind not in _LEFT_ONLY:
        schema = _joined_schema(left.schema, right.schema, kind, sides.right_keys, sides.coalesce)
    is_not_in = null_aware and bool(keys.pairs)
    if is_not_in and (len(pairs) > 1 or condition is not None):

        def anti(left: LogicalNode, right: LogicalNode, keys: JoinKeys, condition: Expression | None) -> LogicalNode:
            return join_node(left, right, JoinType.ANTI, keys, hint, condition)

        return shown(not_in_node(sides, condition, anti), sides, kind)
    operator = Join(kind, sides.left_keys, sides.right_keys, sides.coalesce, hint, residual, null_aware=is_not_in)
    return shown(LogicalNode(operator, (left, right), schema), sides, kind)


def _condition(condition: Expression, sides: KeyedSides) -> Expression:
    """Return the expression of ``condition=`` after a look at its names and its type.

    Key columns of ``on=`` have one name on both sides, and the same value in a pair.
    """
    left, right = sides.left.schema, sides.right.schema
    shared = sides.left_keys if sides.coalesce else ()
    expression = with_constants(condition)
    both = set(left.names) & set(right.names) - set(shared)
    clashes = [name for name in dict.fromkeys(columns_of(expression)) if name in both]
    if clashes:
        names = ", ".join(map(repr, clashes))
        raise SchemaError(f"join condition: both sides have a column {names}; rename() it on one side, or give suffix=")
    left_names = set(left.names)
    pair = pa.schema([*left, *(field for field in right if field.name not in left_names)])
    check_predicate(expression, pair)
    return with_typed_texts(expression, pair)


def _joined_schema(
    left: pa.Schema, right: pa.Schema, kind: JoinType, right_keys: Sequence[str], coalesce: bool
) -> pa.Schema:
    """Return the columns of both sides; those of a side that may be missing are nullable."""
    if kind in _NONE_MISSING and not coalesce:
        both = _side_by_side(left, right)
        if both is not None:
            return both
    taken = [field for field in right if not (coalesce and field.name in right_keys)]
    left_names = set(left.names)
    clashes = [field.name for field in taken if field.name in left_names]
    if clashes:
        names = ", ".join(map(repr, clashes))
        raise SchemaError(
            f"join: both sides have a column {names}; rename() or drop() it on one side, or give suffix='_right'"
            " (a key: use on=)"
        )
    left_missing = kind in (JoinType.RIGHT, JoinType.FULL)
    right_missing = kind in (JoinType.LEFT, JoinType.FULL)
    return pa.schema([*_fields(left, is_missing=left_missing), *_fields(taken, is_missing=right_missing)])


def _side_by_side(left: pa.Schema, right: pa.Schema) -> pa.Schema | None:
    """Return all columns of both sides, made without an object for each; None if both have one of a name."""
    try:
        both = pa.unify_schemas([left, right])
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None  # two types of a name
    return both.remove_metadata() if len(both) == len(left) + len(right) else None


def _fields(side: Iterable[pa.Field], *, is_missing: bool) -> list[pa.Field]:
    """Return the columns of a side that may be missing, or not."""
    return [field.with_nullable(True) if is_missing and not field.nullable else field for field in side]


def union_node(nodes: Sequence[LogicalNode], what: str = "union") -> LogicalNode:
    """Return all rows of several nodes; SchemaError when columns differ or have no common type."""
    first = nodes[0].schema
    wanted = dict.fromkeys(first.names)
    for position, node in enumerate(nodes[1:], start=2):
        given = dict.fromkeys(node.schema.names)
        missing = [name for name in wanted if name not in given]
        extra = [name for name in given if name not in wanted]
        if missing or extra:
            differs = [f"has no {', '.join(missing)}"] if missing else []
            differs += [f"has {', '.join(extra)}, which the first has not"] if extra else []
            raise SchemaError(f"{what}: data set {position} {' and '.join(differs)}; columns are matched by name")
    types = {name: _common_column(name, nodes, what) for name in first.names}
    nullable = {name: any(node.schema.field(name).nullable for node in nodes) for name in first.names}
    schema = pa.schema([pa.field(name, types[name], nullable[name]) for name in first.names])
    return LogicalNode(Union(), tuple(_aligned(node, types) for node in nodes), schema)


def _common_column(name: str, nodes: Sequence[LogicalNode], what: str) -> pa.DataType:
    found = [node.schema.field(name).type for node in nodes]
    wanted = result_type_of(found)
    if wanted is None:
        raise SchemaError(f"{what}: column {name!r} is {', '.join(map(str, found))}; no common type: cast it")
    return wanted


def _aligned(node: LogicalNode, types: dict[str, pa.DataType]) -> LogicalNode:
    """Return a node with columns in the order and of the types of ``types``."""
    widened = cast_node(node, types)
    if widened.schema.names == list(types):
        return widened
    return project_node(widened, [NamedExpression(name, ColumnRef(name)) for name in types], "union")
