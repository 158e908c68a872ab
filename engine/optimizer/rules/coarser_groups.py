"""Coarser groups from finer ones: of several aggregates over the same rows, one reads the groups of another.

    rows ─┬─► groups by a, b           rows ─► states by a, b ─┬─► groups by a, b
          ├─► groups by a         ->                           └─► states by a ─┬─► groups by a
          └─► one group                                                         └─► one group

Grouping sets make these. Each asks for the same aggregates, and has fewer keys than the one before; where it asks for
some of them, or for others, it reads the rows. Groups are never more than rows, and what does not make rows fewer is
passed through, so this costs nothing where it does not pay.

Source: Gray et al., "Data cube" (1997): distributive and algebraic aggregates.
Held by: tests/optimizer/test_coarser_groups.py
"""

from __future__ import annotations

import msgspec

from engine.graph.expression import ORDER_DEPENDENT_AGGREGATES, Expression
from engine.graph.plan import Aggregate, PartialAggregate, PlanNode
from engine.graph.plan_schema import PlanSchema
from engine.optimizer.logical_plan import LogicalPlan

Calls = tuple[tuple[str, Expression | None], ...]

_WHY = "read by coarser groups too"


def apply(plan: LogicalPlan) -> None:
    """Make coarser groups of equal rows read finer ones."""
    of_rows: dict[tuple[int, int | None], list[PlanNode]] = {}
    for node in plan.order():
        if isinstance(node.operator, Aggregate) and _may_share(node.operator):
            of_rows.setdefault((node.inputs[0], node.parallelism), []).append(node)
    for nodes in of_rows.values():
        left = sorted(nodes, key=lambda node: -len(_keys(node)))
        while len(left) > 1:
            finest, calls = _keys(left[0]), _calls(left[0])
            family = [node for node in left if _calls(node) == calls and _keys(node) <= finest]
            left = [node for node in left if node not in family]
            if len(family) > 1:
                _share(plan, family)


def _may_share(aggregate: Aggregate) -> bool:
    is_ordered = any(call.function in ORDER_DEPENDENT_AGGREGATES for call in aggregate.calls)
    return not is_ordered and not aggregate.of_states


def _keys(node: PlanNode) -> frozenset[str]:
    assert isinstance(node.operator, Aggregate)
    return frozenset(node.operator.keys)


def _calls(node: PlanNode) -> Calls:
    assert isinstance(node.operator, Aggregate)
    return tuple((call.function, call.argument) for call in node.operator.calls)


def _share(plan: LogicalPlan, family: list[PlanNode]) -> None:
    """Make each node of a family, the finest first, read the states of an earlier one."""
    made: list[PlanNode] = []
    for position, node in enumerate(family):
        finer = next((each for each in reversed(made) if set(_keys(node)) <= set(_keys_of_states(each))), None)
        source = finer
        if any(_keys(later) <= _keys(node) for later in family[position + 1 :]):
            source = _states(plan, node, finer)
            made.append(source)
        assert source is not None, "the first one is the finest"
        aggregate = node.operator
        assert isinstance(aggregate, Aggregate)
        merging = msgspec.structs.replace(aggregate, argument_schema=PlanSchema(()), of_states=True)
        plan.replace(node, operator=merging, inputs=(source.id,))


def _keys_of_states(node: PlanNode) -> tuple[str, ...]:
    assert isinstance(node.operator, PartialAggregate)
    return node.operator.keys


def _states(plan: LogicalPlan, node: PlanNode, finer: PlanNode | None) -> PlanNode:
    """Add the states of an aggregate's groups, of rows or of finer ones."""
    aggregate = node.operator
    assert isinstance(aggregate, Aggregate)
    arguments = aggregate.argument_schema if finer is None else PlanSchema(())
    partial = PartialAggregate(aggregate.keys, aggregate.calls, arguments, finer is not None, _WHY)
    source = plan.node(node.inputs[0]) if finer is None else finer
    return plan.insert(partial, (source.id,), aggregate.state_schema, source)
