"""Names of operators that are not longer than a line has room for, and lines about their orders and functions.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.expressions.text import expression_text
from engine.graph.expression import AggregateCall
from engine.graph.operator_descriptor import PhysicalOperator, SortOperator, SortRunsOperator
from engine.graph.sort_key import SortKey

_TEXT_MAX = 60
#: functions of an aggregate that explain shows
_CALLS_MAX = 8


def short(text: str) -> str:
    """Return a text, or the begin of a long one."""
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 3]}..."


def order_details(operator: PhysicalOperator) -> list[str]:
    """Return the line about the order of a sort: where nulls stand among the values of each key."""
    if not isinstance(operator, SortOperator | SortRunsOperator) or not operator.keys:
        return []
    return [f"order {', '.join(map(_key_text, operator.keys))}"]


def _key_text(key: SortKey) -> str:
    return f"{key.column}{' descending' if key.descending else ''} nulls {'last' if key.nulls_last else 'first'}"


def calls_text(calls: Sequence[AggregateCall]) -> str:
    """Return the functions of an aggregate, and the columns that they become; of many the first ones."""
    shown = ", ".join(f"{call.name} = {short(_call_text(call))}" for call in calls[:_CALLS_MAX])
    return f"{shown} and {len(calls) - _CALLS_MAX} more" if len(calls) > _CALLS_MAX else shown


def _call_text(call: AggregateCall) -> str:
    if call.argument is None:
        return "count()"
    return f"{call.function}({expression_text(call.argument)})"
