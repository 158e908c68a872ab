"""The joins of a query as joins of data sets.

    inner left right full      pairs; without keys those that meet the condition
    semi anti                  rows of one side; NOT IN is anti(null_aware=True)
    mark                       rows of one side, and whether each has a match: true, false, or null for "unknown"

A mark is a join with the different keys of the other side. Where the condition is more than keys it is the rows that
have a match, and those that have none.

Held by: tests/sql/test_joins.py
"""

from __future__ import annotations

from typing import Final

from engine.api.data_set import DataSet
from engine.api.data_set_values import with_mark
from engine.api.exact_keys import as_equals_compares
from engine.api.expression import Expr
from engine.api.expressions import col, lit
from engine.errors import NotYetSupportedError
from engine.expressions.infer import infer_type
from engine.sql.column_names import ColumnNames, Relation
from engine.sql.join_conditions import JoinCondition, JoinKey

#: names of joins of both sides in Substrait
BOTH_SIDES: Final = {"inner": "inner", "outer": "full", "left": "left", "right": "right"}


def pairs(left: Relation, right: Relation, how: str, condition: JoinCondition) -> Relation:
    """Return the columns of both sides; ``how`` in inner, left, right, full."""
    columns = left.columns + right.columns
    return Relation(joined(left.data, right.data, how, condition), columns)


def matching(left: Relation, right: Relation, condition: JoinCondition) -> Relation:
    """Return the rows of the left that have a match."""
    return Relation(joined(left.data, right.data, "semi", condition), left.columns)


def without_match(left: Relation, right: Relation, condition: JoinCondition, null_aware: bool) -> Relation:
    """Return the rows of the left without a match; ``null_aware``: of which it is known that they have none."""
    return Relation(joined(left.data, right.data, "anti", condition, null_aware), left.columns)


def marked(names: ColumnNames, left: Relation, right: Relation, condition: JoinCondition, null_aware: bool) -> Relation:
    """Return the rows of the left and, as the last column, whether they have a match.

    ``null_aware``: null where that is unknown, which is IN. Raises: NotYetSupportedError for IN with more than one key.
    """
    mark = names.unique("mark")
    if condition.rest is not None or not condition.keys:
        if null_aware:
            raise NotYetSupportedError("IN below OR with a query that looks at other columns outside; write EXISTS")
        seen = list(dict.fromkeys(left.columns))
        parts = [
            joined(left.data, right.data, how, condition).select([*seen, lit(how == "semi").alias(mark)])
            for how in ("semi", "anti")
        ]
        return Relation(parts[0].union(parts[1]), (*left.columns, mark))
    if null_aware and len(condition.keys) > 1:
        raise NotYetSupportedError("IN below OR with a query that depends on the row outside; write EXISTS")
    if null_aware:
        (key,) = condition.keys
        values = right.data.select([key.right.alias(mark)])
        data = left.data._with(with_mark(left.data._node, key.left, values._node, mark))
        return Relation(data, (*left.columns, mark))
    found = names.unique("found")
    keys = [names.unique("join_key") for _ in condition.keys]
    different = right.data.select([key.right.alias(name) for key, name in zip(condition.keys, keys, strict=True)])
    flagged = different.distinct().with_columns(**{found: lit(True)})
    own = tuple(JoinKey(key.left, col(name), key.null_safe) for key, name in zip(condition.keys, keys, strict=True))
    data = joined(left.data, flagged, "left", JoinCondition(own, None))
    return Relation(data.with_columns(**{mark: col(found).is_not_null()}), (*left.columns, mark))


def keyed(names: ColumnNames, data: DataSet, keys: list[Expr]) -> tuple[DataSet, list[str]]:
    """Return the data with a column for each key, and their names, all different."""
    found: list[str] = []
    for key in keys:
        name = key.output_name
        if name not in data.columns or name in found or key.expression != col(name).expression:
            name = names.unique("key")
            data = data.with_columns(**{name: key})
        found.append(name)
    return data, found


def joined(left: DataSet, right: DataSet, how: str, condition: JoinCondition, null_aware: bool = False) -> DataSet:
    """Return a join of two data sets; without keys and condition all pairs."""
    if not condition.keys and condition.rest is None:
        condition = condition._replace(rest=None if how == "inner" else lit(True))
        how = "cross" if how == "inner" else how
    keys = [_as_equals_compares(left, right, key) for key in condition.keys]
    return left.join(
        right,
        left_on=[one for one, _ in keys] or None,
        right_on=[other for _, other in keys] or None,
        null_safe=[key.null_safe for key in condition.keys] or False,
        how=how,
        condition=condition.rest,
        null_aware=null_aware,
    )


def _as_equals_compares(left: DataSet, right: DataSet, key: JoinKey) -> tuple[Expr, Expr]:
    one, other = key.left.expression, key.right.expression
    found = as_equals_compares((one, infer_type(one, left.schema)), (other, infer_type(other, right.schema)))
    return (key.left, key.right) if found is None else (Expr(found[0]), Expr(found[1]))
