"""Relations that have no rows whatever the tables hold: a condition of constants is not true.

    SELECT 's' AS kind, ... UNION ALL SELECT 'w', ...   below   WHERE kind = 's'      the second part has none

Such a part of a union is left out before the optimizer looks for what other parts have in common.

Held by: tests/sql/test_set_operations.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from engine.errors import NotYetSupportedError
from engine.sql.coercions import Coercions
from engine.sql.constants import is_constant, scalar_of
from engine.sql.expressions import ExpressionReader
from engine.sql.join_conditions import parts_of, positions

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression, Rel

#: messages with a condition, and its field
_CONDITION_IN: Final = {"FilterRel": "condition", "ReadRel": "filter", "JoinRel": "expression"}


def constant_conditions(message: Any, functions: dict[int, str]) -> Iterator[Expression]:
    """Yield the parts of the condition of a relation that read no column."""
    field = _CONDITION_IN.get(message.DESCRIPTOR.name, "")
    if field and message.HasField(field):
        yield from (part for part in parts_of(getattr(message, field), functions) if not positions(part))


def is_true(condition: Expression, functions: dict[int, str]) -> bool | None:
    """Return whether a condition without columns is true; None where a query in it has to be asked."""
    reader = ExpressionReader((), (), functions, _asked, Coercions(frozenset()), str, lambda *_: None)
    try:
        value = reader.read(condition)
    except _AskedError:
        return None
    return scalar_of(value).as_py() is True if is_constant(value) else None


def has_no_rows(relation: Rel, functions: dict[int, str]) -> bool:
    """Return whether a relation has no rows because of a condition in it."""
    kind = str(relation.WhichOneof("rel_type"))
    message = getattr(relation, kind)
    if kind in ("filter", "read") and any(
        is_true(condition, functions) is False for condition in constant_conditions(message, functions)
    ):
        return True
    is_as_many = kind in ("project", "filter", "sort") or (
        kind == "aggregate" and all(grouping.expression_references for grouping in message.groupings)
    )
    return is_as_many and has_no_rows(message.input, functions)


class _AskedError(NotYetSupportedError):
    """A condition has a query in it."""


def _asked(_query: Expression.Subquery) -> str:
    raise _AskedError("a query in a condition")
