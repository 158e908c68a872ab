"""Conditions that the planner's rewriting moves or merges to other answers: refused by name.

    a constant condition above an aggregate that always has a row     moved below it, where it leaves the row
        SELECT * FROM (SELECT min(v) AS m FROM t) AS x WHERE NOT (m = m)
        SELECT * FROM (SELECT count(*) AS n FROM t) AS x WHERE (SELECT max(w) FROM u) > 5
    two IN of the same value                                          merged as if there were no nulls
        k IN (1, 2) AND k NOT IN (2, NULL)       k NOT IN (1, 2) OR k NOT IN (3, 4)

The bound plan, before any rewriting, says what was meant; the last one, what became of it.

Held by: tests/sql/test_lost_conditions.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.errors import NotYetSupportedError
from engine.sql.messages import messages_below
from engine.sql.never_true import constant_conditions, is_true
from engine.sql.plan_text import LITERAL, lines_below, own_lines

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression, Rel

#: an aggregate that has a row also where its input has none
ALWAYS_ROWS: Final = re.compile(r"Aggregate: groupBy=\[\[(?:\]|ROLLUP|CUBE|GROUPING SETS)")
_CONDITIONED: Final = re.compile(r"Filter: |TableScan: |\w+ Join:")
_NOTHING: Final = re.compile(r"EmptyRelation: rows=0|(?:\[|: |, | AND )Boolean\((?:NULL|false)\)(?: AND |, |\]|$)")
_LIST: Final = re.compile(r" IN \(\[")
_CONSTANT: Final = re.compile(r"CAST\(# AS (?:#|\w+(?:\([^()]*\))?)\)|\(- #\)|# [-+*] #")
_VALUE_BEGINS: Final = re.compile(r" AND | OR |\b(?:NOT|WHEN|THEN|ELSE|FILTER) |: |, |\[| (?:[<>=!]=?|<>) ")
_PLAIN_NOT: Final = re.compile(r"\bNOT (?:IN|LIKE|ILIKE|BETWEEN|NULL)\b")
_NESTED: Final = re.compile(r"\b(?:OR|NOT|CASE)\b|\w\(")
_ONLY_LITERALS: Final = re.compile(r"#(?:, #)*\]\)")


def check_conditions(bound: str, planned: str) -> None:
    """Raise NotYetSupportedError for conditions that may not mean in the last plan what they mean in the bound one."""
    _check_lists(bound)
    if _has_condition_above_rows(bound) and _has_nothing_below_rows(planned):
        raise _moved()


def check_moved_constants(bound: str, root: Rel, functions: dict[int, str]) -> None:
    """Raise NotYetSupportedError for a constant condition that the plan has below an aggregate of all rows."""
    if not _has_condition_above_rows(bound):
        return
    if not all(is_true(condition, functions) for condition in _constants_below_rows(root, functions)):
        raise _moved()


def _moved() -> NotYetSupportedError:
    return NotYetSupportedError("sql: a condition above an aggregate that looks at no column of it (join with it)")


def _check_lists(bound: str) -> None:
    lines = [_with_signs(line.strip()) for line in bound.split("\n")]
    tests = [test for line in lines if _LIST.search(line) for test in _tests(line, "\n".join(lines))]
    if any(one.is_merged_wrongly_with(other) for one, other in combinations(tests, 2)):
        raise NotYetSupportedError("sql: two IN (...) of the same value that the planner would merge; write OR and =")


class _Test(NamedTuple):
    """A list of IN, and the value before it."""

    #: of a table, "" for what is computed, None for a name that the query gives
    column: str | None
    is_negated: bool
    may_have_null: bool
    line: str
    start: int
    end: int

    def is_merged_wrongly_with(self, other: _Test) -> bool:
        """Return whether both may become one that has another answer, this one being before the other."""
        if self.column is not None and other.column is not None and self.column != other.column:
            return False
        has_null = self.may_have_null or other.may_have_null
        if self.line is not other.line:
            is_same_kind = self.is_negated and other.is_negated
            return has_null and not is_same_kind
        link = _link(self.line[self.end : other.start])
        plain = _PLAIN_NOT.sub("", self.line)
        if not link:
            return False
        if not re.search(r"\bNOT\b", plain):
            wanted = "AND" if self.is_negated else "OR"
            if self.is_negated == other.is_negated and link == wanted:
                return False
        is_conjunction = self.line.startswith(("Filter: ", "Inner Join: ")) and not _NESTED.search(plain)
        return has_null or not is_conjunction


def _link(between: str) -> str:
    """Return what connects two conditions with this between them: OR, AND, or "" for parts of a list or a CASE."""
    depth, lowest = 0, 0
    words: set[str] = set()
    for word in re.findall(r"[(),]|\w+", between):
        depth += (word == "(") - (word == ")")
        if depth < lowest:
            lowest, words = depth, set()
        if depth == lowest:
            words.add(word)
    if words & {",", "WHEN", "THEN", "ELSE"}:
        return ""
    return "OR" if "OR" in words else "AND"


def _tests(line: str, signed: str) -> Iterator[_Test]:
    for found in _LIST.finditer(line):
        before, is_negated = line[: found.start()], line[: found.start()].endswith(" NOT")
        value = _VALUE_BEGINS.split(before.removesuffix(" NOT"))[-1]
        while value.count("(") > value.count(")"):
            value = value.partition("(")[2]
        if value == "#":
            continue
        column = _source(value.rpartition(".")[2], signed) if re.fullmatch(r"[\w.]+", value) else ""
        end = line.index("])", found.end())
        has_null = not _ONLY_LITERALS.match(line, found.end())
        yield _Test(column, is_negated, has_null, line, found.start(), end)


def _source(name: str, signed: str) -> str | None:
    """Return the column of a table that a name stands for, "" for what is computed, None where it may be several."""
    if "\nUnion\n" in signed:
        # its columns have other names in each of its inputs
        return None
    seen = {name}
    while given := set(re.findall(rf"(\S+) AS \"?{name}(?![\w])", signed)):
        (source, *others) = given
        if others or source == "#":
            return None
        if not re.fullmatch(r"\w+\.\w+", source) or re.search(
            rf"(?:[-+*/%|<>=]|\b(?:NOT|AND|OR)) {re.escape(source)} AS \"?{name}\b", signed
        ):
            return ""
        name = source.rpartition(".")[2]
        if name in seen:
            return None
        seen.add(name)
    return name


def _with_signs(line: str) -> str:
    """Return a line with a # for each constant."""
    line = LITERAL.sub("#", line)
    while (shorter := _CONSTANT.sub("#", line)) != line:
        line = shorter
    return line


def _has_condition_above_rows(bound: str) -> bool:
    lines = bound.split("\n")
    return any(
        ALWAYS_ROWS.match(lines[below].strip())
        for at, line in enumerate(lines)
        if _CONDITIONED.match(line.strip())
        for below in own_lines(lines, *lines_below(lines, at))
    )


def _constants_below_rows(message: Any, functions: dict[int, str], is_below: bool = False) -> Iterator[Expression]:
    """Yield the conditions without columns that are below an aggregate which always has a row."""
    name = message.DESCRIPTOR.name
    if is_below:
        yield from constant_conditions(message, functions)
    if name == "AggregateRel":
        is_below = is_below or not all(grouping.expression_references for grouping in message.groupings)
    for child in messages_below(message):
        yield from _constants_below_rows(child, functions, is_below)


def _has_nothing_below_rows(planned: str) -> bool:
    lines = planned.split("\n")
    return any(
        _is_nothing(lines[below].strip())
        for at, line in enumerate(lines)
        if ALWAYS_ROWS.match(line.strip())
        for below in range(*lines_below(lines, at))
    )


def _is_nothing(line: str) -> bool:
    if not (line.startswith("EmptyRelation") or _CONDITIONED.match(line)):
        return False
    parts = re.split(r" AND |, |: |\[", line) if "(<subquery>)" in line else ()
    of_nothing_else = any("(<subquery>)" in part and not re.search(r"\w\.\w", LITERAL.sub("#", part)) for part in parts)
    return of_nothing_else or bool(_NOTHING.search(line))
