"""Sorts of groups by their keys: the second phase of the aggregate becomes part of the sort.

    SORT_RANGES          partial ═══ hash ═══ final -> sorted runs ═══ ranges ═══ merge
    SORTED_AGGREGATE     partial -> sorted runs, combined ═══ ranges ═══ merge, combined, to results

Groups are sorted by all of their keys, those of the sort first: states of one group are neighbours and lie in one
range. The form is chosen where

    the sort is over ranges and has keys of the groups only; it has no limit
    only the sort reads the groups, and the user set no other parallelism for them
    between the two there are filters and projections at most: they follow the merge then, and keep its order
    no call is first or last, and no string or binary in a state is wide (WIDE_BYTES): they stay in their rows
    by the estimates, the groups do not fit in memory (``operator_bytes``), rows of one group are few (GROUPS_SHARE)

The last one is what was measured, in CPU time against the other form. Groups of 40 to 80 % of the rows that do not fit
take 0.66 to 0.82 of it: they are spilled once, and not by the aggregate and the sort in turn. Of 20 % of the rows,
numbers as keys take 0.8, strings 1.0 to 1.2, of 10 % any keys 0.9 to 1.0: partial aggregates have made them few enough.
Groups that fit take 0.8 where they are 10 % of the rows and memory is ample, but 1.1 to 1.4 where they are more, and
1.6 where it is not: what is won there is less than what a wrong estimate costs.

Source: GroupCombine over a CombiningUnilateralSortMerger in Flink; early aggregation in Graefe, "Implementing sorting
in database systems" (2006).
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.graph.expression import ORDER_DEPENDENT_AGGREGATES, ColumnRef
from engine.graph.operator_descriptor import (
    GroupedStates,
    MergeRunsOperator,
    OperatorDescriptor,
    SortRunsOperator,
)
from engine.graph.plan import Aggregate, Filter, Plan, Project, Sort
from engine.graph.ship_strategy import SORTED_RUNS, PartitionerSpec, ShipStrategy
from engine.graph.sort_key import SortKey
from engine.optimizer.candidates import Candidate, CandidateInput, JoinReport, Shipping, move
from engine.optimizer.properties import RANDOM, LocalProperties
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.sort_planning import MERGE_WEIGHT
from engine.shown_sizes import size_text
from engine.statistics.costs import local_cost, repartition_cost
from engine.statistics.estimates import Estimates, row_width

SORTED_AGGREGATE: Final = "SORTED_AGGREGATE"
#: share of the rows from which groups are combined in the sort
GROUPS_SHARE: Final = 0.4
#: average bytes of strings and binaries in states above which hashing leaves them beside the rows
WIDE_BYTES: Final = 4 << 10
#: names of the operators in explain (before, behind the exchange)
STRATEGIES: Final = ("COMBINED_RUNS", SORTED_AGGREGATE)


def with_sorted_aggregate(plan: Plan, ranges: Candidate, settings: OptimizerSettings) -> Candidate:
    """Return the candidate of a sort, or where that is possible the sort and the aggregate below it in one."""
    if ranges.strategy != "SORT_RANGES":
        return ranges
    *between, source = _down_to_aggregate(ranges.inputs[0].candidate)
    aggregate, sort = source.node.operator, ranges.node.operator
    assert isinstance(sort, Sort)
    keys = _keys_below(sort.keys, between)
    if not isinstance(aggregate, Aggregate) or source.strategy != "PARTIAL_FINAL":
        return ranges
    if not {key.column for key in keys} <= set(aggregate.keys):
        return ranges
    read = [source, *between]
    reason = _why_not(plan, aggregate, read, ranges) or _why_dearer(aggregate, source, settings)
    if reason:
        report = JoinReport({"SORT_RANGES": ranges.cumulative_costs}, {SORTED_AGGREGATE: reason})
        return msgspec.structs.replace(ranges, alternative="SORT_RANGES", report=report)
    below = _combined(aggregate, msgspec.structs.replace(sort, keys=keys), source, ranges, settings)
    for candidate in reversed(between):
        inputs = (CandidateInput(below, move(below, candidate.parallelism)),)
        below = msgspec.structs.replace(candidate, inputs=inputs, properties=RANDOM, order=ranges.order)
    return below


def _down_to_aggregate(top: Candidate) -> list[Candidate]:
    """Return the filters and projections from here down, and what is below them."""
    chain = [top]
    while isinstance(chain[-1].node.operator, Filter | Project) and len(chain[-1].inputs) == 1:
        below = chain[-1].inputs[0]
        if below.shipping.strategy is not ShipStrategy.FORWARD:
            break
        chain.append(below.candidate)
    return chain


def _keys_below(keys: tuple[SortKey, ...], between: list[Candidate]) -> tuple[SortKey, ...]:
    """Return the keys under the names they have below projections; computed ones have names that no group has."""
    for candidate in between:
        if isinstance(candidate.node.operator, Project):
            origin = {
                each.name: each.expression.name
                for each in candidate.node.operator.expressions
                if isinstance(each.expression, ColumnRef)
            }
            keys = tuple(msgspec.structs.replace(key, column=origin.get(key.column, "")) for key in keys)
    return keys


def _why_not(plan: Plan, aggregate: Aggregate, read: list[Candidate], ranges: Candidate) -> str:
    """Return the reason why the states of an aggregate cannot be combined in the sort; "" where they can.

    read: the aggregate, and what is between it and the sort.
    """
    source = read[0]
    if any(sum(each.node.id in node.inputs for node in plan.nodes) != 1 for each in read):
        return "others read the groups too"
    if source.parallelism != ranges.parallelism:
        return f"groups are wanted in {source.parallelism} subtasks, the sort in {ranges.parallelism}"
    for call in aggregate.calls:
        if call.function in ORDER_DEPENDENT_AGGREGATES:
            return f"{call.function} depends on the order of rows"
        if call.function in ("min", "max") and isinstance(call.argument, ColumnRef):
            known = source.inputs[0].candidate.estimates.columns.get(call.argument.name)
            width = 0.0 if known is None else known.average_width_bytes or 0.0
            if width > WIDE_BYTES:
                return f"values of '{call.argument.name}' are wide, {size_text(width)} each"
    return ""


def _why_dearer(aggregate: Aggregate, source: Candidate, settings: OptimizerSettings) -> str:
    """Return the reason why sorting states costs more than hashing them once more; "" where it does not."""
    groups, rows = source.estimates, source.inputs[0].candidate.estimates
    if not (groups.is_size_known and rows.is_size_known):
        return "sizes are unknown"
    size = groups.rows * row_width(aggregate.state_schema, groups.columns)
    if size <= settings.page_budget.operator_bytes * source.parallelism:
        return f"{size_text(size)} of groups fit in memory"
    share = groups.rows / max(1.0, rows.rows)
    if share < GROUPS_SHARE:
        return f"groups are only {share:.0%} of the rows"
    return ""


def _combined(
    aggregate: Aggregate, sort: Sort, source: Candidate, ranges: Candidate, settings: OptimizerSettings
) -> Candidate:
    below = source.inputs[0].candidate
    rows = min(below.estimates.rows, source.estimates.rows * below.parallelism)
    size = rows * row_width(aggregate.state_schema, below.estimates.columns)
    states = Estimates(rows, size, "groups * producers, at most the rows")
    partitioner = PartitionerSpec(SORTED_RUNS, tuple(key.column for key in group_order(aggregate, sort)))
    costs = repartition_cost(states, ranges.parallelism)
    shipping = Shipping(ShipStrategy.PARTITION_RANGE, partitioner, costs, "groups are combined in sorted runs")
    memory = settings.page_budget.operator_bytes
    partial = local_cost(below.estimates, memory, below.parallelism)
    return msgspec.structs.replace(
        ranges,
        node=msgspec.structs.replace(ranges.node, operator=sort, schema=source.node.schema),
        estimates=source.estimates,
        inputs=(CandidateInput(below, shipping),),
        order=LocalProperties(sort.keys, is_total=True),
        strategy=SORTED_AGGREGATE,
        costs=partial + local_cost(states, memory, below.parallelism, keeps_rows=True),
        combined=source,
    )


def group_order(aggregate: Aggregate, sort: Sort) -> tuple[SortKey, ...]:
    """Return the keys of the sort, then the keys of groups that it leaves out."""
    sorted_by = {key.column for key in sort.keys}
    return (*sort.keys, *(SortKey(name) for name in aggregate.keys if name not in sorted_by))


def sorted_aggregate_operators(
    candidate: Candidate, name: str, weight: float
) -> tuple[OperatorDescriptor, OperatorDescriptor]:
    """Return the operators behind the partial aggregate: of the subtasks before the exchange, behind it.

    name: of the sort; weight: of the runs.
    """
    assert candidate.combined is not None, "not an aggregate in a sort"
    aggregate, sort = candidate.combined.node.operator, candidate.node.operator
    assert isinstance(aggregate, Aggregate)
    assert isinstance(sort, Sort)
    keys, states, node_id = group_order(aggregate, sort), aggregate.state_schema, candidate.node.id
    groups = GroupedStates(aggregate.keys, aggregate.calls)
    runs, merge = SortRunsOperator(keys, groups=groups), MergeRunsOperator(keys, groups)
    return (
        OperatorDescriptor(node_id, f"sorted runs of {name}", runs, (states,), states, weight),
        OperatorDescriptor(node_id, name, merge, (states,), candidate.node.schema, MERGE_WEIGHT),
    )
