"""Shared joins: an inner join of scans that is asked for few of its rows by each of its uses is done by each of them.

    one join     done once for all rows, which are stored, then read by each use
    own joins    done by each use, in an order of which what asks for few rows is a part

That is SQL's query with the same tables in it and in its subquery: offers of some parts beside the least of their
costs. Each use must be an inner or semi join that leaves at most ASKED of the rows, and reading the sources once for
each of them must cost less than storing. All sources can be read again (``shared_scans``).

Held by: tests/optimizer/test_shared_joins.py
"""

from __future__ import annotations

from typing import Final

from engine.graph.plan import Filter, Join, PlanNode, Project, Source
from engine.graph.said_operators import JoinHint, JoinType
from engine.optimizer.estimates import estimate_below
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.rules.projection_pruning import used_columns
from engine.optimizer.rules.shared_scans import WRITE_COST, Use, may_be_read_again, read_again, redirect, uses_of
from engine.statistics.estimates import Estimates, row_width

#: share of the rows that each use keeps, at most
ASKED: Final = 0.1


def apply(plan: LogicalPlan) -> None:
    """Give every use of a shared join a join of its own where that costs less."""
    uses = uses_of(plan)
    for node in reversed(plan.order()):
        of_join = uses[node.id]
        if len(of_join) < 2 or not isinstance(node.operator, Join) or not _may_be_done_again(plan, node, uses):
            continue
        known: dict[int, Estimates] = {}
        if all(_asks_for_few(plan, node, use, uses, known) for use in of_join) and _pays(plan, node, of_join, known):
            for use in of_join[1:]:
                redirect(plan, use, _copy(plan, node))
            uses = uses_of(plan)


def _may_be_done_again(plan: LogicalPlan, node: PlanNode, uses: dict[int, list[Use]]) -> bool:
    """Whether there are but inner joins, filters and projections of scans below."""
    join = node.operator
    if isinstance(join, Source):
        return may_be_read_again(plan, node)
    if isinstance(join, Join):
        is_free = join.how is JoinType.INNER and join.hint is JoinHint.OPTIMIZER_CHOOSES
    else:
        is_free = isinstance(join, Filter | Project)
    if not is_free or node.name or node.parallelism is not None:
        return False
    below = [plan.node(source) for source in node.inputs]
    return all(len(uses[each.id]) == 1 and _may_be_done_again(plan, each, uses) for each in below)


def _asks_for_few(
    plan: LogicalPlan, node: PlanNode, use: Use, uses: dict[int, list[Use]], known: dict[int, Estimates]
) -> bool:
    """Whether a use, perhaps of some columns, is a join that leaves few of a node's rows."""
    reader, position = plan.node(use[0]), use[1]
    while isinstance(reader.operator, Project) and len(uses[reader.id]) == 1:
        reader, position = plan.node(uses[reader.id][0][0]), uses[reader.id][0][1]
    join = reader.operator
    if not isinstance(join, Join) or join.how not in (JoinType.INNER, JoinType.SEMI) or not join.left_keys:
        return False
    if join.how is JoinType.SEMI and position == 1:
        return False
    return estimate_below(plan, reader, known).rows <= ASKED * estimate_below(plan, node, known).rows


def _pays(plan: LogicalPlan, node: PlanNode, uses: list[Use], known: dict[int, Estimates]) -> bool:
    used = used_columns(plan)

    def size(each: PlanNode) -> float:
        estimates = estimate_below(plan, each, known)
        needed = each.schema.select(name for name in each.schema.names if name in used[each.id])
        return estimates.rows * row_width(needed, estimates.columns)

    read = 0.0
    below = [node]
    while below:
        each = below.pop()
        below += [plan.node(source) for source in each.inputs]
        read += size(each) if isinstance(each.operator, Source) else 0.0
    return read * len(uses) < read + size(node) * (WRITE_COST + len(uses))


def _copy(plan: LogicalPlan, node: PlanNode) -> PlanNode:
    """Copy the operators, down to the sources."""
    copied = read_again(plan, node)
    inputs = tuple(_copy(plan, plan.node(source)).id for source in node.inputs)
    return plan.replace(copied, inputs=inputs) if inputs else copied
