"""IN and NOT IN where the planner's joins do not say which of their conditions is the membership.

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
from typing import TYPE_CHECKING, Final, NamedTuple

from engine.errors import NotYetSupportedError
from engine.sql.text_pieces import is_comment, is_quoted, pieces

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression

_MARK: Final = 71077345
_BEFORE: Final = f"CASE WHEN random() < {_MARK} THEN "
_TOKEN: Final = re.compile(r"\s+|[\w.]+|.", re.DOTALL)
_QUERY_BEGINS: Final = frozenset(("SELECT", "WITH", "VALUES"))
_SEVERAL: Final = frozenset(("UNION", "INTERSECT", "EXCEPT"))
#: what may not lose its DISTINCT, or stands between SELECT and its values
_COUNTED: Final = frozenset(("LIMIT", "OFFSET", "FETCH", "ON"))


class UnclearMembershipError(NotYetSupportedError):
    """A join of which is not known what of it is IN: marks may tell."""


class _Token(NamedTuple):
    text: str
    #: in upper case where it is a word; "" for space and comments
    word: str


def with_marks(text: str) -> str:
    """Return the text of a query in which the values of each IN (SELECT ...) are marked."""
    return "".join(token.text for token in _marked(_tokens(text)))


def marks_in(shown: str) -> int:
    """Return how many memberships a bound plan has, -1 where not all of them are marked."""
    count = shown.count(" IN (<subquery>)")
    return count if len(re.findall(rf"Projection: CASE WHEN random\(\) < Int64\({_MARK}\)", shown)) == count else -1


def marked_value(message: Expression, functions: Mapping[int, str]) -> Expression | None:
    """Return what is marked; None for an expression without a mark."""
    if message.WhichOneof("rex_type") != "if_then" or len(message.if_then.ifs) != 1:
        return None
    clause = message.if_then.ifs[0]
    condition = getattr(clause, "if")
    if condition.WhichOneof("rex_type") != "scalar_function" or len(condition.scalar_function.arguments) != 2:
        return None
    one, other = (argument.value for argument in condition.scalar_function.arguments)
    is_mark = other.WhichOneof("rex_type") == "literal" and other.literal.fp64 == _MARK
    is_random = one.WhichOneof("rex_type") == "scalar_function"
    if is_mark and is_random and functions[one.scalar_function.function_reference] == "random":
        value: Expression = clause.then
        return value
    return None


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    for piece in pieces(text):
        if is_comment(piece):
            found.append(_Token(piece, ""))
        elif is_quoted(piece):
            found.append(_Token(piece, piece))
        else:
            found += [_Token(part, part.strip().upper()) for part in _TOKEN.findall(piece)]
    return found


def _marked(tokens: Sequence[_Token]) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(tokens):
        found.append(tokens[at])
        opened = _after(tokens, at) if tokens[at].word == "IN" else len(tokens)
        at += 1
        if opened < len(tokens) and tokens[opened].word == "(" and _begins_query(tokens, opened):
            closed = _closing(tokens, opened)
            found += tokens[at : opened + 1]
            found += _with_mark(_marked(tokens[opened + 1 : closed]))
            at = closed
    return found


def _begins_query(tokens: Sequence[_Token], opened: int) -> bool:
    first = _after(tokens, opened)
    while first < len(tokens) and tokens[first].word == "(":
        first = _after(tokens, first)
    return first < len(tokens) and tokens[first].word in _QUERY_BEGINS


def _with_mark(query: Sequence[_Token]) -> list[_Token]:
    """Return a query whose only column is marked: where it stands, or, of one that is not simple, around it."""
    outside = _outside(query)
    words = [query[place].word for place in outside]
    if words[:1] == ["SELECT"] and not _SEVERAL & set(words) and not (_COUNTED & set(words) and "DISTINCT" in words):
        begin = 1 + (words[1:2] in (["DISTINCT"], ["ALL"]))
        end = words.index("FROM") if "FROM" in words else len(words)
        named = words.index("AS", begin, end) if "AS" in words[begin:end] else end
        if named > begin and not {"*", ","} & set(words[begin:named]):
            first, last = outside[begin], outside[named] if named < len(words) else len(query)
            select = [_Token("SELECT ", "SELECT"), _Token(_BEFORE, "")]
            return [*select, *query[first:last], _Token(" END ", "END"), *query[last:]]
    head = f"SELECT {_BEFORE}in_value END FROM ("  # noqa: S608 - the query is the user's own
    return [_Token(head, ""), *query, _Token(") AS in_query(in_value)", "")]


def _outside(query: Sequence[_Token]) -> list[int]:
    """Return where words are that are in no parentheses, and the opening ones."""
    found, depth = [], 0
    for place, token in enumerate(query):
        depth -= token.word == ")"
        if depth == 0 and token.word and token.word != ")":
            found.append(place)
        depth += token.word == "("
    return found


def _after(tokens: Sequence[_Token], at: int) -> int:
    """Return where the next word is behind a place."""
    return next((place for place in range(at + 1, len(tokens)) if tokens[place].word), len(tokens))


def _closing(tokens: Sequence[_Token], opened: int) -> int:
    depth = 0
    for place in range(opened, len(tokens)):
        depth += (tokens[place].word == "(") - (tokens[place].word == ")")
        if depth == 0:
            return place
    return len(tokens)
