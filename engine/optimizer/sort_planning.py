"""Sorts and limits: their candidates, and their physical operators.

    plan            strategy      operators
    sort            SORT          ═══ all rows to one subtask ═══ sort
                    SORT_RANGES   sorted runs of each subtask ═══ ranges of keys ═══ merge
    top n           LOCAL_TOP     top n of each subtask ═══ top n
                                  n rows that do not fit in memory: a sort, then a limit
    limit           LOCAL_LIMIT   limit of each subtask ═══ limit         one subtask after the other if ordered, or
                                                                          if small and of rows as files have them

A sort runs over several subtasks unless its input is small (SMALL_SORT_BYTES; starting more tasks costs more than it
saves) and the user asked for no parallelism. The bounds of the ranges come from samples of the finished runs: the
exchange is BLOCKING under every execution mode, no statistics are needed, and the ranges are even whatever the keys.

Every sort is stable: subtasks whose rows lie in the order of files are read one after the other, and merges take rows
with equal keys in the order of the subtasks. Where ties decide which rows are taken, ``input_order`` says what else
they are ordered by.

A result in order over several subtasks (``Candidate.is_ordered``) keeps its order through operators that stay in their
subtask. One subtask that needs the order, for a limit or for ``first`` and ``last``, reads the others in turn.

Source: range partitioning of Flink's DataSet API (RangePartitionRewriter) reads the input twice instead.
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.graph.operator_descriptor import (
    LimitOperator,
    MergeRunsOperator,
    OperatorDescriptor,
    PhysicalOperator,
    SortOperator,
    SortRunsOperator,
)
from engine.graph.plan import Limit, PlanNode, Sort, Source
from engine.graph.ship_strategy import SORTED_RUNS, PartitionerSpec, ShipStrategy
from engine.optimizer.candidates import Candidate, CandidateInput, Shipping, move
from engine.optimizer.input_order import follows_from_files, lies_as_in_files, settled
from engine.optimizer.properties import LocalProperties
from engine.optimizer.settings import OptimizerSettings
from engine.shown_sizes import size_text
from engine.statistics.costs import local_cost, repartition_cost
from engine.statistics.estimates import Estimates

#: input up to which one subtask sorts
SMALL_SORT_BYTES: float = 4e6
#: limit up to which the first rows of files are taken; for a larger one readers would wait for each other
LIMIT_BYTES: float = 8e6
#: strategy for rows that are in order already
NO_SORT: Final = "NO_SORT"
#: weight of a merge, which takes a few pages
MERGE_WEIGHT: Final = 0.05


# candidates --------------------------------------------------------------------------------------------------------


def sort_candidate(
    node: PlanNode, sort: Sort, estimates: Estimates, source: Candidate, settings: OptimizerSettings
) -> Candidate:
    """Return the candidate of a sort of this input."""
    if sort.has_settled_ties:
        sort = settled(sort, node.schema, source)
        node = msgspec.structs.replace(node, operator=sort)
    if not sort.ties and _lies_sorted(source, sort) and node.parallelism in (None, source.parallelism):
        return _as_it_lies(node, sort, estimates, source)
    parallelism = node.parallelism or settings.parallelism
    if sort.limit is not None and parallelism > 1 and estimates.size_bytes > settings.page_budget.operator_bytes:
        ranges = _ranges(node, sort, estimates, source, parallelism, settings)
        top = Limit(sort.limit)
        return limit_candidate(msgspec.structs.replace(node, operator=top), top, estimates, ranges)
    if sort.limit is None and parallelism > 1:
        if node.parallelism is not None or _is_large(source.estimates):
            return _ranges(node, sort, estimates, source, parallelism, settings)
        size, most = size_text(source.estimates.size_bytes), size_text(SMALL_SORT_BYTES)
        text = f"{size} are sorted in one subtask, as up to {most}"
        return _in_one(node, sort, estimates, source, settings, text)
    return _in_one(node, sort, estimates, source, settings)


def _lies_sorted(source: Candidate, sort: Sort) -> bool:
    """Whether rows are in order as they are read: those of each subtask, and of one subtask after the other."""
    if source.sorted_by[: len(sort.keys)] != sort.keys:
        return False
    below = source
    while below.inputs and below.parallelism > 1:
        (one, *others) = below.inputs
        if others or one.shipping.strategy is not ShipStrategy.FORWARD:
            return False
        below = one.candidate
    # Subtasks of a source read runs of its splits, one after the other.
    return below.parallelism == 1 or isinstance(below.node.operator, Source)


def _as_it_lies(node: PlanNode, sort: Sort, estimates: Estimates, source: Candidate) -> Candidate:
    order = LocalProperties(sort.keys, is_total=True)
    if sort.limit is not None:
        top = Limit(sort.limit)
        ordered = msgspec.structs.replace(source, order=order)
        return limit_candidate(msgspec.structs.replace(node, operator=top), top, estimates, ordered)
    return Candidate(
        node,
        estimates,
        source.parallelism,
        (CandidateInput(source, move(source, source.parallelism)),),
        NO_SORT,
        properties=source.properties,
        order=order,
        sorted_by=source.sorted_by,
    )


def _is_large(estimates: Estimates) -> bool:
    return not estimates.is_size_known or estimates.size_bytes > SMALL_SORT_BYTES


def _in_one(
    node: PlanNode, sort: Sort, estimates: Estimates, source: Candidate, settings: OptimizerSettings, reason: str = ""
) -> Candidate:
    is_top = sort.limit is not None
    shipping = _to_one(source, estimates if is_top else source.estimates)
    if reason and shipping.strategy.is_network:
        shipping = shipping._replace(reason=reason)
    if follows_from_files(source):
        shipping = in_turn(source, shipping)
    memory = settings.page_budget.operator_bytes
    return Candidate(
        node,
        estimates,
        1,
        (CandidateInput(source, shipping),),
        "LOCAL_TOP" if is_top and source.parallelism > 1 else "SORT",
        costs=local_cost(source.estimates, memory, 1, keeps_rows=not is_top),
        order=LocalProperties(sort.keys, is_total=True),
        sorted_by=sort.keys,
    )


def _ranges(
    node: PlanNode,
    sort: Sort,
    estimates: Estimates,
    source: Candidate,
    parallelism: int,
    settings: OptimizerSettings,
) -> Candidate:
    partitioner = PartitionerSpec(SORTED_RUNS, tuple(key.column for key in sort.keys))
    costs = repartition_cost(source.estimates, parallelism)
    reason = "bounds from samples of the sorted runs"
    memory = settings.page_budget.operator_bytes
    return Candidate(
        node,
        estimates,
        parallelism,
        (CandidateInput(source, Shipping(ShipStrategy.PARTITION_RANGE, partitioner, costs, reason)),),
        "SORT_RANGES",
        costs=local_cost(source.estimates, memory, source.parallelism, keeps_rows=True),
        order=LocalProperties(sort.keys, is_total=True),
        sorted_by=sort.keys,
    )


def limit_candidate(node: PlanNode, limit: Limit, estimates: Estimates, source: Candidate) -> Candidate:
    """Return the candidate of a limit over this input."""
    rows = min(source.estimates.rows, float(limit.count) * source.parallelism)
    unset = not source.estimates.is_size_known
    size = source.estimates.size_bytes if unset else rows / source.estimates.rows * source.estimates.size_bytes
    shipping = _to_one(source, Estimates(rows, size, "limit of each subtask"))
    if (limit.is_first or estimates.size_bytes <= LIMIT_BYTES) and lies_as_in_files(source):
        shipping = in_turn(source, shipping)
    strategy = "LOCAL_LIMIT" if source.parallelism > 1 else "LIMIT"
    channels = (CandidateInput(source, shipping),)
    return Candidate(node, estimates, 1, channels, strategy, order=source.order, properties=source.properties)


def _to_one(source: Candidate, shipped: Estimates) -> Shipping:
    shipping = move(source, 1)
    if not shipping.strategy.is_network:
        return shipping
    return in_order(source, shipping._replace(costs=repartition_cost(shipped, 1)))


def in_order(source: Candidate, shipping: Shipping) -> Shipping:
    """Return a shipping whose consumers read ordered subtasks in turn; as it is when there is no order to keep."""
    return in_turn(source, shipping) if source.is_ordered else shipping


def in_turn(source: Candidate, shipping: Shipping) -> Shipping:
    """Return a shipping whose consumer reads one subtask after the other."""
    if source.parallelism == 1 or not shipping.strategy.is_network:
        return shipping
    partitioner = msgspec.structs.replace(shipping.partitioner, in_order=True)
    reason = f"{shipping.reason}; " if shipping.reason else ""
    return shipping._replace(partitioner=partitioner, reason=f"{reason}one subtask after the other, in order")


# operators ---------------------------------------------------------------------------------------------------------


def sort_operators(candidate: Candidate, name: str, weight: float) -> tuple[OperatorDescriptor, ...]:
    """Return the operators of a sort or limit: (of the subtasks before the exchange,) behind the exchange.

    name: of the plan's node; weight: of what keeps rows.
    """
    match candidate.node.operator:
        case Sort(limit=limit) as sort if candidate.strategy == "SORT_RANGES":
            keys = (*sort.keys, *sort.ties)
            runs = _descriptor(candidate, f"sorted runs of {name}", SortRunsOperator(keys, limit), weight)
            return runs, _descriptor(candidate, name, MergeRunsOperator(keys), MERGE_WEIGHT)
        case Sort(limit=limit) as sort:
            operator = SortOperator((*sort.keys, *sort.ties), limit)
            final = _descriptor(candidate, name, operator, weight)
            is_local = candidate.strategy == "LOCAL_TOP"
            return (_descriptor(candidate, f"local {name}", operator, weight), final) if is_local else (final,)
        case Limit(count=count):
            final = _descriptor(candidate, name, LimitOperator(count), 0.0)
            is_local = candidate.strategy == "LOCAL_LIMIT"
            local = _descriptor(candidate, f"local {name}", LimitOperator(count), 0.0)
            return (local, final) if is_local else (final,)
        case _:
            raise AssertionError(f"{name} is no sort")


#: names of the operators in explain (before, behind the exchange)
STRATEGIES: Final = {
    "SORT_RANGES": ("SORT_RUNS", "MERGE_RUNS"),
    "LOCAL_TOP": ("LOCAL_TOP", "TOP"),
    "LOCAL_LIMIT": ("", "LIMIT"),
}


def _descriptor(candidate: Candidate, name: str, operator: PhysicalOperator, weight: float) -> OperatorDescriptor:
    schema = candidate.node.schema
    return OperatorDescriptor(candidate.node.id, name, operator, (schema,), schema, weight)
