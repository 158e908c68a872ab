"""Alternatives of the whole plan, bottom up: every node's candidates from its inputs' candidates.

    operator               parallelism                          strategies
    source                 set, else default (<= its splits)    -
    project filter python  set, else that of the input          -
    sink                   set, else that of the input          -
    union                  set, else the largest of the inputs  -
    join                   see join_planning.py                 pairs of ship strategies x build side
    aggregate with keys    set, else default                    SINGLE where the input lies grouped, PARTIAL_FINAL
    aggregate without      1                                    SINGLE, PARTIAL_FINAL
    sort, limit            see sort_planning.py                 in one subtask, or in order over several
    partition              see partition_planning.py            -
    reduce co_group        see function_planning.py             -

Whatever follows a sort without destroying its order stays in the sort's subtasks. At the end the cheapest candidate
of each sink is taken; a node with several consumers keeps one candidate, chosen before they are planned.

Source: Flink's OptimizerNode.getAlternativePlans.
"""

from __future__ import annotations

from engine.graph.plan import (
    Aggregate,
    CoGroup,
    Filter,
    GroupReduce,
    Join,
    Limit,
    Partition,
    Plan,
    PlanNode,
    Project,
    PythonFunction,
    Sink,
    Sort,
    Source,
    Union,
)
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.graph.source_spec import ArrowSource
from engine.optimizer.candidates import (
    GLOBAL,
    Candidate,
    CandidateInput,
    Shipping,
    cheapest,
    move,
    prune,
)
from engine.optimizer.function_planning import group_candidate, with_broadcasts
from engine.optimizer.join_planning import join_candidates
from engine.optimizer.partition_planning import partition_candidates
from engine.optimizer.properties import RANDOM, GlobalProperties, LocalProperties, hashed_by
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.sort_planning import in_order, limit_candidate, sort_candidate
from engine.optimizer.sorted_aggregates import with_sorted_aggregate
from engine.statistics.costs import Costs, local_cost, repartition_cost
from engine.statistics.estimates import Estimates, row_width


def enumerate_plan(plan: Plan, estimates: tuple[Estimates, ...], settings: OptimizerSettings) -> list[Candidate]:
    """Return the chosen candidate of every sink, in the order of ``plan.sinks``."""
    consumer_count = [0] * len(plan.nodes)
    for node in plan.nodes:
        for source in node.inputs:
            consumer_count[source] += 1
    found: list[list[Candidate]] = []
    for node in plan.nodes:
        inputs = [found[source] for source in node.inputs]
        candidates = _candidates(plan, node, estimates[node.id], inputs, settings)
        found.append(prune(candidates, to_one=consumer_count[node.id] != 1))
    return [cheapest(found[sink]) for sink in plan.sinks]


def _candidates(
    plan: Plan, node: PlanNode, estimates: Estimates, inputs: list[list[Candidate]], settings: OptimizerSettings
) -> list[Candidate]:
    match node.operator:
        case Source():
            return [_source(node, node.operator, estimates, settings)]
        case Join():
            return join_candidates(node, node.operator, estimates, inputs[0], inputs[1], settings)
        case Union():
            return _unions(node, estimates, inputs)
        case Aggregate():
            return [
                candidate
                for source in inputs[0]
                for candidate in _aggregates(node, node.operator, estimates, source, settings)
            ]
        case Sort():
            sorts = [sort_candidate(node, node.operator, estimates, source, settings) for source in inputs[0]]
            return [with_sorted_aggregate(plan, sort, settings) for sort in sorts]
        case Partition() as partition:
            return partition_candidates(plan, node, partition, estimates, inputs[0], settings)
        case GroupReduce() | CoGroup():
            return [group_candidate(node, node.operator, estimates, inputs, settings)]
        case Limit(count=count):
            return [limit_candidate(node, count, estimates, source) for source in inputs[0]]
        case _:
            return [with_broadcasts(_row_wise(node, estimates, source), inputs[1:]) for source in inputs[0]]


def _source(node: PlanNode, source: Source, estimates: Estimates, settings: OptimizerSettings) -> Candidate:
    split_count = max(1, len(source.spec.splits))
    if isinstance(source.spec, ArrowSource) and source.spec.inline is not None:
        # inline rows are read by whoever has the (only) split
        split_count = 1
    parallelism = node.parallelism if node.parallelism is not None else min(settings.parallelism, split_count)
    disk = estimates.size_bytes
    return Candidate(node, estimates, parallelism, costs=Costs(disk=disk, cpu=disk))


def _row_wise(node: PlanNode, estimates: Estimates, source: Candidate) -> Candidate:
    parallelism = source.parallelism
    if node.parallelism is not None and (not source.is_ordered or node.parallelism == 1):
        parallelism = node.parallelism
    shipping = in_order(source, move(source, parallelism))
    stays = not shipping.strategy.is_network or shipping.partitioner.in_order
    properties, order = RANDOM, LocalProperties()
    if stays:
        properties, order = _row_wise_properties(node, source)
    return Candidate(
        node,
        estimates,
        parallelism,
        (CandidateInput(source, shipping),),
        costs=local_cost(source.estimates, 0, parallelism),
        properties=properties,
        order=order,
    )


def _row_wise_properties(node: PlanNode, source: Candidate) -> tuple[GlobalProperties, LocalProperties]:
    match node.operator:
        case Project(expressions=expressions):
            return source.properties.projected(expressions), source.order
        case Filter() | Sink() | PythonFunction(kind="filter"):
            return source.properties, source.order
        case _:
            # a map of ordered rows returns them in that order, under other columns
            return RANDOM, source.order


def _unions(node: PlanNode, estimates: Estimates, inputs: list[list[Candidate]]) -> list[Candidate]:
    """Return the union of the cheapest candidates of its inputs (their properties seldom agree)."""
    sources = [cheapest(candidates) for candidates in inputs]
    parallelism = node.parallelism or max(source.parallelism for source in sources)
    shippings = [move(source, parallelism) for source in sources]
    properties = sources[0].properties
    for source, shipping in zip(sources, shippings, strict=True):
        if shipping.strategy.is_network or source.properties != properties:
            properties = RANDOM
    pairs = zip(sources, shippings, strict=True)
    channels = tuple(CandidateInput(source, shipping) for source, shipping in pairs)
    return [Candidate(node, estimates, parallelism, channels, properties=properties)]


def _aggregates(
    node: PlanNode, aggregate: Aggregate, estimates: Estimates, source: Candidate, settings: OptimizerSettings
) -> list[Candidate]:
    parallelism = (node.parallelism or settings.parallelism) if aggregate.keys else 1
    memory = settings.managed_bytes_per_slot // 2
    properties = hashed_by(aggregate.keys) if aggregate.keys else RANDOM
    is_grouped = source.parallelism == 1 or source.properties.groups(aggregate.keys)
    costs = local_cost(estimates, memory, parallelism, keeps_rows=True)
    if source.parallelism == parallelism and is_grouped:
        single = Candidate(
            node,
            estimates,
            parallelism,
            (CandidateInput(source, move(source, parallelism)),),
            "SINGLE",
            costs=costs + local_cost(source.estimates, memory, parallelism),
            properties=properties if source.parallelism == 1 else source.properties.kept(aggregate.keys),
        )
        return [single]
    shipping = partial_shipping(aggregate, estimates, source, parallelism)
    both = Candidate(
        node,
        estimates,
        parallelism,
        (CandidateInput(source, shipping),),
        "PARTIAL_FINAL",
        costs=costs + local_cost(source.estimates, memory, source.parallelism),
        properties=properties,
    )
    return [both]


def partial_shipping(aggregate: Aggregate, estimates: Estimates, source: Candidate, parallelism: int) -> Shipping:
    """Return how partial states travel: each producer sends at most one state per group."""
    rows = min(source.estimates.rows, estimates.rows * source.parallelism)
    size = rows * row_width(aggregate.state_schema, source.estimates.columns)
    states = Estimates(rows, size, "groups * producers, at most the rows")
    costs = repartition_cost(states, parallelism)
    if parallelism == 1:
        strategy, partitioner = ShipStrategy.PARTITION_RANDOM, GLOBAL
        if source.parallelism == 1:
            strategy, partitioner = ShipStrategy.FORWARD, PartitionerSpec("FORWARD")
        return in_order(source, Shipping(strategy, partitioner, costs, "all states to one subtask"))
    return in_order(source, Shipping(ShipStrategy.PARTITION_HASH, PartitionerSpec("HASH", aggregate.keys), costs))
