"""The planner's text of a plan: a line for each relation, what is below it indented.

    lines_below(lines, 1) -> (2, 5)       lines 2, 3 and 4 are inputs of line 1, and theirs
    own_lines(lines)                      those of the plan, without the lines of its subqueries

Held by: tests/sql/test_lost_meaning.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

#: pattern of a constant that is not null
LITERAL: Final = re.compile(
    r"\b(?:Boolean|U?Int\d+|Float\d+|Decimal\d+|(?:Large)?Utf8(?:View)?|Date\d+|Time\d*\w+|Interval\w+|Duration\w+)"
    r"\((?:\".*?\"|(?!NULL)(?:Some\([^()]*\))?[^()\"]*)\)"
)


def lines_below(lines: Sequence[str], number: int) -> tuple[int, int]:
    """Return the first and the last number of the lines below a line."""
    deeper = range(number + 1, len(lines))
    end = next((at for at in deeper if depth(lines[at]) <= depth(lines[number])), len(lines))
    return number + 1, end


def own_lines(lines: Sequence[str], start: int = 0, end: int | None = None) -> Iterator[int]:
    """Yield the numbers of a plan's lines outside its subqueries."""
    at, end = start, len(lines) if end is None else end
    while at < end:
        if lines[at].strip() == "Subquery:":
            at = lines_below(lines, at)[1]
            continue
        yield at
        at += 1


def depth(line: str) -> int:
    """Return the indentation of a line."""
    return len(line) - len(line.lstrip(" "))
