"""The text of a query as tokens, for what is said of it before it is planned.

    tokens("k IN (1)")      k, " ", IN, " ", (, 1, )          all characters; space and comments have no word
    text_of(tokens)         the text again
    rewritten(text, [f])    f(tokens, place) says what stands there instead: begin, end, tokens; or None

Words are in upper case; ``t.k`` is one token, so are strings and quoted names.

Held by: tests/sql/test_written_otherwise.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from engine.sql.text_pieces import is_comment, is_quoted, pieces

#: words before parentheses that are no functions
_NO_FUNCTION_TEXT: Final = """
    SELECT WHERE AND OR NOT IN ON HAVING BY WHEN THEN ELSE CASE BETWEEN LIKE FROM DISTINCT VALUES
    , ( = < > + - * / % | !
"""
_NO_FUNCTION: Final = frozenset(_NO_FUNCTION_TEXT.split())
_TYPES: Final = frozenset(("TIMESTAMP", "TIMESTAMPTZ", "DATE"))
_TOKEN: Final = re.compile(r"\s+|[\w.]+|.", re.DOTALL)


class Token(NamedTuple):
    """A part of a text."""

    text: str
    #: upper case of a word; "" for space and comments
    word: str


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text."""
    found: list[Token] = []
    for piece in pieces(text):
        if is_comment(piece):
            found.append(Token(piece, ""))
        elif is_quoted(piece):
            found.append(Token(piece, piece))
        else:
            found += [Token(part, part.strip().upper()) for part in _TOKEN.findall(piece)]
    return found


def raw(text: str) -> Token:
    """Return a token of a text that is put in, whatever it holds."""
    return Token(text, text.strip().upper())


def text_of(parts: Iterable[Token]) -> str:
    """Return the text of tokens."""
    return "".join(token.text for token in parts)


#: begin and end of replaced tokens, and their replacement; None: no change
Change = tuple[int, int, Sequence[Token]] | None


def rewritten(text: str, changes: Iterable[Callable[[Sequence[Token], int], Change]]) -> str:
    """Return a text after each change, one after the other, was made wherever it applies; what is new is looked at."""
    found = tokens(text)
    for change in changes:
        at = 0
        while at < len(found):
            changed = change(found, at)
            if changed is not None:
                begin, end, parts = changed
                found[begin:end] = parts
                at = max(begin, 0)
            at += 1
    return text_of(found)


def after(found: Sequence[Token], at: int) -> int:
    """Return the index of the next word behind a place; the length where there is none."""
    return next((place for place in range(at + 1, len(found)) if found[place].word), len(found))


def before(found: Sequence[Token], at: int) -> int:
    """Return the index of the last word before a place; -1 where there is none."""
    return next((place for place in range(at - 1, -1, -1) if found[place].word), -1)


def words_from(found: Sequence[Token], at: int, count: int) -> list[str]:
    """Return up to ``count`` words from a place on, fewer at the end of the text."""
    words: list[str] = []
    while at < len(found) and len(words) < count:
        words.append(found[at].word)
        at = after(found, at)
    return words


def closing(found: Sequence[Token], opened: int) -> int:
    """Return the index of the parenthesis that closes the one at a place; the length without one."""
    return _matching(found, range(opened, len(found)), "(", ")", len(found))


def opening(found: Sequence[Token], closed: int) -> int:
    """Return the index of the parenthesis that opens the one closed at a place; -1 without one."""
    return _matching(found, range(closed, -1, -1), ")", "(", -1)


def case_end(found: Sequence[Token], at: int) -> int:
    """Return the index of the END of the CASE at a place; the length where it has none."""
    return _matching(found, range(at, len(found)), "CASE", "END", len(found))


def case_begin(found: Sequence[Token], at: int) -> int:
    """Return the index of the CASE of the END at a place; -1 where it has none."""
    return _matching(found, range(at, -1, -1), "END", "CASE", -1)


def _matching(found: Sequence[Token], places: Iterable[int], begin: str, end: str, none: int) -> int:
    depth = 0
    for place in places:
        depth += (found[place].word == begin) - (found[place].word == end)
        if depth == 0:
            return place
    return none


def outside(found: Sequence[Token]) -> list[int]:
    """Return the indexes of words outside parentheses, and of opening ones."""
    places, depth = [], 0
    for place, token in enumerate(found):
        depth -= token.word == ")"
        if depth == 0 and token.word and token.word != ")":
            places.append(place)
        depth += token.word == "("
    return places


def primary_begin(found: Sequence[Token], last: int) -> int:
    """Return the begin of the value whose last word is at a place: name, constant, call, parentheses, a::type."""
    at = last
    word = found[at].word
    if word == "END":
        return case_begin(found, at)
    if word == ")":
        at = opening(found, at)
        earlier = before(found, at)
        if earlier >= 0 and found[earlier].word not in _NO_FUNCTION:
            at = earlier
    earlier = before(found, at)
    if earlier >= 0 and found[earlier].word in _TYPES and found[at].word.startswith("'"):
        return earlier
    if earlier >= 0 and found[earlier].word.endswith(".") and found[at].word.startswith('"'):
        return earlier
    if words_from(found, before(found, earlier), 2) == [":", ":"]:
        return primary_begin(found, before(found, before(found, earlier)))
    return at


def primary_end(found: Sequence[Token], at: int) -> int:
    """Return the end of the value that begins at a place: a text, a name, a call or parentheses."""
    if at < len(found) and found[at].word == "(":
        return min(closing(found, at) + 1, len(found))
    following = after(found, at)
    if following < len(found) and found[following].word == "(" and not found[at].word.startswith("'"):
        return min(closing(found, following) + 1, len(found))
    return min(at + 1, len(found))
