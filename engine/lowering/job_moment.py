"""``now()``: the moment at which a job is submitted, one for all of its rows, subtasks and restarts.

    at_one_moment(plan)      the plan with the moment of its making, a constant, wherever an expression asks for it
    asks_for_it(operators)   whether rows may differ from job to job for that reason

A data set holds the question, each job of it another answer. Jobs are made, stored and recovered with the constant.

Held by: tests/integration/test_job_moment.py
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from engine.expressions.literals import make_literal
from engine.graph.expression import JOB_MOMENT, Call, Literal
from engine.graph.plan import Operator, Plan, encode_plan

_encoder: Final = msgspec.msgpack.Encoder()
#: bytes that a plan has in which it is asked for, and few others
_SIGN: Final = _encoder.encode(JOB_MOMENT)


def at_one_moment(plan: Plan) -> Plan:
    """Return a plan whose expressions have this moment in place of the question for it."""
    if _SIGN not in encode_plan(plan):
        return plan
    moment = make_literal(datetime.datetime.now(datetime.UTC))
    return Plan(tuple(_answered(node, moment) for node in plan.nodes), plan.sinks, plan.name, plan.stores)


def asks_for_it(operators: Iterable[Operator]) -> bool:
    """Whether an operator has an expression with the moment of the job."""
    return any(_SIGN in _encoder.encode(operator) for operator in operators)


def _answered(value: Any, moment: Literal) -> Any:
    """Return a value with the moment wherever it is asked for; what does not ask is the very value."""
    if isinstance(value, Call) and value.function == JOB_MOMENT:
        return moment
    if isinstance(value, tuple):
        parts = tuple(_answered(part, moment) for part in value)
        return parts if any(one is not other for one, other in zip(parts, value, strict=True)) else value
    if not isinstance(value, msgspec.Struct):
        return value
    found = {name: _answered(getattr(value, name), moment) for name in value.__struct_fields__}
    changed = {name: part for name, part in found.items() if part is not getattr(value, name)}
    return msgspec.structs.replace(value, **changed) if changed else value
