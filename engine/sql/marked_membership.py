"""IN and NOT IN where the planner's joins do not tell the membership from other conditions.

    k NOT IN (SELECT a FROM u WHERE u.b = t.v)      join by k = a and v = b: unknown is only what is so of the first
    99 NOT IN (SELECT a FROM u)                     a filter a = 99 below a join without keys: the nulls are gone

What IN looks at is marked in the text, before it is planned a second time:

    k NOT IN (SELECT CASE WHEN random() < 71077345 THEN a END FROM u WHERE u.b = t.v)

``random`` changes from row to row, so the planner leaves the marked column where it is, and whatever compares it is the
membership. Reading the plan takes the mark away. Each IN of the query must be found in a join, else it is refused.

Held by: tests/sql/test_marked_membership.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from engine.errors import NotYetSupportedError
from engine.sql.tokens import Token, after, closing, outside, text_of, tokens

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression

_MARK: Final = 71077345
_BEFORE: Final = f"CASE WHEN random() < {_MARK} THEN "
_QUERY_BEGINS: Final = frozenset(("SELECT", "WITH", "VALUES"))
_SEVERAL: Final = frozenset(("UNION", "INTERSECT", "EXCEPT"))
#: words that need their DISTINCT, or stand between SELECT and its values
_COUNTED: Final = frozenset(("LIMIT", "OFFSET", "FETCH", "ON"))


class UnclearMembershipError(NotYetSupportedError):
    """A join of which is not known what of it is IN: marks may tell."""


def with_marks(text: str) -> str:
    """Return the text of a query in which the values of each IN (SELECT ...) are marked."""
    return text_of(_marked(tokens(text)))


def marks_in(shown: str) -> int:
    """Return the number of memberships a bound plan has, -1 where not all of them are marked."""
    count = shown.count(" IN (<subquery>)")
    return count if len(re.findall(rf"Projection: CASE WHEN random\(\) < Int64\({_MARK}\)", shown)) == count else -1


def marked_value(message: Expression, functions: Mapping[int, str]) -> Expression | None:
    """Return the marked value; None for an expression without a mark."""
    if message.WhichOneof("rex_type") != "if_then" or len(message.if_then.ifs) != 1:
        return None
    clause = message.if_then.ifs[0]
    condition = getattr(clause, "if")
    if condition.WhichOneof("rex_type") != "scalar_function" or len(condition.scalar_function.arguments) != 2:
        return None
    one, other = (argument.value for argument in condition.scalar_function.arguments)
    is_mark = other.WhichOneof("rex_type") == "cast" and other.cast.input.literal.i64 == _MARK
    is_random = one.WhichOneof("rex_type") == "scalar_function"
    if is_mark and is_random and functions[one.scalar_function.function_reference] == "random":
        value: Expression = clause.then
        return value
    return None


def _marked(query: Sequence[Token]) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(query):
        found.append(query[at])
        opened = after(query, at) if query[at].word == "IN" else len(query)
        at += 1
        if opened < len(query) and query[opened].word == "(" and _begins_query(query, opened):
            closed = closing(query, opened)
            found += query[at : opened + 1]
            found += _with_mark(_marked(query[opened + 1 : closed]))
            at = closed
    return found


def _begins_query(query: Sequence[Token], opened: int) -> bool:
    first = after(query, opened)
    while first < len(query) and query[first].word == "(":
        first = after(query, first)
    return first < len(query) and query[first].word in _QUERY_BEGINS


def _with_mark(query: Sequence[Token]) -> list[Token]:
    """Return a query whose only column is marked: where it stands, or, of one that is not simple, around it."""
    places = outside(query)
    words = [query[place].word for place in places]
    if words[:1] == ["SELECT"] and not _SEVERAL & set(words) and not (_COUNTED & set(words) and "DISTINCT" in words):
        begin = 1 + (words[1:2] in (["DISTINCT"], ["ALL"]))
        end = words.index("FROM") if "FROM" in words else len(words)
        named = words.index("AS", begin, end) if "AS" in words[begin:end] else end
        if named > begin and not {"*", ","} & set(words[begin:named]):
            first, last = places[begin], places[named] if named < len(words) else len(query)
            select = [Token("SELECT ", "SELECT"), Token(_BEFORE, "")]
            return [*select, *query[first:last], Token(" END ", "END"), *query[last:]]
    head = f"SELECT {_BEFORE}in_value END FROM ("  # noqa: S608 - the query is the user's own
    return [Token(head, ""), *query, Token(") AS in_query(in_value)", "")]
