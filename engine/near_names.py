"""near_names: the known names that are most like another one, for the hint of an error.

    near_names("Lenght", ["length", "strip"])    ─►  ["length"]
    did_you_mean("Lenght", ["length", "strip"])  ─►  "; did you mean length?"

The case of letters does not count. The first error loads ``difflib``.
"""

from __future__ import annotations

from collections.abc import Iterable


def near_names(name: str, known: Iterable[str], count: int = 1, likeness: float = 0.6) -> list[str]:
    """Return known names that are like one, the nearest first; ``likeness``: what they have at least, from 0 to 1."""
    import difflib

    by_lower = {one.lower(): one for one in known}
    return [by_lower[one] for one in difflib.get_close_matches(name.lower(), by_lower, count, likeness)]


def did_you_mean(name: str, known: Iterable[str], count: int = 2, likeness: float = 0.6) -> str:
    """Return the end of a message that suggests near names, "" for none."""
    near = near_names(name, known, count, likeness)
    return f"; did you mean {' or '.join(near)}?" if near else ""
