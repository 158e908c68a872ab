"""Aggregate reduction: groups that no row of the other side of a join asks for are not made.

    x ⋈ aggregate(y by k)   ->   x ⋈ aggregate((y semi x) by k)        where x has few of the groups' keys

That is SQL's correlated subquery: parts of one brand beside the average quantity of every part. The other side is then
used twice, so its rows are stored; it must be small for that, in rows beside the values of the keys and in bytes beside
what is aggregated. Groups that are not returned without a partner may go: those of a pair, of the side that a left,
right, semi or anti join does not keep. Projections and filters between the groups and the join stay. A null key has no
partner. Of distinct keys below a semi or anti join nothing is saved: the join itself is what would reduce them.

Source: magic sets; Seshadri et al., "Cost-based optimization for magic" (1996), of which this is the simplest case.
Held by: tests/optimizer/test_aggregate_reduction.py
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from engine.graph.plan import Aggregate, Filter, Join, PlanNode, Project
from engine.graph.said_operators import JoinType
from engine.optimizer.estimates import estimate_below
from engine.optimizer.expression_rewriting import column_behind, column_projection
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OrderUse
from engine.optimizer.operator_entries.registry import entry_of
from engine.statistics.estimates import Estimates

#: limits relative to all groups: the other side's rows, and its bytes, which are stored, to the aggregated rows
GROUPS_ASKED_MAX = 0.25
WORTHWHILE = 0.1

#: joins that drop rows of the right, or of the left, without a partner
_DROPS_RIGHT = frozenset({JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI})
_DROPS_LEFT = frozenset({JoinType.INNER, JoinType.RIGHT})


def apply(plan: LogicalPlan) -> None:
    """Reduce what is aggregated below every join that asks for few of the groups."""
    for listed in plan.order():
        node = plan.node(listed.id)
        join = node.operator
        if not isinstance(join, Join) or join.null_aware or not join.left_keys:
            continue
        for side, dropping, keys, other_keys in (
            (1, _DROPS_RIGHT, join.right_keys, join.left_keys),
            (0, _DROPS_LEFT, join.left_keys, join.right_keys),
        ):
            if join.how in dropping:
                _reduce(plan, node, side, keys, other_keys)


def _reduce(plan: LogicalPlan, node: PlanNode, side: int, keys: tuple[str, ...], other_keys: tuple[str, ...]) -> None:
    groups, other = plan.node(node.inputs[side]), plan.node(node.inputs[1 - side])
    consumers = plan.consumers()
    names: dict[str, str | None] = {key: key for key in keys}
    while isinstance(groups.operator, Filter | Project) and len(consumers[groups.id]) == 1:
        if isinstance(groups.operator, Project):
            projection = groups.operator.expressions
            names = {key: name and column_behind(projection, name) for key, name in names.items()}
        groups = plan.node(groups.inputs[0])
    aggregate = groups.operator
    if not isinstance(aggregate, Aggregate) or len(consumers[groups.id]) > 1:
        return
    assert isinstance(node.operator, Join)
    if not aggregate.calls and node.operator.how in (JoinType.SEMI, JoinType.ANTI):
        return  # different values that a semi join looks at: to ask which are wanted is that semi join again
    if entry_of(aggregate).order_use(aggregate) is not OrderUse.LOST:
        return  # a join loses the order of its rows
    # A column may be the key of several: one of them is enough here, the join itself compares all.
    pairs: dict[str, str] = {}
    for key, other_key in zip(keys, other_keys, strict=True):
        if (name := names[key]) is not None and name in aggregate.keys:
            pairs.setdefault(name, other_key)
    source = plan.node(groups.inputs[0])
    if not pairs or _is_reduced(plan, source, set(pairs)) or not _pays(plan, groups, pairs, source, other):
        return
    asked = tuple(dict.fromkeys(pairs.values()))
    wanted = plan.insert(Project(column_projection(asked)), (other.id,), other.schema.select(asked), other)
    semi = Join(JoinType.SEMI, tuple(pairs), tuple(pairs.values()), coalesce_keys=False)
    reduced = plan.insert(semi, (source.id, wanted.id), source.schema, source)
    plan.replace(groups, inputs=(reduced.id,))


def _is_reduced(plan: LogicalPlan, node: PlanNode, keys: set[str]) -> bool:
    """Whether a semi join by these keys is below already, by this rule or in the query.

    It may have moved below joins since, to the side that has the keys.
    """
    operator = node.operator
    if isinstance(operator, Join) and operator.how is JoinType.SEMI and keys <= set(operator.left_keys):
        return True
    if isinstance(operator, Project):
        behind = {column_behind(operator.expressions, key) for key in keys}
        keys = {key for key in behind if key is not None}
        if len(keys) < len(behind):
            return False
    elif not isinstance(operator, Filter | Join):
        return False
    below = [plan.node(source) for source in node.inputs]
    return any(keys <= set(each.schema.names) and _is_reduced(plan, each, keys) for each in below)


def _pays(plan: LogicalPlan, groups: PlanNode, keys: Iterable[str], source: PlanNode, other: PlanNode) -> bool:
    known: dict[int, Estimates] = {}
    made, read, asking = (estimate_below(plan, node, known) for node in (groups, source, other))
    # Six stores ask for all groups of store and item: what is asked for is values of the keys, not groups.
    values = min(made.rows, prod(made.distinct(key) or made.rows for key in keys))
    return asking.rows <= GROUPS_ASKED_MAX * values and asking.size_bytes <= WORTHWHILE * read.size_bytes
