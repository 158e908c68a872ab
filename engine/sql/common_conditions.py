"""Conditions that all sides of OR have, written once: the planner makes joins of equalities that AND connects.

    (u.k = t.k AND u.w = 1) OR (u.k = t.k AND u.w = 2)      (u.k = t.k AND ((u.w = 1) OR (u.w = 2)))

A query that looks at columns outside only below OR has no join otherwise.

Held by: tests/sql/test_written_otherwise.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from engine.sql.tokens import Token, closing, text_of, tokens

_BEGINS: Final = frozenset(("WHERE", "ON", "HAVING", "("))
_ENDS: Final = frozenset(
    ("GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "QUALIFY", "UNION", "INTERSECT", "EXCEPT", "SELECT", ")", ";", ",")
)
#: words whose AND, or whose end, does not belong to the condition
_NOT_PLAIN: Final = frozenset(("BETWEEN", "CASE", "JOIN", "DISTINCT"))


def with_common_conditions(text: str) -> str:
    """Return a query whose conditions with OR begin with what all of their sides have; the same text where none has."""
    found = tokens(text)
    for at in range(len(found) - 1, -1, -1):
        if found[at].word not in _BEGINS:
            continue
        end = _end(found, at + 1)
        sides = [_without_parentheses(side) for side in _split(found[at + 1 : end], "OR")]
        if len(sides) < 2 or any(token.word in _NOT_PLAIN for side in sides for token in side):
            continue
        parts = [list(map(_words, _split(side, "AND"))) for side in sides]
        common = [part for part in parts[0] if part and all(part in others for others in parts[1:])]
        if not common or any(len(part) == len(common) for part in parts):
            continue
        rest = [[part for part in side if part not in common] for side in parts]
        written = f" ({' AND '.join(common)} AND ({' OR '.join(f'({_all(side)})' for side in rest)})) "
        found[at + 1 : end] = tokens(written)
    return text_of(found)


def _all(parts: Sequence[str]) -> str:
    return " AND ".join(parts)


def _words(part: Sequence[Token]) -> str:
    """Return the text of a condition, the same for the same words."""
    return " ".join(token.text.strip() if token.word[:1] in "\"'" else token.text for token in part if token.word)


def _end(found: Sequence[Token], at: int) -> int:
    while at < len(found) and found[at].word not in _ENDS:
        at = closing(found, at) + 1 if found[at].word == "(" else at + 1
    return min(at, len(found))


def _split(found: Sequence[Token], word: str) -> Iterator[Sequence[Token]]:
    begin = at = 0
    while at < len(found):
        if found[at].word == word:
            yield found[begin:at]
            begin = at + 1
        at = closing(found, at) + 1 if found[at].word == "(" else at + 1
    yield found[begin:]


def _without_parentheses(side: Sequence[Token]) -> Sequence[Token]:
    """Return the content of the parentheses around a whole side."""
    words = [place for place, token in enumerate(side) if token.word]
    while words and side[words[0]].word == "(" and closing(side, words[0]) == words[-1]:
        side = side[words[0] + 1 : words[-1]]
        words = [place for place, token in enumerate(side) if token.word]
    return side
