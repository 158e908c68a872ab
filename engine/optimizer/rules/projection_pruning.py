"""Projection pruning: nothing is read, kept or sent that no one uses.

    top down     which columns of each node its consumers use
    bottom up    sources read only those; projections compute only those; a join returns only those; before a join,
                 a sort and a union a projection drops what filters alone needed

A Python function and a sink use every column of their input. A node of which nobody uses a column (the input of
``count()``) keeps its narrowest one, because rows without columns have no place in a batch. Dropping an expression
that could raise is fine: the job fails less.
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import columns_of
from engine.graph.plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    Partition,
    PlanNode,
    Project,
    Sort,
    Source,
    Union,
)
from engine.graph.plan_schema import ColumnInfo, PlanSchema
from engine.graph.source_spec import SourceStatistics
from engine.optimizer.expression_rewriting import column_projection
from engine.optimizer.logical_plan import LogicalPlan


def apply(plan: LogicalPlan) -> None:
    """Prune the whole plan; a second call changes nothing."""
    used = used_columns(plan)
    for node in plan.order():
        _prune(plan, plan.node(node.id), used[node.id])


def used_columns(plan: LogicalPlan) -> dict[int, set[str]]:
    """Return for each node the columns that its consumers use, at least one."""
    order = plan.order()
    used: dict[int, set[str]] = {node.id: set() for node in order}
    for node in reversed(order):
        if node.id in plan.sinks:
            used[node.id] = set(node.schema.names)
        elif not used[node.id] and node.schema.columns:
            used[node.id] = {_narrowest(node.schema)}
        for input_index, source in enumerate(node.inputs):
            used[source] |= _columns_used(plan, node, input_index, used[node.id])
    return used


def _narrowest(schema: PlanSchema) -> str:
    def rank(column: ColumnInfo) -> tuple[bool, int]:
        return not column.width_is_exact, column.width_bytes

    return min(schema.columns, key=rank).name


def _columns_used(plan: LogicalPlan, node: PlanNode, input_index: int, used: set[str]) -> set[str]:
    """Return the columns of one input that a node needs so that its own ``used`` columns are right."""
    source_names = set(plan.node(node.inputs[input_index]).schema.names)
    match node.operator:
        case Project(expressions=expressions):
            return {name for named in expressions if named.name in used for name in columns_of(named.expression)}
        case Filter(predicate=predicate):
            return used | set(columns_of(predicate))
        case Sort(keys=keys):
            return used | {key.column for key in keys}
        case Partition(keys=keys):
            return used | set(keys)
        case Limit() | Union():
            return set(used)
        case Join() as join:
            left_names = plan.node(node.inputs[0]).schema.names
            return _columns_of_side(join, input_index, used, left_names) & source_names
        case Aggregate() as aggregate:
            arguments = (call.argument for call in aggregate.calls if call.argument is not None)
            return {name for argument in arguments for name in columns_of(argument)} | set(aggregate.keys)
        case _:
            return source_names


def _columns_of_side(join: Join, side: int, used: set[str], left_names: tuple[str, ...]) -> set[str]:
    """Return the names that a join needs of one side: keys, columns of its condition, columns it returns."""
    condition = set() if join.condition is None else set(columns_of(join.condition))
    if side == 0:
        return used | set(join.left_keys) | condition
    returned = set() if join.how in (JoinType.SEMI, JoinType.ANTI) else used
    # what the left has under the same name is the left's: a coalesced key, or a column that only a semi join may have
    return ((returned | condition) - set(left_names)) | set(join.right_keys)


def _prune(plan: LogicalPlan, node: PlanNode, used: set[str]) -> None:
    """Rebuild one node whose inputs are pruned already."""
    kept = node.schema.select(name for name in node.schema.names if name in used)
    match node.operator:
        case Source() as source:
            if kept != node.schema:
                plan.replace(node, operator=_prune_source(source, node.schema, kept), schema=kept)
        case Project(expressions=expressions):
            if kept != node.schema:
                wanted = tuple(named for named in expressions if named.name in used)
                plan.replace(node, operator=Project(wanted), schema=kept)
        case Filter() | Limit():
            _follow_input(plan, node)
        case Sort(keys=keys):
            _narrow_input(plan, node, 0, used | {key.column for key in keys})
            _follow_input(plan, plan.node(node.id))
        case Partition(keys=keys):
            _narrow_input(plan, node, 0, used | set(keys))
            _follow_input(plan, plan.node(node.id))
        case Union():
            for input_index in range(len(node.inputs)):
                _narrow_input(plan, plan.node(node.id), input_index, used)
            _follow_input(plan, plan.node(node.id))
        case Join() as join:
            left_names = plan.node(node.inputs[0]).schema.names
            for side in (0, 1):
                _narrow_input(plan, plan.node(node.id), side, _columns_of_side(join, side, used, left_names))
            if kept != node.schema:
                plan.replace(plan.node(node.id), schema=kept)
        case _:
            pass


def _follow_input(plan: LogicalPlan, node: PlanNode) -> None:
    schema = plan.node(node.inputs[0]).schema
    if schema != node.schema:
        plan.replace(node, schema=schema)


def _narrow_input(plan: LogicalPlan, node: PlanNode, input_index: int, used: set[str]) -> None:
    """Put a projection before one input when it still carries columns that are not used."""
    source = plan.node(node.inputs[input_index])
    kept = source.schema.select(name for name in source.schema.names if name in used)
    if not kept.columns:
        kept = source.schema.select([_narrowest(source.schema)])
    if kept == source.schema:
        return
    added = plan.insert(Project(column_projection(kept.names)), (source.id,), kept, source)
    inputs = tuple(added.id if index == input_index else old for index, old in enumerate(node.inputs))
    plan.replace(node, inputs=inputs)


def _prune_source(source: Source, schema: PlanSchema, kept: PlanSchema) -> Source:
    """Read fewer columns; the size in the statistics shrinks with the width of what is read."""
    statistics = source.statistics
    size_bytes = statistics.size_bytes
    if size_bytes is not None:
        size_bytes *= _width(kept, statistics) / max(_width(schema, statistics), 1.0)
    pruned = msgspec.structs.replace(
        statistics,
        size_bytes=size_bytes,
        origin=f"{statistics.origin}, {len(kept.columns)} of {len(schema.columns)} columns",
        columns={name: known for name, known in statistics.columns.items() if name in kept.names},
    )
    spec = msgspec.structs.replace(source.spec, columns=kept.names)
    return msgspec.structs.replace(source, spec=spec, statistics=pruned)


def _width(schema: PlanSchema, statistics: SourceStatistics) -> float:
    total = 0.0
    for column in schema.columns:
        known = statistics.columns.get(column.name)
        measured = known.average_width_bytes if known is not None else None
        total += column.width_bytes if measured is None else measured
    return total
