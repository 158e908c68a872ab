"""Patterns of texts for Spark: regular expressions that mean the same to RE2 and to Java, or None.

    literal characters   . (no line feed)   [a-z0-9_]  [^ab]   escaped d, w, s of ASCII   * + ?   |   ^ first, $ last

Whether it occurs is asked, never where, so that leftmost and longest do not matter. Java goes back where RE2 does not:
no groups, and at most two of ``*`` and ``+``.

Held by: tests/dataframes/test_native_expressions.py
"""

from __future__ import annotations

import re
from typing import Final

_PLACES_MOST: Final = 2
_CLASSES: Final = {
    "d": "[0-9]",
    "D": "[^0-9]",
    "w": "[0-9A-Za-z_]",
    "W": "[^0-9A-Za-z_]",
    "s": "[\\t\\n\\f\\r ]",
    "S": "[^\\t\\n\\f\\r ]",
}
_SET: Final = re.compile(r"\[\^?(?:[0-9]-[0-9]|[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9A-Za-z_ .,])+\]")
_REPEATS: Final = re.compile(r"[*+?{]+")
_TOKEN: Final = re.compile(
    rf"(?P<set>{_SET.pattern})|\\(?P<kind>[dDwWsS])|\\(?P<escaped>[!-/:-@\[-`{{-~])|(?P<any>\.)|(?P<either>\|)"
    r"|(?P<start>\^)|(?P<end>\$)|(?P<plain>[^\\.+*?()\[\]{}|^$\x00-\x1f\x7f])"
)


def java_pattern(pattern: str) -> str | None:
    """Return Java's form of a pattern of RE2; None where they may differ."""
    made, position, repeats, had_end = ["(?d)"], 0, 0, False
    while position < len(pattern):
        found = _TOKEN.match(pattern, position)
        if found is None or (had_end and found.lastgroup != "either"):
            return None
        position = found.end()
        kind, text = found.lastgroup, found[found.lastgroup or 0]
        had_end = kind == "end"
        if kind == "start" and not (found.start() == 0 or pattern[found.start() - 1] == "|"):
            return None
        made.append(_of_java(kind, text))
        repeat = _REPEATS.match(pattern, position)
        if repeat is not None:
            if kind in ("either", "start", "end") or repeat[0] not in ("*", "+", "?"):
                return None
            repeats += repeat[0] != "?"
            made.append(repeat[0])
            position = repeat.end()
    return "".join(made) if repeats <= _PLACES_MOST else None


def _of_java(kind: str | None, text: str) -> str:
    match kind:
        case "kind":
            return _CLASSES[text]
        case "start":
            return r"\A"
        case "end":
            return r"\z"
        case "set" | "any" | "either":
            return text
    return text if text.isalnum() or text == " " or not text.isascii() else f"\\{text}"
