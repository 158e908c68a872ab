"""Computed keys: keys of groups that follow from other keys are computed of the groups, not of the rows.

    groups by ip, ip - 1, ip - 2 of rows   ->   ip, ip - 1, ip - 2 of groups by ip

A key that is computed of other keys alone, and constants, divide no group. Not so of floating-point keys: 0.0 and -0.0
are one group, and what is computed of them may be two; nor what is another value each time. One key stays, since
without keys there is a group of no rows.

Source: functional dependencies; Simmen, Shekita and Malkemus, "Fundamental Techniques for Order Optimization" (1996).
Held by: tests/optimizer/test_computed_keys.py
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import ColumnRef, Expression, NamedExpression, columns_of
from engine.graph.function_table import is_deterministic
from engine.graph.plan import Aggregate, Filter, PlanNode, Project
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.expression_rewriting import mapping_of, substitute
from engine.optimizer.logical_plan import LogicalPlan

_FLOATS = ("halffloat", "float", "double")


def apply(plan: LogicalPlan) -> None:
    """Take computed keys out of all aggregates."""
    for listed in plan.order():
        node = plan.node(listed.id)
        if isinstance(node.operator, Aggregate) and not node.operator.of_states:
            computed = _computed_keys(plan, node.operator.keys, plan.node(node.inputs[0]))
            if 0 < len(computed) < len(node.operator.keys):
                _compute_above(plan, node, node.operator, computed)


def _computed_keys(plan: LogicalPlan, keys: tuple[str, ...], below: PlanNode) -> dict[str, Expression]:
    """Return the keys that follow from others, in terms of these."""
    behind: dict[str, Expression] = {key: ColumnRef(key) for key in keys}
    types = {key: below.schema.column(key).type_text for key in keys}
    while isinstance(below.operator, Filter | Project):
        if isinstance(below.operator, Project):
            made = mapping_of(below.operator.expressions)
            behind = {key: substitute(expression, made) for key, expression in behind.items()}
        below = plan.node(below.inputs[0])
    #: keys by the columns that they are
    plain: dict[str, Expression] = {}
    for key, expression in behind.items():
        if isinstance(expression, ColumnRef) and types[key] not in _FLOATS:
            plain[expression.name] = ColumnRef(key)
    return {
        key: substitute(behind[key], plain)
        for key in keys
        if not isinstance(behind[key], ColumnRef)
        and is_deterministic(behind[key])
        and plain.keys() >= set(columns_of(behind[key]))
    }


def _compute_above(plan: LogicalPlan, node: PlanNode, aggregate: Aggregate, computed: dict[str, Expression]) -> None:
    groups = plan.insert(
        msgspec.structs.replace(
            aggregate,
            keys=tuple(key for key in aggregate.keys if key not in computed),
            state_schema=_without(aggregate.state_schema, computed),
            argument_schema=_without(aggregate.argument_schema, computed),
        ),
        node.inputs,
        _without(node.schema, computed),
        node,
    )
    plan.replace(groups, name=node.name)
    expressions = tuple(NamedExpression(name, computed.get(name, ColumnRef(name))) for name in node.schema.names)
    plan.replace(node, operator=Project(expressions), inputs=(groups.id,), name="")


def _without(schema: PlanSchema, names: dict[str, Expression]) -> PlanSchema:
    return PlanSchema(tuple(column for column in schema.columns if column.name not in names))
