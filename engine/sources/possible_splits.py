"""Splits that have no row for the filters above them: row groups of Parquet, files in folders named after values.

with_possible_splits(plan, filters) -> Plan whose sources have the other splits, and statistics of those
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from engine.formats.registry import format_of
from engine.graph.expression import Expression
from engine.graph.plan import Plan, PlanNode, Source
from engine.sources.source_filters import is_prunable


def with_possible_splits(plan: Plan, filters: Mapping[int, Expression]) -> Plan:
    """Return the plan without the splits that have no row which its filters would leave.

    filters: by the ids of sources, those that alone read them.
    """
    nodes = (_with_possible(node, filters.get(node.id)) if is_prunable(node) else node for node in plan.nodes)
    return msgspec.structs.replace(plan, nodes=tuple(nodes))


def _with_possible(node: PlanNode, predicate: Expression | None) -> PlanNode:
    source = node.operator
    assert isinstance(source, Source)
    found = format_of(source.spec).possible(source, node.schema, predicate)
    return node if found is source else msgspec.structs.replace(node, operator=found)
