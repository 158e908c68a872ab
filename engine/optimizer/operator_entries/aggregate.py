"""An aggregate, distinct among them: groups by hash, in one phase or in two.

    with keys   parallelism set, else default    SINGLE where the input lies grouped, else PARTIAL_FINAL
    without     1                                SINGLE where the input is one subtask, else PARTIAL_FINAL
    runs                                         SINGLE, and groups come out with their run: where the source reads
                                                 row groups in runs that share no key (``SourceOperator.in_runs``)
    few groups  1                                PARTIAL_FINAL: a few states more are merged in no time, and what
                                                 follows needs no exchange (where ``has_small_parts``)

There are as many groups as the product of the keys' distinct values, at most as many as rows: of keys that are columns
of one source at most as many as that has. Parts of a filter over the keys alone pass it. First phases are in
``aggregate_phases``; within a sort, in ``sorted_aggregates``.

Held by: tests/optimizer/test_physical_operators.py
Held by: tests/optimizer/test_estimates.py
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import msgspec

from engine.formats.registry import format_of
from engine.graph.expression import ORDER_DEPENDENT_AGGREGATES, Expression, columns_of
from engine.graph.operator_descriptor import (
    FilterOperator,
    HashAggregateOperator,
    OperatorDescriptor,
    PhysicalOperator,
    ProjectOperator,
    SourceOperator,
)
from engine.graph.plan import Aggregate, PlanNode
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.optimizer.aggregate_phases import add_input, add_partial
from engine.optimizer.candidates import GLOBAL, Candidate, CandidateInput, Shipping, move
from engine.optimizer.input_changes import filter_input
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.operator_entries.entry import OperatorEntry, OrderUse, Planning
from engine.optimizer.physical_plan_builder import PhysicalPlanBuilder, channel_of
from engine.optimizer.properties import RANDOM, Partitioning, hashed_by
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.short_text import calls_text, short
from engine.optimizer.sort_planning import in_order
from engine.statistics.costs import local_cost, repartition_cost
from engine.statistics.estimates import GROUP_EXPONENT, Estimates, row_width, sized

#: partial states up to this are merged in one subtask
FEW_STATES_BYTES = 1e6

#: a subtask has memory for the groups of so many average runs
_RUNS_HELD = 8

_SMALL_DOMAINS = {"bool": 2.0, "int8": 256.0, "uint8": 256.0}


class AggregateEntry(OperatorEntry[Aggregate]):
    """The entry of aggregates."""

    operator = Aggregate

    def name(self, operator: Aggregate) -> str:
        """Return the keys."""
        what = "aggregate" if operator.calls else "distinct"
        return short(f"{what} by {', '.join(operator.keys)}") if operator.keys else what

    def details(self, operator: PhysicalOperator) -> Sequence[str]:
        """Return the functions, where values become states, and the threads."""
        if not isinstance(operator, HashAggregateOperator):
            return ()
        if operator.takes_whole_groups:
            return ("gives out states as they come if each is all of its group",)
        threads = [f"many groups are merged by {operator.threads} threads"] if operator.threads > 1 else []
        if operator.phase not in ("single", "partial") or not operator.calls:
            return threads
        return [f"computes {calls_text(operator.calls)}", *threads]

    def columns_used(
        self, plan: LogicalPlan, node: PlanNode, operator: Aggregate, input_index: int, used: set[str]
    ) -> set[str]:
        """Return the keys and the columns of all arguments, or of all states."""
        if operator.of_states:
            return set(operator.state_schema.names)
        arguments = (call.argument for call in operator.calls if call.argument is not None)
        return {name for argument in arguments for name in columns_of(argument)} | set(operator.keys)

    def take_filter(
        self, plan: LogicalPlan, node: PlanNode, operator: Aggregate, parts: list[Expression]
    ) -> list[Expression]:
        """Push parts over the keys alone; without keys there is a group in any case."""
        if not operator.keys:
            return []
        passing = [part for part in parts if set(columns_of(part)) <= set(operator.keys)]
        filter_input(plan, node, 0, passing)
        return passing

    def order_use(self, operator: Aggregate) -> OrderUse:
        """Return whether a function sees the order of the rows; groups have none."""
        sees = any(call.function in ORDER_DEPENDENT_AGGREGATES for call in operator.calls)
        return OrderUse.SEEN if sees else OrderUse.LOST

    def estimate(self, node: PlanNode, operator: Aggregate, inputs: Sequence[Estimates]) -> Estimates:
        """Return a row for each group."""
        return groups_of(node, operator.keys, inputs[0])

    def candidates(
        self,
        planning: Planning,
        node: PlanNode,
        operator: Aggregate,
        estimates: Estimates,
        inputs: list[list[Candidate]],
    ) -> list[Candidate]:
        """Return one candidate for each of the input: in one phase where its rows lie grouped, else in two."""
        return [_candidate(node, operator, estimates, source, planning.settings) for source in inputs[0]]

    def translate(self, builder: PhysicalPlanBuilder, candidate: Candidate, operator: Aggregate) -> int:
        """Add the phases."""
        is_single = candidate.strategy == "SINGLE"
        add_first = add_input if is_single else add_partial
        source = add_first(builder, candidate, operator)
        runs = _use_runs(builder, source, candidate.inputs[0].candidate, operator.keys) if is_single else 0
        descriptor = OperatorDescriptor(
            candidate.node.id,
            builder.name_of(candidate.node),
            HashAggregateOperator(
                "single" if is_single and not operator.of_states else "final",
                operator.keys,
                operator.calls,
                by_run=runs > 0,
            ),
            (builder.node(source).descriptor.output_schema,),
            candidate.node.schema,
            builder.weight(candidate.estimates, max(candidate.parallelism, runs // _RUNS_HELD)),
        )
        channel = channel_of(source, 0, candidate.inputs[0].shipping)
        return builder.add(candidate, descriptor, (channel,), "" if is_single else "FINAL")


def _use_runs(builder: PhysicalPlanBuilder, source: int, below: Candidate, keys: tuple[str, ...]) -> int:
    """Make the source of a node, in its task, tell its splits apart, where no two of them share a group.

    Returns: how many they are; 0: groups are complete with the last row.
    """
    properties = below.properties
    if properties.partitioning is not Partitioning.FILE_PARTITIONED or not properties.groups(keys):
        return 0
    node = builder.node(source)
    while isinstance(node.descriptor.operator, ProjectOperator | FilterOperator):
        (channel,) = node.inputs
        if channel.ship_strategy is not ShipStrategy.FORWARD:
            return 0
        node = builder.node(channel.source)
    operator = node.descriptor.operator
    if not isinstance(operator, SourceOperator) or not format_of(operator.spec).tells_runs:
        return 0
    builder.change(node.id, msgspec.structs.replace(operator, in_runs=True))
    return len(operator.spec.splits)


def groups_of(node: PlanNode, keys: tuple[str, ...], source: Estimates) -> Estimates:
    """Return a row for each group of some rows."""
    if not keys:
        return sized(node.schema, 1.0, {}, "one group")
    by_relation: dict[int, list[str]] = {}
    for key in keys:
        by_relation.setdefault(source.columns[key].relation if key in source.columns else -1, []).append(key)
    groups, unknown = 1.0, []
    for relation, own in by_relation.items():
        bound = source.rows if relation < 0 else min(source.columns[key].relation_rows for key in own)
        combinations, not_known = _combinations(node, own, source, bound)
        groups *= min(combinations, bound)
        unknown += not_known
    origin = "distinct keys" if len(by_relation) < 2 else f"distinct keys of {len(by_relation)} sources"
    if unknown:
        origin = f"rows ** {GROUP_EXPONENT:g}: distinct {', '.join(unknown)} unknown"
    columns = {key: source.columns[key] for key in keys if key in source.columns}
    # after grouping no key combination is heavy
    columns = {key: msgspec.structs.replace(known, heavy_keys=()) for key, known in columns.items()}
    return sized(node.schema, min(groups, source.rows), columns, origin, unset=not source.is_size_known)


def _combinations(node: PlanNode, keys: list[str], source: Estimates, rows: float) -> tuple[float, list[str]]:
    """Return the number of combinations of one source's keys, as if independent, and the keys with unknown counts."""
    distinct = {key: source.distinct(key) or _SMALL_DOMAINS.get(node.schema.column(key).type_text) for key in keys}
    unknown = [key for key, count in distinct.items() if count is None]
    known = prod(count for count in distinct.values() if count is not None)
    return known * (rows**GROUP_EXPONENT if unknown else 1.0), unknown


def _candidate(
    node: PlanNode, aggregate: Aggregate, estimates: Estimates, source: Candidate, settings: OptimizerSettings
) -> Candidate:
    is_grouped = source.parallelism == 1 or source.properties.groups(aggregate.keys)
    parallelism = (node.parallelism or settings.parallelism) if aggregate.keys else 1
    if not is_grouped and node.parallelism is None and settings.has_small_parts:
        parallelism = 1 if _has_few_states(aggregate, estimates, source) else parallelism
    memory = settings.page_budget.operator_bytes
    properties = hashed_by(aggregate.keys) if aggregate.keys else RANDOM
    costs = local_cost(estimates, memory, parallelism, keeps_rows=True)
    if source.parallelism == parallelism and is_grouped:
        return Candidate(
            node,
            estimates,
            parallelism,
            (CandidateInput(source, move(source, parallelism)),),
            "SINGLE",
            costs=costs + local_cost(source.estimates, memory, parallelism),
            properties=properties if source.parallelism == 1 else source.properties.kept(aggregate.keys),
        )
    return Candidate(
        node,
        estimates,
        parallelism,
        (CandidateInput(source, _shipping(aggregate, estimates, source, parallelism)),),
        "PARTIAL_FINAL",
        costs=costs + local_cost(source.estimates, memory, source.parallelism),
        properties=properties,
    )


def _states(aggregate: Aggregate, estimates: Estimates, source: Candidate) -> Estimates:
    """Return the partial states that travel: each producer sends at most one for each group."""
    rows = min(source.estimates.rows, estimates.rows * source.parallelism)
    size = rows * row_width(aggregate.state_schema, source.estimates.columns)
    return Estimates(rows, size, "groups * producers, at most the rows")


def _has_few_states(aggregate: Aggregate, estimates: Estimates, source: Candidate) -> bool:
    """Whether it is known, and not taken for granted, that there are few groups."""
    known = source.estimates
    are_counted = all(known.distinct(key) is not None for key in aggregate.keys)
    return are_counted and known.is_size_known and _states(aggregate, estimates, source).size_bytes <= FEW_STATES_BYTES


def _shipping(aggregate: Aggregate, estimates: Estimates, source: Candidate, parallelism: int) -> Shipping:
    """Return the shipping of partial states."""
    states = _states(aggregate, estimates, source)
    costs = repartition_cost(states, parallelism)
    if parallelism == 1:
        strategy, partitioner = ShipStrategy.PARTITION_RANDOM, GLOBAL
        if source.parallelism == 1:
            strategy, partitioner = ShipStrategy.FORWARD, PartitionerSpec("FORWARD")
        return in_order(source, Shipping(strategy, partitioner, costs, "all states to one subtask"))
    return in_order(source, Shipping(ShipStrategy.PARTITION_HASH, PartitionerSpec("HASH", aggregate.keys), costs))
