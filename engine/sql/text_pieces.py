"""The text of a query in pieces: strings, quoted names and comments, in which words mean nothing, and what is between.

    pieces("a 'b;' -- c") -> ["a ", "'b;'", " ", "-- c"]

Held by: tests/sql/test_statements.py
"""

from __future__ import annotations

import re
from typing import Final

_PIECES: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|;|[^'\"\-/;]+|.", re.DOTALL)


def pieces(text: str) -> list[str]:
    """Return the pieces of a text, all its characters; a semicolon between them is one of its own."""
    found: list[str] = _PIECES.findall(text)
    return found


def is_comment(piece: str) -> bool:
    """Return whether a piece is a comment; a hint is one, too."""
    return piece.startswith(("--", "/*")) and len(piece) > 1


def is_quoted(piece: str) -> bool:
    """Return whether a piece is a string or a quoted name."""
    return piece.startswith(("'", '"')) and len(piece) > 1
