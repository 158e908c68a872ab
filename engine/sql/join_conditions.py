"""Join conditions of ON: pairs of keys, and the rest.

    a = b AND c IS NOT DISTINCT FROM d AND e < f
    keys (a, b), (c, d) where null equals null; rest e < f

A side of an equality may be any expression over one input. What reads both inputs on one side, or neither, is no key.

Held by: tests/sql/test_joins.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.api.expression import Expr
from engine.sql.expressions import ExpressionReader
from engine.sql.messages import messages_below

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression

_EQUALITIES: Final = {"equal": False, "is_not_distinct_from": True}


class JoinKey(NamedTuple):
    """A pair of keys that must be equal; ``null_safe``: null equals null."""

    left: Expr
    right: Expr
    null_safe: bool


class JoinCondition(NamedTuple):
    """The keys of a join, and what pairs must meet besides (None: nothing)."""

    keys: tuple[JoinKey, ...]
    rest: Expr | None

    def swapped(self) -> JoinCondition:
        """Return the condition of the same join with its sides exchanged."""
        return JoinCondition(tuple(JoinKey(key.right, key.left, key.null_safe) for key in self.keys), self.rest)


def join_condition(
    message: Expression | None, left_count: int, reader: ExpressionReader, functions: Mapping[int, str]
) -> JoinCondition:
    """Return the condition of an expression over the columns of both inputs, of which the left has so many."""
    keys: list[JoinKey] = []
    rest: Expr | None = None
    for part in parts_of(message, functions) if message is not None else ():
        key = _key(part, left_count, reader, functions)
        if key is not None:
            keys.append(key)
            continue
        one = reader.read(part)
        rest = one if rest is None else rest & one
    return JoinCondition(tuple(keys), rest)


def parts_of(message: Expression, functions: Mapping[int, str]) -> list[Expression]:
    """Return the conditions that AND connects, without those that are true."""
    if _function(message, functions) == "and":
        arguments = message.scalar_function.arguments
        return [part for argument in arguments for part in parts_of(argument.value, functions)]
    is_true = message.WhichOneof("rex_type") == "literal" and message.literal.boolean
    return [] if is_true else [message]


def _key(
    message: Expression, left_count: int, reader: ExpressionReader, functions: Mapping[int, str]
) -> JoinKey | None:
    function = _function(message, functions)
    if function not in _EQUALITIES:
        return None
    one, other = (argument.value for argument in message.scalar_function.arguments)
    sides = [{position < left_count for position in positions(side)} for side in (one, other)]
    if sides == [{False}, {True}]:
        one, other = other, one
    elif sides != [{True}, {False}]:
        return None
    return JoinKey(reader.read(one), reader.read(other), _EQUALITIES[function])


def _function(message: Expression, functions: Mapping[int, str]) -> str:
    if message.WhichOneof("rex_type") != "scalar_function":
        return ""
    return functions[message.scalar_function.function_reference]


def positions(message: Expression) -> set[int]:
    """Return the columns that an expression reads; of a query in it, only those of the value before IN."""
    if message.DESCRIPTOR.name == "FieldReference":
        return {int(message.direct_reference.struct_field.field)}
    if message.DESCRIPTOR.name == "Subquery":
        return {position for needle in message.in_predicate.needles for position in positions(needle)}
    return {position for child in messages_below(message) for position in positions(child)}
