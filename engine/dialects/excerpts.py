"""The line of a text that an error is about, with a caret under the word, as the error's excerpt.

    sql: line 2, column 8: no column amunt; did you mean amount?
        WHERE amunt > 3
              ^

Held by: tests/sql/test_mistakes.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from engine.errors import EngineError

_PLACE: Final = re.compile(r"sql: line (\d+), column (\d+): ")
#: the password of a URI
_SECRET: Final = re.compile(r"(?<=://)([^\s:/@']*:)([^\s/@']+)(?=@)")
_INDENT: Final = "    "
#: characters of a line that are shown on either side of the caret
_BEFORE, _BEHIND = 60, 40


@contextmanager
def with_excerpts(text: str) -> Iterator[None]:
    """Give an error of the block that names a place of the text its excerpt, unless it has one."""
    try:
        yield
    except EngineError as error:
        error.excerpt = error.excerpt or excerpt(text, str(error))
        raise


def excerpt(text: str, said: str) -> str:
    """Return two lines, the text's and one with a caret, of the place that a sentence begins with, "" for none."""
    found = _PLACE.match(said)
    lines = text.split("\n")
    if found is None or int(found[1]) > len(lines):
        return ""
    line, at = lines[int(found[1]) - 1].expandtabs(1), int(found[2]) - 1
    line = _SECRET.sub(lambda one: one[1] + "*" * len(one[2]), line)
    first = max(min(at, len(line) - len(line.lstrip())), at - _BEFORE)
    cut = line[first : at + _BEHIND].rstrip()
    left, right = "..." if line[:first].strip() else "", "..." if len(line.rstrip()) > at + _BEHIND else ""
    caret = " " * (len(left) + at - first) + "^"
    return f"{_INDENT}{left}{cut}{right}\n{_INDENT}{caret}" if cut.strip() else ""
