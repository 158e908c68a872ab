"""IN and NOT IN: finds the joins of a plan that take a null on the right as "unknown".

    k NOT IN (SELECT k FROM u)          with a null in u: no row        anti(null_aware=True)
    NOT EXISTS (... u.k = t.k)          with a null in u: as without    anti()
    v = 1 OR k NOT IN (SELECT ...)      "mark" join: a column that is true, false, or null for unknown
    v = 1 OR EXISTS (...)               "mark" join: true or false

An anti join that is NOT IN says so in DataFusion's text of it, and Substrait drops that. So both trees are walked side
by side: the joins of the logical plan and those of the Substrait plan, in the same order. Where kinds or numbers do not
agree it is unknown which join is which, and the query is refused. Of a mark join DataFusion itself forgets what it was;
the plan before its rewriting has the words. Where a query has both, IN and EXISTS, in such places, or no walk tells
which join is which, marks in the text do (see ``marked_membership``).

Held by: tests/sql/test_null_logic.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from engine.sql.marked_membership import UnclearMembershipError
from engine.sql.messages import messages_below

if TYPE_CHECKING:
    from substrait.algebra_pb2 import JoinRel, Rel

_MARK: Final = "null_aware"
#: joins whose comparison became a condition of the right side alone, below the join
_NO_KEY: Final = re.compile(r"Join: *(?:Filter: .*)?(?:null_aware)?\s*$")
_OF_NO_COLUMN: Final = "sql: NOT IN of what reads no column (write NOT EXISTS)"
_MARK_JOIN: Final = "Mark Join"
_KINDS: Final = {
    "Inner": "inner",
    "Cross": "inner",
    "Left": "left",
    "Right": "right",
    "Full": "outer",
    "LeftSemi": "left_semi",
    "RightSemi": "right_semi",
    "LeftAnti": "left_anti",
    "RightAnti": "right_anti",
    "LeftMark": "left_mark",
    "RightMark": "right_mark",
}


def null_aware_joins(logical_plan: Any, root: Rel) -> frozenset[int]:
    """Return the numbers, in the order of ``joins_of``, of the joins that are NOT IN.

    Raises: UnclearMembershipError where the two plans do not have the same joins and one of them is NOT IN.
    """
    texts = list(_join_texts(logical_plan))
    marked = frozenset(number for number, text in enumerate(texts) if text.rstrip().endswith(_MARK))
    if not marked:
        return marked
    if any(_NO_KEY.search(texts[number]) for number in marked):
        raise UnclearMembershipError(_OF_NO_COLUMN)
    wanted = [_KINDS.get(text.split(" Join", 1)[0], "") for text in texts]
    found = [_kind(join) for join in joins_of(root)]
    if wanted != found:
        raise UnclearMembershipError("NOT IN in this query; write NOT EXISTS (SELECT ... WHERE inner.key = outer.key)")
    return marked


def marks_are_null_aware(bound_plan: Any, shown: str, root: Rel) -> bool:
    """Return whether the mark joins of a query are IN, from the plan as it was before any rewriting.

    shown: the text of the plan after it.

    Raises: UnclearMembershipError where some may be IN and others EXISTS, or one is IN of what reads no column.
    """
    if _MARK_JOIN not in shown or not any(_kind(join).endswith("_mark") for join in joins_of(root)):
        return False
    text = bound_plan.display_indent()
    is_in = " IN (<subquery>)" in text
    if is_in and re.search(r"(EXISTS|ANY|ALL) \(<subquery>\)", text):
        raise UnclearMembershipError("a SQL query with both IN and EXISTS below OR; write one of them as a join")
    if is_in and any(_MARK_JOIN in line and _NO_KEY.search(line) for line in shown.split("\n")):
        raise UnclearMembershipError(_OF_NO_COLUMN)
    return is_in


def joins_of(relation: Any) -> Iterator[JoinRel]:
    """Yield the joins of a message and of what is below it, each before its inputs, left before right."""
    stack = [relation]
    while stack:
        message = stack.pop()
        if message.DESCRIPTOR.name == "JoinRel":
            yield message
        stack.extend(reversed(messages_below(message)))


def _kind(join: JoinRel) -> str:
    return str(join.JoinType.Name(join.type)).removeprefix("JOIN_TYPE_").lower()


def _join_texts(plan: Any) -> Iterator[str]:
    text = plan.display()
    if " Join:" in text.split("\n", 1)[0]:
        yield text
    for child in plan.inputs():
        yield from _join_texts(child)
