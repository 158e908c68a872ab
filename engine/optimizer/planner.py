"""The planner's first half: rewrite rules over the logical plan, in a fixed order, until nothing changes.

    Plan ─► settle_partitions ─► shared_totals ─► shared_groups ─► disjunctions ─► [[constant_filters, join_conditions,
            combine_filters, filter_pushdown, limit_pushdown, sort_elimination, combine_projects, shared_scans]*,
            outer_joins, equal_keys, shared_joins, semi_join_pullup, semi_join_pushdown, join_order,
            aggregate_reduction]* ─► coarser_groups ─► early_columns ─► aggregate_pushdown ─► projection_pruning ─►
            combine_projects ─► window_top ─► Plan

The list is the order. Each round moves filters and limits by one node, so rounds are bounded by the depth of the
plan; ROUNDS_MAX only guards against two rules that undo each other. Joins are ordered when every filter stands where
it stays, since filters say how many rows a table has. Pruning runs once, at the end.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.graph.plan import Plan
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.partition_planning import settle_partitions
from engine.optimizer.rules import (
    aggregate_pushdown,
    aggregate_reduction,
    coarser_groups,
    combine_filters,
    combine_projects,
    constant_filters,
    disjunctions,
    early_columns,
    equal_keys,
    filter_pushdown,
    join_conditions,
    join_order,
    limit_pushdown,
    outer_joins,
    projection_pruning,
    semi_join_pullup,
    semi_join_pushdown,
    shared_groups,
    shared_joins,
    shared_scans,
    shared_totals,
    sort_elimination,
    window_top,
)

Rule = Callable[[LogicalPlan], None]

#: applied once before all others
FIRST_RULES: tuple[Rule, ...] = (shared_totals.apply, shared_groups.apply, disjunctions.apply)

#: applied in this order, again and again until none changes the plan
REPEATED_RULES: tuple[Rule, ...] = (
    constant_filters.apply,
    join_conditions.apply,
    combine_filters.apply,
    filter_pushdown.apply,
    limit_pushdown.apply,
    sort_elimination.apply,
    combine_projects.apply,
    shared_scans.apply,
)

#: applied when those change nothing, since filters say how many rows there are
COST_RULES: tuple[Rule, ...] = (
    outer_joins.apply,
    equal_keys.apply,
    shared_joins.apply,
    semi_join_pullup.apply,
    semi_join_pushdown.apply,
    join_order.apply,
    aggregate_reduction.apply,
)

#: those that bring filters nearer to the sources
FILTER_RULES: tuple[Rule, ...] = (
    constant_filters.apply,
    join_conditions.apply,
    combine_filters.apply,
    filter_pushdown.apply,
)

#: applied once afterwards
FINAL_RULES: tuple[Rule, ...] = (
    early_columns.apply,
    aggregate_pushdown.apply,
    projection_pruning.apply,
    combine_projects.apply,
    window_top.apply,
)

ROUNDS_MAX = 200


def rewrite(plan: Plan) -> Plan:
    """Return an equivalent plan that does less work."""
    logical = LogicalPlan(plan)
    settle_partitions(logical)
    for rule in FIRST_RULES:
        rule(logical)
    for _ in range(ROUNDS_MAX):
        _repeat(REPEATED_RULES, logical)
        for rule in COST_RULES:
            rule(logical)
        if not logical.changed:
            break
    logical.changed = False
    coarser_groups.apply(logical)
    if logical.changed:
        # Groups that read finer ones read a scan no more: those that still do may have one of their own now.
        _repeat(REPEATED_RULES, logical)
    for rule in FINAL_RULES:
        rule(logical)
    return logical.to_plan()


def push_filters(logical: LogicalPlan) -> None:
    """Bring filters as near to the sources as they come, and change nothing else."""
    for rule in FIRST_RULES:
        rule(logical)
    _repeat((*FILTER_RULES, outer_joins.apply, equal_keys.apply), logical)


def _repeat(rules: Sequence[Rule], logical: LogicalPlan) -> None:
    for _ in range(ROUNDS_MAX):
        logical.changed = False
        for rule in rules:
            rule(logical)
        if not logical.changed:
            return
