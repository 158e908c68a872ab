"""Join keys are sampled better than other columns: heavy keys decide how a join is run.

    with_key_samples(plan) -> Plan with statistics of the columns that joins compare

A key column is followed to the sources it comes from, through whatever keeps values. Sources that sampled all of their
parts when they were read need no more, nor does a record data set whose manifest counted its keys; Parquet does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from engine.connectors.parquet_keys import key_statistics
from engine.graph.expression import Cast, ColumnRef
from engine.graph.plan import (
    Filter,
    Join,
    JoinType,
    Limit,
    Partition,
    Plan,
    PlanNode,
    Project,
    PythonFunction,
    Sort,
    Source,
    Union,
)
from engine.graph.source_spec import ColumnStatistics, ParquetSource

#: below this many rows the first sample has seen enough
ROWS_MIN = 8192


def with_key_samples(plan: Plan) -> Plan:
    """Return the plan with better statistics of its join keys."""
    wanted: dict[int, set[str]] = {}
    for node in plan.nodes:
        if isinstance(node.operator, Join):
            for source, names in zip(node.inputs, (node.operator.left_keys, node.operator.right_keys), strict=True):
                for name in names:
                    for found, column in _origins(plan.nodes, source, name):
                        wanted.setdefault(found, set()).add(column)
    if not wanted:
        return plan
    nodes = tuple(_sampled(node, wanted.get(node.id, set())) for node in plan.nodes)
    return msgspec.structs.replace(plan, nodes=nodes)


def _sampled(node: PlanNode, names: set[str]) -> PlanNode:
    source = node.operator
    if not isinstance(source, Source) or not isinstance(source.spec, ParquetSource):
        return node
    rows = source.statistics.row_count or 0.0
    columns = dict(source.statistics.columns)
    for name in sorted(names):
        known = columns.get(name, ColumnStatistics())
        better = None
        if rows > ROWS_MIN and known.heavy_origin != "manifest":
            better = key_statistics(source.spec, name, rows)
        if better is not None:
            columns[name] = msgspec.structs.replace(
                known, distinct_count=better.distinct_count, heavy_keys=better.heavy_keys
            )
    statistics = msgspec.structs.replace(source.statistics, columns=columns)
    return msgspec.structs.replace(node, operator=msgspec.structs.replace(source, statistics=statistics))


def _origins(nodes: Sequence[PlanNode], start: int, column: str) -> Iterator[tuple[int, str]]:
    """Yield (source node, column) from which a column's values come, as they are or cast."""
    stack = [(start, column)]
    while stack:
        node_id, name = stack.pop()
        node = nodes[node_id]
        match node.operator:
            case Source():
                yield node_id, name
            case Project(expressions=expressions):
                expression = next((each.expression for each in expressions if each.name == name), None)
                if isinstance(expression, Cast):
                    expression = expression.operand
                if isinstance(expression, ColumnRef):
                    stack.append((node.inputs[0], expression.name))
            case Filter() | Sort() | Limit() | Partition() | PythonFunction(kind="filter"):
                stack.append((node.inputs[0], name))
            case Union():
                stack += [(source, name) for source in node.inputs]
            case Join(how=how):
                in_left = name in nodes[node.inputs[0]].schema.names
                if in_left or how not in (JoinType.SEMI, JoinType.ANTI):
                    stack.append((node.inputs[0 if in_left else 1], name))
