"""Names of operators that are not longer than a line has room for.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

_TEXT_MAX = 60


def short(text: str) -> str:
    """Return a text, or the begin of a long one."""
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."
