"""Changes between a node of a LogicalPlan and one of its inputs, which rules of several operators make.

    filter_input    a filter before an input
    narrow_input    a projection before an input that still carries unused columns
    follow_input    the schema of the input becomes that of the node

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from engine.graph.expression import Expression, conjunction
from engine.graph.plan import Filter, PlanNode, Project
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.optimizer.expression_rewriting import column_projection
from engine.optimizer.logical_plan import LogicalPlan


def filter_input(plan: LogicalPlan, node: PlanNode, input_index: int, parts: list[Expression]) -> None:
    """Put a filter between a node and one of its inputs."""
    if not parts:
        return
    source = plan.node(node.inputs[input_index])
    added = plan.insert(Filter(conjunction(parts)), (source.id,), source.schema, source)
    current = plan.node(node.id)
    inputs = tuple(added.id if index == input_index else old for index, old in enumerate(current.inputs))
    plan.replace(current, inputs=inputs)


def narrow_input(plan: LogicalPlan, node: PlanNode, input_index: int, used: set[str]) -> None:
    """Put a projection before one input when it still carries columns that are not used."""
    source = plan.node(node.inputs[input_index])
    kept = source.schema.select(name for name in source.schema.names if name in used)
    if not kept.columns:
        kept = source.schema.select([narrowest(source.schema)])
    if kept == source.schema:
        return
    added = plan.insert(Project(column_projection(kept.names)), (source.id,), kept, source)
    inputs = tuple(added.id if index == input_index else old for index, old in enumerate(node.inputs))
    plan.replace(node, inputs=inputs)


def follow_input(plan: LogicalPlan, node: PlanNode) -> None:
    """Give a node the schema of its input."""
    schema = plan.node(node.inputs[0]).schema
    if schema != node.schema:
        plan.replace(node, schema=schema)


def narrowest(schema: PlanSchema) -> str:
    """Return the column that costs least to carry: rows without columns have no place in a batch."""

    def rank(column: ColumnInfo) -> tuple[bool, int]:
        return not column.width_is_exact, column.width_bytes

    return min(schema.columns, key=rank).name
