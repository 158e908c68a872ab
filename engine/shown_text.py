"""shown: text of users as it may be written to a terminal, a page or a log: it can be read, and commands nothing.

    shown(<a, escape, [31m, NUL>)  ─►  an a, a backslash, x1b[31m, a backslash, x00

Names, messages and rows come from data and functions. An escape sequence among them clears a terminal or changes its
title, a NUL ends the line for some readers and the document for others, a mark of direction shows a text as another
one, half of a surrogate pair cannot be encoded at all. Each is written as Python writes it. Line breaks and tabs stay;
``shown_line`` writes those as well.
"""

from __future__ import annotations

import re

#: characters that are escaped: controls but \t and \n, changes of text direction, line separators, surrogates
_UNSEEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_LINE_UNSEEN = re.compile(f"[\t\n]|{_UNSEEN.pattern}")


def shown(text: str) -> str:
    """Return a text whose controls are written out; line breaks and tabs stay."""
    return _UNSEEN.sub(_written, text.replace("\r\n", "\n"))


def shown_line(text: str) -> str:
    """Return a text as one line: line breaks and tabs are written out too."""
    return _LINE_UNSEEN.sub(_written, text)


def _written(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")
