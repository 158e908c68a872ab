"""The planner's first half: rewrite rules over the logical plan, in a fixed order, until nothing changes.

    Plan ─► settle_partitions ─► paged_sorts ─► disjunctions ─► [filters]* ─► computed_keys ─► shared_totals ─►
            totals_of_parts ─► shared_groups ─► [[constant_filters, join_conditions, combine_filters, filter_pushdown,
            limit_pushdown, sort_elimination, combine_projects, shared_filters, shared_scans]*, outer_joins, equal_keys,
            shared_joins, semi_join_pullup, semi_join_pushdown, join_order, aggregate_reduction]* ─► coarser_groups ─►
            early_columns ─► running_groups ─► conditional_sums ─► aggregate_pushdown ─► joins_of_sets ─►
            projection_pruning ─► combine_projects ─► window_top ─► Plan

The lists are the order. Each round moves limits by one node, so rounds are bounded by the depth of the plan; ROUNDS_MAX
only guards against two rules that undo each other. Joins are ordered when every filter stands where it stays, since
filters say how many rows a table has. Pruning runs once, at the end.

Held by: tests/optimizer/test_rules.py
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from engine.graph.plan import Aggregate, Filter, Join, Limit, Operator, PartialAggregate, Plan, Project, Sort, Window
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.partition_planning import settle_partitions


class Rule(NamedTuple):
    """A module of ``rules``, which is loaded and applied where a plan has an operator that it looks for.

    Most plans need a third of them: small jobs would take as long to load the others as they run.
    """

    module: str
    #: none: it looks at any plan
    looks_for: tuple[type[Operator], ...] = ()


#: rules applied once before all others
FIRST_RULES = (
    Rule("paged_sorts", (Sort,)),
    Rule("disjunctions", (Filter, Join)),
)

#: rules about aggregates of the same rows, applied when filters stand where these are read
SHARED_RULES = (
    Rule("computed_keys", (Aggregate,)),
    Rule("shared_totals", (Aggregate,)),
    Rule("totals_of_parts", (Aggregate,)),
    Rule("shared_groups", (Aggregate,)),
)

#: rules that bring filters nearer to the sources
FILTER_RULES = (
    Rule("constant_filters"),
    Rule("join_conditions", (Join,)),
    Rule("combine_filters", (Filter,)),
    Rule("filter_pushdown", (Filter,)),
)

#: rules applied in this order, again and again until none changes the plan
REPEATED_RULES = (
    *FILTER_RULES,
    Rule("limit_pushdown", (Limit,)),
    Rule("sort_elimination", (Sort,)),
    Rule("combine_projects", (Project,)),
    Rule("shared_filters", (Filter,)),
    Rule("shared_scans"),
)

#: rules about filters and keys of joins
_JOIN_RULES = (Rule("outer_joins", (Join,)), Rule("equal_keys", (Join,)))

#: rules applied when the repeated ones change nothing, since filters decide the number of rows
COST_RULES = (
    *_JOIN_RULES,
    Rule("shared_joins", (Join,)),
    Rule("semi_join_pullup", (Join,)),
    Rule("semi_join_pushdown", (Join,)),
    Rule("join_order", (Join,)),
    Rule("aggregate_reduction", (Join,)),
)

_COARSER_GROUPS = Rule("coarser_groups", (Aggregate,))

#: rules applied once afterwards
FINAL_RULES = (
    Rule("early_columns", (Join,)),
    Rule("running_groups", (Aggregate,)),
    Rule("conditional_sums", (Aggregate,)),
    Rule("aggregate_pushdown", (Aggregate, Join, PartialAggregate)),
    Rule("joins_of_sets", (Join,)),
    Rule("projection_pruning"),
    Rule("combine_projects", (Project,)),
    Rule("window_top", (Window,)),
)

ROUNDS_MAX = 200


def rewrite(plan: Plan) -> Plan:
    """Return an equivalent plan that does less work."""
    logical = LogicalPlan(plan)
    settle_partitions(logical)
    _apply(FIRST_RULES, logical)
    if not logical.kinds().isdisjoint((Aggregate,)):
        _repeat(FILTER_RULES, logical)
        _apply(SHARED_RULES, logical)
    for _ in range(ROUNDS_MAX):
        _repeat(REPEATED_RULES, logical)
        _apply(COST_RULES, logical)
        if not logical.changed:
            break
    logical.changed = False
    _apply((_COARSER_GROUPS,), logical)
    if logical.changed:
        # Groups that read finer ones read a scan no more: those that still do may have one of their own now.
        _repeat(REPEATED_RULES, logical)
    _apply(FINAL_RULES, logical)
    return logical.to_plan()


def push_filters(logical: LogicalPlan) -> None:
    """Bring filters as near to the sources as they come, and change nothing else."""
    _apply(FIRST_RULES, logical)
    _repeat((*FILTER_RULES, *_JOIN_RULES), logical)


def _repeat(rules: Sequence[Rule], logical: LogicalPlan) -> None:
    for _ in range(ROUNDS_MAX):
        logical.changed = False
        _apply(rules, logical)
        if not logical.changed:
            return


def _apply(rules: Sequence[Rule], logical: LogicalPlan) -> None:
    for rule in rules:
        if not rule.looks_for or not logical.kinds().isdisjoint(rule.looks_for):
            _applied(rule.module)(logical)


@cache
def _applied(module: str) -> Callable[[LogicalPlan], None]:
    apply: Callable[[LogicalPlan], None] = importlib.import_module(f"engine.optimizer.rules.{module}").apply
    return apply
