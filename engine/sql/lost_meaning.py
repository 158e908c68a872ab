"""Meaning that the planner loses on the way to Substrait: such queries are refused, since results would be wrong.

    in the text         hints, ESCAPE, TABLESAMPLE, windows that extend a named one, GROUPS,
                        IS DISTINCT FROM with AND or OR behind it
    in the bound plan   FILTER and DISTINCT of a window, RANGE over what is no whole number,
                        IN where null is told from false, NOT IN of a constant, EXISTS over an aggregate of all rows,
                        aggregates, windows and limits that a subquery takes of each outer row
    in the last plan    distances of RANGE over what is no integer, which Substrait calls unbounded

The bound plan is the one before any rewriting. Its text has a line for each relation, and below it, in their order, a
"Subquery:" for each "(<subquery>)" of the line. Each rule was found by comparing answers with those of DuckDB.

Held by: tests/sql/test_lost_meaning.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from engine.errors import NotYetSupportedError, PlanError
from engine.sql.lost_conditions import ALWAYS_ROWS
from engine.sql.marked_membership import UnclearMembershipError
from engine.sql.messages import messages_below
from engine.sql.plan_text import LITERAL, depth, lines_below, own_lines
from engine.sql.text_pieces import is_comment, is_quoted, pieces

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression, Rel

_NO_NAME: Final = r"(?!(?:PARTITION|ORDER|ROWS|RANGE|GROUPS)\b)"
_IN_TEXT: Final = {
    r"/\*\+": "join hints in a query (write join(hint=...))",
    r"\bLIKE\b.*\bESCAPE\b": "LIKE ... ESCAPE (a backslash makes the next character plain)",
    r"\bGROUPS\s+(?:BETWEEN|UNBOUNDED|CURRENT|\d)": "a frame of GROUPS",
    rf"(?:\bOVER|\bWINDOW\s+\w+\s+AS|,\s*\w+\s+AS)\s*\(\s*{_NO_NAME}\w+\s*(?:\)|(?:PARTITION|ORDER|ROWS|RANGE)\b)": (
        "a window that extends a named one (write it whole)"
    ),
}
_DISTINCT_FROM: Final = re.compile(r"\bIS\s+(?:NOT\s+)?DISTINCT\s+FROM\b", re.IGNORECASE)
_WORD: Final = re.compile(r"\w+|[(),;]")
_ENDS_TEXT: Final = """
    WHERE GROUP HAVING ORDER LIMIT WINDOW QUALIFY UNION INTERSECT EXCEPT JOIN LEFT RIGHT FULL INNER CROSS WHEN THEN ELSE
    END AS , ;
"""
_ENDS: Final = frozenset(_ENDS_TEXT.split())
_WINDOW: Final = "WindowAggr: "
_FILTERED_WINDOW: Final = re.compile(r"^\s*Filter: .*\b(?:ROWS|RANGE) BETWEEN (?:UNBOUNDED|CURRENT|\d+) ")
_IN_WINDOW: Final = {
    r" FILTER \(": "FILTER of a function over a window (write sum(CASE WHEN ...))",
    r"\(DISTINCT ": "DISTINCT of a function over a window",
}
_BOUND: Final = r"(?:UNBOUNDED (?:PRECEDING|FOLLOWING)|CURRENT ROW|\d+ (?:PRECEDING|FOLLOWING))"
_RANGE: Final = re.compile(r"RANGE BETWEEN ")
_WHOLE_RANGE: Final = re.compile(rf"RANGE BETWEEN ({_BOUND}) AND ({_BOUND})")
_DISTANCE: Final = re.compile(r"\b\d+ (?:PRECEDING|FOLLOWING)")
_IN: Final = " IN (<subquery>)"
_NULL_TEST: Final = re.compile(r" IS (?:NOT )?(?:NULL|UNKNOWN)\b")
_NULL_TEST_OF_COLUMN: Final = re.compile(r"(?:OR |AND |NOT |\(|: )[\w.\"]+ IS (?:NOT )?NULL\b")
_NULL_FUNCTION: Final = re.compile(r"\b(?:coalesce|nullif|nvl2?|ifnull)\(")
_NULL_COMPARISON: Final = re.compile(
    r"IN \(<subquery>\)\)* IS (?:NOT )?DISTINCT FROM|DISTINCT FROM (?:(?! AND | OR ).)*IN \(<subquery>\)"
)
_COLUMN: Final = re.compile(r"\b\w+\.\w+\b")
_OUTER: Final = "outer_ref("
#: casts of constants such as 2.5, which are doubles only beside doubles: halves of decimals are rounded differently
_CUT_CONSTANT: Final = re.compile(r"CAST\((?:\(- )?Float64\(-?\d*\.\d*[1-9]\d*\)\)? AS U?Int")
_SUBQUERY: Final = re.compile(r"(EXISTS |IN |ANY |ALL )?\(<subquery>\)")
_OPERAND_BEGINS: Final = re.compile(r" AND | OR |\b(?:NOT|WHEN|THEN|ELSE) |: |, ")
_NO_COLUMN: Final = re.compile(r"\bCAST\(|\bAS \w+\)|\b(?!count\()\w+\(|\bNOT$")
_NO_SEMI_JOIN: Final = re.compile(r"\bNOT\b|\bOR\b|\bCASE\b|Boolean\(")
_ABOVE_ROWS: Final = ("Projection:", "SubqueryAlias:", "Sort:", "Limit:")
_SOME_ROWS: Final = re.compile(r"Limit: skip=0, fetch=[1-9]\d*$")


class SameTableError(NotYetSupportedError):
    """A query that ANY or ALL looks at has columns of the same names as the one outside."""


def plain_words(text: str) -> str:
    """Return a text without what its strings and quoted names say, and without comments but hints."""
    return "".join(piece if not _means_nothing(piece) else " " if is_comment(piece) else "''" for piece in pieces(text))


def check_text(text: str) -> None:
    """Raise NotYetSupportedError for words that the planner reads over."""
    plain = plain_words(text)
    for pattern, what in _IN_TEXT.items():
        if re.search(pattern, plain, re.IGNORECASE | re.DOTALL):
            raise NotYetSupportedError(f"sql: {what}")
    for found in _DISTINCT_FROM.finditer(plain):
        if _goes_on(plain[found.end() :]):
            raise NotYetSupportedError("sql: IS DISTINCT FROM with AND or OR behind it; write (a IS DISTINCT FROM b)")


def _goes_on(text: str) -> bool:
    """Return whether AND or OR follow before the clause ends: the planner would read them as a part of its value."""
    depth = 0
    for word in _WORD.findall(text):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth < 0 or (depth == 0 and word.upper() in _ENDS):
            return False
        if depth == 0 and word.upper() in ("AND", "OR"):
            return True
    return False


def _means_nothing(piece: str) -> bool:
    """Return whether words in a piece are none of the query's; a hint is a comment that means something."""
    return is_quoted(piece) or (is_comment(piece) and not piece.startswith("/*+"))


def check_bound_plan(shown: str, is_marked: bool = False) -> None:
    """Raise NotYetSupportedError for what the text of a bound plan shows and Substrait does not say.

    is_marked: what IN looks at is marked (see ``marked_membership``).
    """
    lines = shown.split("\n")
    for number, line in enumerate(lines):
        if _WINDOW in line:
            _check_window(line)
        if _FILTERED_WINDOW.search(line) and _WINDOW not in lines[number + 1]:
            raise PlanError("sql: a function over a window in WHERE; write it in QUALIFY")
        if _CUT_CONSTANT.search(line):
            raise NotYetSupportedError("sql: CAST of a constant with a fraction to an integer; write round(2.5)")
        if _IN in line:
            _check_in(line, is_marked)
        for kind, below in _subqueries(lines, number):
            _check_subquery(kind, below)
            if kind in ("ANY", "ALL"):
                _check_same_table(line, below)


def _check_same_table(line: str, below: list[str]) -> None:
    """Raise SameTableError where ANY and ALL compare a column with itself, by the names that both have."""
    compared = below[0].strip() if below else ""
    if set(_COLUMN.findall(line)) & set(_COLUMN.findall(compared)):
        raise SameTableError(
            "sql: ANY and ALL over the same table; give it a name of its own: (SELECT a.k FROM t AS a)"
        )


def _check_window(line: str) -> None:
    for pattern, what in _IN_WINDOW.items():
        if re.search(pattern, line):
            raise NotYetSupportedError(f"sql: {what}")
    if len(_RANGE.findall(line)) != len(_WHOLE_RANGE.findall(line)):
        raise NotYetSupportedError("sql: a frame of RANGE with a distance that is no whole number")


def check_ranges(shown: str, root: Rel) -> None:
    """Raise NotYetSupportedError where a plan has more distances of RANGE than its Substrait."""
    frames = [
        bound
        for line in shown.split("\n")
        if _WINDOW in line
        for found in _WHOLE_RANGE.findall(line)
        for bound in found
    ]
    wanted = sum(_DISTANCE.fullmatch(bound) is not None for bound in frames)
    if wanted > (sum(map(_distances, _windows_of(root))) if wanted else 0):
        raise NotYetSupportedError("sql: a frame of RANGE with a distance over a column that is no integer (cast it)")


def _distances(call: Expression.WindowFunction) -> int:
    if not call.BoundsType.Name(call.bounds_type).endswith("RANGE"):
        return 0
    return sum(bound.WhichOneof("kind") in ("preceding", "following") for bound in (call.lower_bound, call.upper_bound))


def _windows_of(message: Any) -> Iterator[Expression.WindowFunction]:
    """Yield the window functions of a message and of what is below it."""
    if message.DESCRIPTOR.name == "WindowFunction":
        yield message
    for child in messages_below(message):
        yield from _windows_of(child)


def _check_in(line: str, is_marked: bool) -> None:
    is_told = len(_NULL_TEST.findall(line)) != len(_NULL_TEST_OF_COLUMN.findall(line))
    is_asked = any(_IN in _call_at(line, found.end()) for found in _NULL_FUNCTION.finditer(line))
    if is_told or is_asked or _NULL_COMPARISON.search(line):
        raise NotYetSupportedError("sql: IN (SELECT ...) where NULL and FALSE are not the same; write it as a join")
    if is_marked or not _NO_SEMI_JOIN.search(line):
        return
    if any(_is_constant(operand) for operand in _operands(line)):
        raise UnclearMembershipError("sql: a constant before NOT IN (SELECT ...) (write NOT EXISTS)")


def _call_at(line: str, begin: int) -> str:
    """Return the arguments of a call whose parenthesis is before a place."""
    depth, end = 1, begin
    while end < len(line) and depth:
        depth += (line[end] == "(") - (line[end] == ")")
        end += 1
    return line[begin:end]


def _operands(line: str) -> list[str]:
    """Return the operands before each IN of a line, with a # for each constant."""
    parts = LITERAL.sub("#", line).split(_IN)[:-1]
    return [_OPERAND_BEGINS.split(part.removesuffix(" NOT"))[-1] for part in parts]


def _is_constant(operand: str) -> bool:
    """Return whether an operand reads no column, or is null whatever the column."""
    return "NULL" in operand or re.search(r"\w", _NO_COLUMN.sub("", operand)) is None


def has_correlated_in(shown: str) -> bool:
    """Return whether a bound plan has IN of a query that reads columns of the row outside."""
    lines = shown.split("\n")
    return any(
        kind == "IN" and any(_OUTER in line for line in below)
        for number in range(len(lines))
        for kind, below in _subqueries(lines, number)
    )


def _subqueries(lines: list[str], number: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the subqueries of a line: EXISTS, IN, ANY, ALL or nothing, and the lines of the plan."""
    if "(<subquery>)" not in lines[number]:
        return
    deep = depth(lines[number]) + 2
    below = [at for at in range(*lines_below(lines, number)) if depth(lines[at]) == deep]
    subqueries = [at for at in below if lines[at].strip() == "Subquery:"]
    for found, at in zip(_SUBQUERY.finditer(lines[number]), subqueries, strict=False):
        yield (found[1] or "").strip(), lines[slice(*lines_below(lines, at))]


def _check_subquery(kind: str, lines: list[str]) -> None:
    """Raise NotYetSupportedError for rows of a subquery that the join made of it does not have, or has too many."""
    top = next((at for at, line in enumerate(lines) if not line.strip().startswith(_ABOVE_ROWS)), len(lines))
    rows = lines[top].strip() if top < len(lines) else ""
    if kind == "EXISTS" and ALWAYS_ROWS.match(rows):
        raise NotYetSupportedError("sql: EXISTS (SELECT an aggregate of all rows), which has one row always")
    only_asks_for_rows = kind == "EXISTS" or (not kind and rows.startswith("Aggregate:"))
    for at in own_lines(lines):
        line = lines[at].strip()
        if not any(_OUTER in one for one in lines[at : lines_below(lines, at)[1]]):
            continue
        if kind and ALWAYS_ROWS.match(line):
            raise NotYetSupportedError(f"sql: {kind} of an aggregate of all rows that depends on the row outside")
        if line.startswith(_WINDOW):
            raise NotYetSupportedError("sql: a window in a subquery that depends on the row outside")
        if line.startswith("Limit:") and not (only_asks_for_rows and at < top and _SOME_ROWS.match(line)):
            raise NotYetSupportedError("sql: LIMIT or OFFSET in a subquery that depends on the row outside")
