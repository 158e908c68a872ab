"""Whole groups: aggregates above joins whose groups are those of a first phase below, which need no second table.

    first phase by customer ──states──► join customers, each once ──► groups by customer and name

A first phase before a join gives each of its groups out once, unless it has to do so before it has seen all rows. The
join leaves at most one row of each where no two of its build rows share a key. Then no two states meet above, if the
keys above say which group of the first phase a row is of: each of its keys is one of them, or equals one of them in a
join. Build sides are mostly tables by their primary key, but that is known when they are there: so the plan only
says what would follow (``HashAggregateOperator.takes_whole_groups``), the first phase and the joins say how it is
(``Output.say_whole_groups``), and the aggregate believes it only of rows that come from one subtask of one process.

An aggregate of whole groups gives out results while it takes states, so that what is below may wait for what is above.
Where that would wait for what is below, states are merged.

Source: invariant grouping, Chaudhuri and Shim, "Including group-by in query optimization" (1994).

Held by: tests/optimizer/test_whole_groups.py
Held by: tests/integration/test_whole_groups.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.graph.expression import ColumnRef
from engine.graph.operator_descriptor import FilterOperator, HashAggregateOperator, HashJoinOperator, ProjectOperator
from engine.graph.ship_strategy import ShipStrategy
from engine.optimizer.exchange_planning import waits_for_itself
from engine.optimizer.physical_plan import PhysicalNode
from engine.optimizer.runtime_filter_planning import probe_channels, probe_column


def with_whole_groups(nodes: Sequence[PhysicalNode]) -> list[PhysicalNode]:
    """Return the nodes with the aggregates marked whose states may be whole groups."""
    planned = list(nodes)
    for node in nodes:
        operator = node.descriptor.operator
        if isinstance(operator, HashAggregateOperator) and _may_get_whole_groups(nodes, node, operator):
            planned[node.id] = node.with_operator(msgspec.structs.replace(operator, takes_whole_groups=True))
            if waits_for_itself(planned):
                planned[node.id] = node
    return planned


def _may_get_whole_groups(nodes: Sequence[PhysicalNode], node: PhysicalNode, operator: HashAggregateOperator) -> bool:
    """Return whether the keys of a final phase say which group of a first phase a row is of, whatever is between."""
    #: columns that the keys determine
    known, channels = set(operator.keys) if operator.phase == "final" else set(), list(node.inputs)
    while known and len(channels) == 1 and channels[0].ship_strategy is ShipStrategy.FORWARD and node.parallelism == 1:
        node = nodes[channels[0].source]
        channels = list(node.inputs)
        match node.descriptor.operator:
            case HashAggregateOperator(phase="partial" | "combine", keys=keys):
                return len(keys) > 0 and known.issuperset(keys)
            case ProjectOperator(expressions=expressions):
                known = {
                    each.expression.name
                    for each in expressions
                    if each.name in known and isinstance(each.expression, ColumnRef)
                }
            case HashJoinOperator() as join:
                known = {column for name in known if (column := probe_column(join, node, name)) is not None}
                channels = probe_channels(join, node)
            case FilterOperator():
                pass
            case _:
                return False
    return False
