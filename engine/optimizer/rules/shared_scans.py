"""Shared scans: a scan whose uses meet again in a join is read by each of them, unless its rows cost less to keep.

    one scan     read once, its rows stored (uses that meet again wait for each other), then read by each use
    own scans    read by each use, with the columns and filters of its own

A scan is a source of columns that can be read again, with filters and projections over it. Costs are bytes: those of
the columns that are decoded, and those of the rows that would be stored, written once and read by each use. A filter
that keeps little makes storing cheap. Text is parsed at several times the cost of its bytes, so it is read once, and so
is a source with a rate, which would be asked for twice as much. Uses that do not meet share one scan without storing.

Held by: tests/optimizer/test_shared_scans.py
"""

from __future__ import annotations

import msgspec

from engine.formats.registry import format_of
from engine.graph.plan import Filter, Join, PlanNode, Project, Source
from engine.optimizer.estimates import estimate_below
from engine.optimizer.input_changes import narrowest
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.registry import entry_of
from engine.optimizer.rules.projection_pruning import used_columns
from engine.statistics.estimates import row_width

#: cost of writing a stored byte, in bytes that are decoded; measured, as all of these, and rounded
WRITE_COST = 1.6

#: id of the consuming node, and position among its inputs
Use = tuple[int, int]


def apply(plan: LogicalPlan) -> None:
    """Give every use of a shared scan a scan of its own where that costs less."""
    uses = uses_of(plan)
    for scan in reversed(plan.order()):
        of_scan = uses[scan.id]
        if len(of_scan) < 2 or not may_be_read_again(plan, scan) or not _meet_again(plan, uses, of_scan):
            continue
        if _own_costs(plan, scan, of_scan) < _shared_cost(plan, scan, len(of_scan)):
            for use in of_scan[1:]:
                redirect(plan, use, read_again(plan, scan))
            uses = uses_of(plan)


def may_be_read_again(plan: LogicalPlan, node: PlanNode) -> bool:
    """Whether a node is a scan of columns that can be read twice."""
    while isinstance(node.operator, Filter | Project):
        node = plan.node(node.inputs[0])
    source = node.operator
    if not isinstance(source, Source) or source.rate_limit is not None:
        return False
    return format_of(source.spec).is_columnar


def uses_of(plan: LogicalPlan) -> dict[int, list[Use]]:
    """Return the nodes that read each node, and as which of their inputs."""
    found: dict[int, list[Use]] = {}
    for node in plan.order():
        found.setdefault(node.id, [])
        for position, source in enumerate(node.inputs):
            found[source].append((node.id, position))
    return found


def _meet_again(plan: LogicalPlan, of_all: dict[int, list[Use]], uses: list[Use]) -> bool:
    """Whether two uses come to different inputs of one join."""
    reached: dict[int, set[Use]] = {}

    def joins_from(use: Use) -> set[Use]:
        is_join = isinstance(plan.node(use[0]).operator, Join)
        return reached[use[0]] | ({use} if is_join else set())

    for node in reversed(plan.order()):
        reached[node.id] = set().union(*map(joins_from, of_all[node.id]))
    branches = [joins_from(use) for use in uses]
    return any(
        (join, 1 - side) in second
        for index, first in enumerate(branches)
        for second in branches[index + 1 :]
        for join, side in first
    )


def _own_costs(plan: LogicalPlan, scan: PlanNode, uses: list[Use]) -> float:
    """Return the costs if each use reads the columns it needs."""
    used = used_columns(plan)
    total = 0.0
    for consumer_id, position in uses:
        consumer = plan.node(consumer_id)
        wanted = entry_of(consumer.operator).columns_used(
            plan, consumer, consumer.operator, position, used[consumer_id]
        )
        total += _scan_bytes(plan, scan, wanted)
    return total


def _shared_cost(plan: LogicalPlan, scan: PlanNode, use_count: int) -> float:
    """Return the cost of reading the columns of all uses, storing the rows, and reading them for each use."""
    wanted = used_columns(plan)[scan.id]
    stored = estimate_below(plan, scan, {})
    width = row_width(scan.schema.select(name for name in scan.schema.names if name in wanted), stored.columns)
    return _scan_bytes(plan, scan, wanted) + stored.rows * width * (WRITE_COST + use_count)


def _scan_bytes(plan: LogicalPlan, node: PlanNode, wanted: set[str]) -> float:
    """Return the bytes of a source's columns that a scan decodes so that its own wanted columns are right."""
    while node.inputs:
        wanted = entry_of(node.operator).columns_used(plan, node, node.operator, 0, wanted)
        node = plan.node(node.inputs[0])
    decoded = estimate_below(plan, node, {})
    names = wanted or {narrowest(node.schema)}
    read = node.schema.select(name for name in node.schema.names if name in names)
    return decoded.rows * row_width(read, decoded.columns)


def read_again(plan: LogicalPlan, node: PlanNode) -> PlanNode:
    """Copy an operator over its input; a source says why in the origin of its numbers."""
    operator = node.operator
    if isinstance(operator, Source):
        statistics = operator.statistics
        again = msgspec.structs.replace(statistics, origin=f"{statistics.origin}, read again: costs less than storing")
        operator = msgspec.structs.replace(operator, statistics=again)
    added = plan.insert(operator, node.inputs, node.schema, node)
    return plan.replace(added, name=node.name)


def redirect(plan: LogicalPlan, use: Use, source: PlanNode) -> None:
    """Make one use of a node read another one."""
    consumer = plan.node(use[0])
    inputs = tuple(source.id if index == use[1] else old for index, old in enumerate(consumer.inputs))
    plan.replace(consumer, inputs=inputs)
