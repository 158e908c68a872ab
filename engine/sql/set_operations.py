"""INTERSECT ALL and EXCEPT ALL, which come as joins: a row that is there n and m times stays min(n, m) or n - m times.

    left, right ─► each row numbered among its equals ─► INTERSECT ALL: rows with a match by all columns and the number
                                                         EXCEPT ALL:    rows without one

The planner makes of them the semi and anti joins that it makes of IN and EXISTS too, and tells no difference. So a
query that has them may have no other such joins: neither plain INTERSECT or EXCEPT, nor conditions on subqueries.

Source: the rewriting of the SQL standard's definition with row_number, as in Spark's ReplaceExceptWithFilter and
similar rules.
Held by: tests/sql/test_set_operations.py
"""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa

from engine.api.expression import Expr
from engine.api.expressions import col
from engine.api.windows import row_number
from engine.errors import NotYetSupportedError, SchemaError
from engine.records.key_types import is_key_type
from engine.sql.column_names import ColumnNames, Relation
from engine.sql.join_conditions import JoinCondition, JoinKey
from engine.sql.joins import keyed, matching, without_match

_OPERATIONS: Final = re.compile(r"\b(?:INTERSECT|EXCEPT)\b(\s+ALL\b)?", re.IGNORECASE)
#: patterns of other forms that become a semi or an anti join
_LIKE_THEM: Final = re.compile(
    r"\bEXISTS\b|\b(?:SEMI|ANTI)\s+JOIN\b|\b(?:IN|ANY|SOME|ALL)\s*\(\s*(?:SELECT|WITH|VALUES|FROM|TABLE|\()",
    re.IGNORECASE,
)


def all_operations(plain: str) -> int:
    """Return the number of INTERSECT ALL and EXCEPT ALL a text has, without its strings and comments.

    Raises: NotYetSupportedError where other joins of the same kinds would be beside them.
    """
    found = _OPERATIONS.findall(plain)
    count = sum(map(bool, found))
    if count and (count < len(found) or _LIKE_THEM.search(_OPERATIONS.sub(" ", plain))):
        raise NotYetSupportedError(
            "sql: INTERSECT ALL or EXCEPT ALL beside INTERSECT, EXCEPT, IN (SELECT ...) or EXISTS in one query; "
            "compute one of them as a view"
        )
    return count


def with_counts(names: ColumnNames, left: Relation, right: Relation, condition: JoinCondition, what: str) -> Relation:
    """Return the rows of the left that INTERSECT ALL ("semi") or EXCEPT ALL ("anti") leaves."""
    operation = "INTERSECT ALL" if what == "semi" else "EXCEPT ALL"
    _check_types(operation, left)
    if condition.rest is not None or not condition.keys or not all(key.null_safe for key in condition.keys):
        compared = ", ".join(f"{label} ({data_type})" for label, data_type in _types(left))
        raise NotYetSupportedError(
            f"sql: {operation} of {compared}, not all of which the planner compares (compute it as a view)"
        )
    first, one = _numbered(names, left, [key.left for key in condition.keys])
    second, other = _numbered(names, right, [key.right for key in condition.keys])
    whole = JoinCondition((*condition.keys, JoinKey(one, other, False)), None)
    return matching(first, second, whole) if what == "semi" else without_match(first, second, whole, False)


def _check_types(operation: str, relation: Relation) -> None:
    """Raise SchemaError for a column whose values cannot be compared."""
    for label, data_type in _types(relation):
        if pa.types.is_null(data_type):
            raise SchemaError(f"sql: {operation}: {label} has no type; write CAST(NULL AS BIGINT), say")
        if not is_key_type(data_type):
            raise SchemaError(
                f"sql: {operation}: {label} is {data_type}, which cannot be compared; leave it out, or select what is "
                "in it"
            )


def _types(relation: Relation) -> list[tuple[str, pa.DataType]]:
    """Return the names of a relation's columns before a query renames them, with their types."""
    types = [relation.data.schema.field(name).type for name in relation.columns]
    names = [name.partition("#")[0] for name in relation.columns]
    labels = [f"column {place} ({name})" for place, name in enumerate(names, 1)]
    return list(zip(labels, types, strict=True))


def _numbered(names: ColumnNames, relation: Relation, keys: list[Expr]) -> tuple[Relation, Expr]:
    """Return the rows with one column more: which one of its equals each row is."""
    data, columns = keyed(names, relation.data, keys)
    number = names.unique("number")
    counted = row_number().over(partition_by=columns, order_by=columns[0])
    return Relation(data.with_columns(**{number: counted}), relation.columns), col(number)
