"""The text of a query in pieces: strings, quoted names and comments, in which words mean nothing, and what is between.

    pieces("a 'b;' -- c") -> ["a ", "'b;'", " ", "-- c"]
    first_word("/* a */ Show tables") -> ("SHOW", 8)

Held by: tests/sql/test_statements.py
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Final

_PIECES: Final = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$\$.*?\$\$|--[^\n]*|/\*.*?\*/|;|[^'\"$\-/;]+|.", re.DOTALL
)
_WORDS: Final = re.compile(r"\w+|[^\w\s]")


def pieces(text: str) -> list[str]:
    """Return the pieces of a text, all its characters; a semicolon between them is one of its own."""
    found: list[str] = _PIECES.findall(text)
    return found


def is_comment(piece: str) -> bool:
    """Return whether a piece is a comment; a hint is one, too."""
    return piece.startswith(("--", "/*")) and len(piece) > 1


def is_quoted(piece: str) -> bool:
    """Return whether a piece is a string or a quoted name."""
    return piece.startswith(("'", '"', "$$")) and len(piece) > 1


def stray_hint(text: str) -> int | None:
    """Return the place of a hint that stands neither behind SELECT nor before all words; None where there is none."""
    at, word = 0, ""
    for piece in pieces(text):
        if piece.startswith("/*+") and word.upper() not in ("", "SELECT"):
            return at
        at += len(piece)
        if not is_comment(piece):
            word = next(iter(_WORDS.findall(piece)[-1:]), word)
    return None


def first_word(text: str) -> tuple[str, int]:
    """Return the first word of a text behind blanks and comments, in upper case, and its place; "" for none."""
    at = 0
    for piece in _PIECES.finditer(text):
        found = piece[0].lstrip()
        at = piece.end() - len(found)
        if found and (not is_comment(found) or found.startswith("/*+")):
            return "".join(takewhile(lambda sign: sign.isalnum() or sign == "_", found)).upper() or found[0], at
    return "", at
