"""Messages of Substrait as trees: what is directly below one, whatever its kind.

Types, constants and hints are most of a plan, and have neither a relation nor an expression in them: they are no part
of the tree.

Held by: tests/sql/test_joins.py
"""

from __future__ import annotations

from typing import Any, Final

#: messages that form trees
_OF_TREES: Final = frozenset({"substrait.Rel", "substrait.Expression", "substrait.Expression.FieldReference"})
#: cache: whether a field's messages are part of a tree
_are_below: Final[dict[Any, bool]] = {}


def messages_below(message: Any) -> list[Any]:
    """Return the messages in the fields of a message, in the order of the fields' numbers."""
    found: list[Any] = []
    for field, value in message.ListFields():
        is_below = _are_below.get(field)
        if is_below is None:
            is_below = _are_below[field] = _has_trees(field.message_type)
        if not is_below:
            continue
        if field.is_repeated:
            found.extend(value)
        else:
            found.append(value)
    return found


def _has_trees(kind: Any) -> bool:
    """Return whether messages of a kind are relations or expressions, or may have some in them."""
    met, stack = set(), [kind]
    while stack:
        one = stack.pop()
        if one is None or one.full_name in met:
            continue
        if one.full_name in _OF_TREES:
            return True
        met.add(one.full_name)
        stack.extend(field.message_type for field in one.fields)
    return False
