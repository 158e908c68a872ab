"""Conditions that the planner's rewriting moves to other answers: such a query is planned again without moving any.

    a constant condition above an aggregate that always has a row     moved below it, where it leaves the row
        SELECT * FROM (SELECT min(v) AS m FROM t) AS x WHERE length('a') = 2
        SELECT * FROM (SELECT count(*) AS n FROM t) AS x WHERE (SELECT max(w) FROM u) > 5
        SELECT 1 FROM (SELECT count(*) FROM t) AS x WHERE 1 = 2         and then left out with the aggregate

The bound plan, before any rewriting, says what was meant; the last one, what became of it.

Held by: tests/sql/test_lost_conditions.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from engine.errors import NotYetSupportedError
from engine.sql.messages import messages_below
from engine.sql.never_true import constant_conditions, is_true
from engine.sql.plan_text import LITERAL, lines_below, own_lines

if TYPE_CHECKING:
    from substrait.algebra_pb2 import Expression, Rel

#: aggregates that return a row for an empty input, too
ALWAYS_ROWS: Final = re.compile(r"Aggregate: groupBy=\[\[(?:\]|ROLLUP|CUBE|GROUPING SETS)")
_CONDITIONED: Final = re.compile(r"Filter: |TableScan: |\w+ Join:")
_NOTHING: Final = re.compile(r"EmptyRelation: rows=0|(?:\[|: |, | AND )Boolean\((?:NULL|false)\)(?: AND |, |\]|$)")


class MovedConditionError(NotYetSupportedError):
    """The planner moved a condition to where it means something else."""


def check_conditions(bound: str, planned: str) -> None:
    """Raise MovedConditionError for conditions that may not mean in the last plan what they mean in the bound one."""
    # an aggregate of which no column is used is left out, with the conditions that were moved below it
    if _has_condition_above_rows(bound) and (
        _has_nothing_below_rows(planned) or _aggregates_of_rows(planned) < _aggregates_of_rows(bound)
    ):
        raise _moved()


def check_moved_constants(bound: str, root: Rel, functions: dict[int, str]) -> None:
    """Raise MovedConditionError for a constant condition that the plan has below an aggregate of all rows."""
    if not _has_condition_above_rows(bound):
        return
    if not all(is_true(condition, functions) for condition in _constants_below_rows(root, functions)):
        raise _moved()


def _moved() -> MovedConditionError:
    return MovedConditionError("sql: a condition above an aggregate that looks at no column of it (join with it)")


def _aggregates_of_rows(plan: str) -> int:
    return sum(1 for line in plan.split("\n") if ALWAYS_ROWS.match(line.strip()))


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
