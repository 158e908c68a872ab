"""Partitionings that the user asks for: ``shuffle() rebalance() ... partition_custom()``.

    plan       settle_partitions      parallelism from the next operator; one exchange after another counts once
    candidate  partition_candidates   ship strategy and partitioner of the edge; RANGE is a sort by its keys
    physical   channel_descriptor     CUSTOM: the user's function, in the subtasks that send
               fold_partitions        the edge goes straight into the next operator

    kind        ship strategy                properties of what comes out
    SHUFFLE     PARTITION_RANDOM             -
    GLOBAL      PARTITION_RANDOM             -              all rows in subtask 0
    REBALANCE   PARTITION_FORCED_REBALANCE   -
    RESCALE     PARTITION_FORCED_REBALANCE   -              pointwise
    BROADCAST   BROADCAST                    -              every row once in each subtask
    FORWARD     FORWARD                      those of the input
    KEYGROUP    PARTITION_HASH               equal keys are together: group_by needs no exchange, a join does, because
                                             its other side lies by hash
    CUSTOM      PARTITION_CUSTOM             -
    RANGE       PARTITION_RANGE              in order: the runs of a sort are cut into even ranges without statistics

A partitioning is never left out for cost. While candidates are compared it is an operator of its own that does
nothing; where it has one reader that takes rows as they come, the edge is given to that reader afterwards. A
partitioning with a name stays visible as an operator.

Source: Flink's StreamPartitioner, PartitionTransformation.
Held by: tests/optimizer/test_partitionings.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from engine.errors import PlanError
from engine.graph.operator_descriptor import IdentityOperator, OperatorDescriptor, PythonOperator
from engine.graph.plan import Partition, Plan, PlanNode, Sort
from engine.graph.plan_schema import PlanSchema
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.graph.sort_key import SortKey
from engine.optimizer.candidates import FORWARD, Candidate, CandidateInput, Shipping
from engine.optimizer.logical_plan import LogicalPlan
from engine.optimizer.physical_plan import Channel, PhysicalNode
from engine.optimizer.properties import RANDOM, key_grouped_by
from engine.optimizer.settings import OptimizerSettings
from engine.optimizer.sort_planning import sort_candidate
from engine.statistics.costs import broadcast_cost, forward_cost, repartition_cost
from engine.statistics.estimates import Estimates

#: Flink's default and largest number of key groups
KEY_GROUPS_MIN: Final = 128
KEY_GROUPS_MAX: Final = 1 << 15

_STRATEGIES: Final = {
    "SHUFFLE": ShipStrategy.PARTITION_RANDOM,
    "GLOBAL": ShipStrategy.PARTITION_RANDOM,
    "REBALANCE": ShipStrategy.PARTITION_FORCED_REBALANCE,
    "RESCALE": ShipStrategy.PARTITION_FORCED_REBALANCE,
    "BROADCAST": ShipStrategy.BROADCAST,
    "KEYGROUP": ShipStrategy.PARTITION_HASH,
    "CUSTOM": ShipStrategy.PARTITION_CUSTOM,
}
#: kinds whose result does not depend on the previous partitioning, and that run no user function
_FORGETS_INPUT: Final = frozenset({"SHUFFLE", "GLOBAL", "BROADCAST", "KEYGROUP", "RANGE"})


def key_group_count(parallelism: int) -> int:
    """Return the number of key groups for so many subtasks: 128 up to 85 of them, then a power of two."""
    wanted = 1 << (parallelism + parallelism // 2 - 1).bit_length()
    return min(KEY_GROUPS_MAX, max(KEY_GROUPS_MIN, wanted))


# plan --------------------------------------------------------------------------------------------------------------


def settle_partitions(plan: LogicalPlan) -> None:
    """Give partitionings the parallelism of what reads them, and drop those that the next one makes void."""
    consumers = plan.consumers()
    for listed in reversed(plan.order()):
        node = plan.node(listed.id)
        if not isinstance(node.operator, Partition) or node.id not in consumers:
            continue
        readers = [plan.node(reader) for reader in consumers[node.id]]
        wanted = {None if isinstance(reader.operator, Partition) else reader.parallelism for reader in readers}
        if node.parallelism is None and len(wanted) == 1 and None not in wanted:
            node = plan.replace(node, parallelism=wanted.pop())
        while makes_void(node, inner := plan.node(node.inputs[0])) and consumers[inner.id] == [node.id]:
            node = plan.replace(node, inputs=inner.inputs)
            consumers = plan.consumers()


def makes_void(node: PlanNode, inner: PlanNode) -> bool:
    """Whether a partitioning has the same outcome without the one before it."""
    if not isinstance(node.operator, Partition) or not isinstance(inner.operator, Partition) or inner.name:
        return False
    if inner.operator.kind == "FORWARD":
        return node.operator.kind != "FORWARD" and inner.parallelism is None
    return inner.operator.kind != "BROADCAST" and node.operator.kind in _FORGETS_INPUT


# candidates --------------------------------------------------------------------------------------------------------


def partition_candidates(
    node: PlanNode,
    partition: Partition,
    estimates: Estimates,
    sources: list[Candidate],
    settings: OptimizerSettings,
) -> list[Candidate]:
    """Return the candidates of a partitioning; none for a forward between unequal parallelisms."""
    if partition.kind == "FORWARD":
        fitting = [source for source in sources if node.parallelism in (None, source.parallelism)]
        return [_forward(node, estimates, source) for source in fitting]
    if partition.kind == "RANGE":
        return [_range(node, partition, estimates, source, settings) for source in sources]
    parallelism = node.parallelism or settings.parallelism
    properties = key_grouped_by(partition.keys) if partition.kind == "KEYGROUP" else RANDOM
    if partition.kind == "BROADCAST":
        size = estimates.size_bytes * parallelism if estimates.is_size_known else estimates.size_bytes
        origin = f"rows of the input in {parallelism} subtasks"
        estimates = msgspec.structs.replace(
            estimates, rows=estimates.rows * parallelism, size_bytes=size, origin=origin
        )
    return [
        Candidate(
            node,
            estimates,
            parallelism,
            (CandidateInput(source, _shipping(partition, source, parallelism)),),
            properties=properties,
        )
        for source in sources
    ]


def _forward(node: PlanNode, estimates: Estimates, source: Candidate) -> Candidate:
    shipping = Shipping(ShipStrategy.FORWARD, FORWARD, forward_cost(), "asked for")
    return Candidate(
        node,
        estimates,
        source.parallelism,
        (CandidateInput(source, shipping),),
        properties=source.properties,
        order=source.order,
    )


def _range(
    node: PlanNode, partition: Partition, estimates: Estimates, source: Candidate, settings: OptimizerSettings
) -> Candidate:
    sort = Sort(tuple(SortKey(key) for key in partition.keys))
    name = node.name or f"range partitioning by {', '.join(partition.keys)}, by a sort"
    parallelism = node.parallelism or settings.parallelism
    sorting = msgspec.structs.replace(node, operator=sort, name=name, parallelism=parallelism)
    return sort_candidate(sorting, sort, estimates, source, settings)


def forward_error(plan: Plan, node: PlanNode, source: Candidate, name_of: Callable[[PlanNode], str]) -> PlanError:
    """Return the error of a forward without a candidate."""
    readers = [reader for reader in plan.consumers_of(node.id) if reader.parallelism == node.parallelism]
    below = name_of(readers[0] if readers else node)
    return PlanError(
        "Forward partitioning does not allow change of parallelism: "
        f"upstream operation {name_of(source.node)!r} has parallelism {source.parallelism}, "
        f"downstream operation {below!r} has parallelism {node.parallelism}; "
        "use another partitioning, such as rebalance(), rescale(), shuffle(), broadcast() or global_()"
    )


def _shipping(partition: Partition, source: Candidate, parallelism: int) -> Shipping:
    kind, keys = partition.kind, partition.keys
    if kind == "BROADCAST":
        costs = broadcast_cost(source.estimates, parallelism)
    else:
        share = source.estimates.heaviest_share(keys) if keys else 0.0
        costs = repartition_cost(source.estimates, parallelism, share)
    if kind == "CUSTOM":
        assert partition.channel_column is not None
        assert partition.function is not None
        spec = PartitionerSpec(kind, (partition.channel_column.name,))
        return Shipping(_STRATEGIES[kind], spec, costs, f"asked for: {partition.function.function_name}")
    spec = PartitionerSpec(kind, keys, max_parallelism=key_group_count(parallelism))
    return Shipping(_STRATEGIES[kind], spec, costs, "asked for")


# physical operators ------------------------------------------------------------------------------------------------


def channel_descriptor(candidate: Candidate, partition: Partition, schema: PlanSchema) -> OperatorDescriptor:
    """Return the operator that gives rows of the producer's schema their channel (CUSTOM)."""
    function, column = partition.function, partition.channel_column
    assert function is not None
    assert column is not None
    operator = PythonOperator(
        function.kind,
        function.function,
        function.function_name,
        function.file,
        function.line,
        keys=partition.keys,
        channel_count=candidate.parallelism,
    )
    name = f"channel by {function.function_name}"
    output = PlanSchema((*schema.columns, column))
    return OperatorDescriptor(candidate.node.id, name, operator, (schema,), output)


def fold_partitions(nodes: list[PhysicalNode], plan: Plan) -> list[PhysicalNode]:
    """Give the edges of partitionings to their readers and number the nodes that are left anew."""
    readers: list[list[tuple[PhysicalNode, Channel]]] = [[] for _ in nodes]
    for node in nodes:
        for channel in node.inputs:
            readers[channel.source].append((node, channel))
    folded = {node.id for node in nodes if _is_foldable(node, readers[node.id], plan)}
    if not folded:
        return nodes
    position = {node.id: index for index, node in enumerate(node for node in nodes if node.id not in folded)}
    kept = []
    for node in nodes:
        if node.id in folded:
            continue
        costs = node.costs
        channels = []
        for channel in node.inputs:
            replaced = channel
            while replaced.source in folded:
                partition = nodes[replaced.source]
                costs += partition.costs
                replaced = msgspec.structs.replace(partition.inputs[0], input_index=channel.input_index)
            channels.append(msgspec.structs.replace(replaced, source=position[replaced.source]))
        kept.append(msgspec.structs.replace(node, id=position[node.id], inputs=tuple(channels), costs=costs))
    return kept


def _is_foldable(node: PhysicalNode, readers: list[tuple[PhysicalNode, Channel]], plan: Plan) -> bool:
    asked_for = plan.nodes[node.plan_node]
    if not isinstance(asked_for.operator, Partition) or not isinstance(node.descriptor.operator, IdentityOperator):
        return False
    if asked_for.name or len(readers) != 1:
        return False
    reader, channel = readers[0]
    return channel.ship_strategy is ShipStrategy.FORWARD and not reader.is_local_phase
