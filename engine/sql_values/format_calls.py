"""``format`` and ``printf`` with a constant format, as parts that are put together.

    formatted("format", "{} of {}", 2)     [0, " of ", 1]       a number: the argument of that place
    formatted("printf", "%d%%", 1)         [0, "%"]

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

import re
from typing import Final

from engine.errors import NotYetSupportedError, PlanError

#: places of arguments, by function
_PLACES: Final = {
    "format": re.compile(r"\{\{|\}\}|\{[^{}]*\}"),
    "printf": re.compile(r"%%|%[^a-zA-Z]*[a-zA-Z]"),
    "format_string": re.compile(r"%%|%[^a-zA-Z]*[a-zA-Z]"),
}
_PLAIN: Final = frozenset(("{}", "%s", "%d", "%i"))
_DOUBLED: Final = {"{{": "{", "}}": "}", "%%": "%"}


def formatted(name: str, pattern: str, count: int) -> list[str | int]:
    """Return texts and places of arguments, of which there are so many.

    Raises: NotYetSupportedError for widths and digits, PlanError for too few arguments.
    """
    parts: list[str | int] = []
    end, text, place = 0, "", 0
    for found in _PLACES[name].finditer(pattern):
        text += pattern[end : found.start()]
        end = found.end()
        if found[0] in _DOUBLED:
            text += _DOUBLED[found[0]]
            continue
        if found[0] not in _PLAIN:
            raise NotYetSupportedError(f"{found[0]} in {name}(); write round(x, 2), lpad(CAST(x AS VARCHAR), ...)")
        if place == count:
            raise PlanError(f"{name}('{pattern}', ...) has {count} values, and needs more")
        parts += [text, place] if text else [place]
        text, place = "", place + 1
    text += pattern[end:]
    return [*parts, text] if text else parts
