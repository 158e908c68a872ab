"""``format`` and ``printf`` with a constant format, as texts put together.

    format('{} of {}', a, b)    (CAST(a AS VARCHAR) || ' of ' || CAST(b AS VARCHAR))
    printf('%s of %d', a, b)    the same

Held by: tests/sql/test_function_calls.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from engine.errors import NotYetSupportedError, PlanError

#: replacement of an argument, by function
FORMATS: Final = {
    "format": re.compile(r"\{\{|\}\}|\{[^{}]*\}"),
    "printf": re.compile(r"%%|%[^a-zA-Z]*[a-zA-Z]"),
    "format_string": re.compile(r"%%|%[^a-zA-Z]*[a-zA-Z]"),
}
_PLAIN: Final = frozenset(("{}", "%s", "%d", "%i"))
_DOUBLED: Final = {"{{": "{", "}}": "}", "%%": "%"}


def formatted(name: str, given: Sequence[str]) -> str:
    """Return the expression of a call; NotYetSupportedError for widths and digits, PlanError for too few arguments."""
    if not given or not given[0].startswith("'"):
        raise NotYetSupportedError(f"sql: {name}() of a format that is no constant; write a || b")
    pattern, values = given[0][1:-1], list(given[1:])
    parts, end, text = [], 0, ""
    for found in FORMATS[name].finditer(pattern):
        text += pattern[end : found.start()]
        end = found.end()
        if found[0] in _DOUBLED:
            text += _DOUBLED[found[0]]
            continue
        if found[0] not in _PLAIN:
            raise NotYetSupportedError(f"sql: {found[0]} in {name}(); write round(x, 2), lpad(CAST(x AS VARCHAR), ...)")
        if not values:
            raise PlanError(f"sql: {name}({given[0]}, ...) has {len(given) - 1} values, and needs more")
        parts += [f"'{text}'", f"CAST({values.pop(0)} AS VARCHAR)"]
        text = ""
    return f"({' || '.join([*parts, chr(39) + text + pattern[end:] + chr(39)])})"
