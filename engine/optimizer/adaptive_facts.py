"""Facts of the plan for run-time decisions, and the lines of ``explain`` about them.

    with_adaptive_facts(job_graph, optimized, chains)     sizes that were expected, what may become of each join
    adaptive_text(optimized, node)                        "may become broadcast when left <= 1.4 GB", or ""

A join may change how its inputs travel only when no consumer relies on where its rows lie: the operators after it, up
to the next exchange, take rows as they come (``Traits.takes_any_rows``), or are joins whose other input is broadcast. A
hint is an order: a hinted join stays as it was told. A broadcast join with heavy keys stays one: what is written
already cannot be split any more.

A broadcast input whose size is a guess is written in hash partitions by the join's keys, of which every subtask reads
all: as many bytes, and should it be too large, each subtask reads its own partition instead.

Expected sizes are those of rows as they are stored, as real ones are: two narrow columns take twice their bytes there.
An expected size is *certain* when a source's statistics, projections, unions, sorts and limits are all that lead to it.

Held by: tests/adaptive/test_decisions.py
Held by: tests/optimizer/test_heavy_keys.py
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from engine.adaptive.costs import SWITCH_FACTOR, broadcast_limit
from engine.adaptive.decisions import CHANNELS_MAX, SIDES
from engine.adaptive.graph_shape import input_edge, is_plain_hash, with_data_set, with_edge, with_vertices
from engine.adaptive.skew import why_whole
from engine.graph.exchange_mode import DataExchangeMode, ExecutionMode
from engine.graph.job_graph import IntermediateDataSet, JobGraph, JobVertex
from engine.graph.operator_descriptor import (
    HashJoinOperator,
    JoinOperator,
    PythonOperator,
    SortMergeJoinOperator,
    SourceOperator,
)
from engine.graph.plan import Join, Partition
from engine.graph.run_time_decision import AdaptiveJoin, AdaptiveSettings, ExpectedSize
from engine.graph.ship_strategy import PartitionerSpec, ShipStrategy
from engine.optimizer.heavy_keys import has_heavy_keys
from engine.optimizer.join_alternatives import BF, FB, FF, HH, LocalStrategy, correct_pairs, offered_alternatives
from engine.optimizer.physical_plan import Channel, OptimizedPlan, PhysicalNode
from engine.shown_sizes import size_text
from engine.statistics.estimates import Estimates, stored


def with_adaptive_facts(job_graph: JobGraph, optimized: OptimizedPlan, chains: Sequence[Sequence[int]]) -> JobGraph:
    """Return the graph with what run-time decisions look at; ``chains`` are the physical nodes of each vertex."""
    settings = optimized.settings
    if not settings.is_adaptive:
        return job_graph
    vertices = []
    for vertex, chain in zip(job_graph.vertices, chains, strict=True):
        nodes = [optimized.nodes[node_id] for node_id in chain]
        expected = _expected(nodes[-1], is_certain=_is_certain(optimized, nodes[-1].id))
        outputs = tuple(msgspec.structs.replace(data_set, expected=expected) for data_set in vertex.outputs)
        facts = adaptive_join(optimized, nodes[0])
        is_fixed = any(_fixes_parallelism(optimized, node) for node in nodes)
        changed = msgspec.structs.replace(vertex, outputs=outputs, adaptive_join=facts, is_parallelism_fixed=is_fixed)
        vertices.append(changed)
    adaptive = AdaptiveSettings(
        ExecutionMode(settings.execution_mode).value,
        settings.page_budget,
        settings.adaptive_bytes_per_subtask,
        settings.split_factor,
        settings.skew_bytes,
    )
    job_graph = msgspec.structs.replace(job_graph, vertices=tuple(vertices), adaptive=adaptive)
    for vertex in vertices:
        job_graph = _with_hashed_broadcast(job_graph, vertex)
    return job_graph


def adaptive_join(optimized: OptimizedPlan, node: PhysicalNode) -> AdaptiveJoin | None:
    """Return the facts of a join for run-time decisions; None for other operators and where a hint decided."""
    join = optimized.plan.node(node.plan_node).operator
    operator = node.descriptor.operator
    if not isinstance(operator, HashJoinOperator | SortMergeJoinOperator) or not isinstance(join, Join):
        return None
    if len(node.inputs) != len(SIDES):
        return None  # it reads the inputs of a union itself
    if isinstance(operator, HashJoinOperator) and operator.shares_marks:
        return None  # only the side that is broadcast may be built
    ships = tuple(channel.ship_strategy for channel in node.inputs)
    relied_on = _is_relied_on(optimized, node)
    is_shuffled = ships == (ShipStrategy.PARTITION_HASH, ShipStrategy.PARTITION_HASH)
    if node.hint:
        return AdaptiveJoin(why_whole=_why_whole(join, node, is_relied_on=relied_on, is_shuffled=is_shuffled))
    offered = offered_alternatives(join, one_subtask=node.parallelism == 1)
    pair = HH if node.parallelism > 1 else FF
    built = {each.variant.strategy for each in offered if each.pair == pair}
    may_build = (LocalStrategy.HASH_BUILD_FIRST in built, LocalStrategy.HASH_BUILD_SECOND in built)
    if ShipStrategy.BROADCAST in ships:
        hashed = isinstance(operator, HashJoinOperator) and HH in correct_pairs(join)
        sides = tuple(optimized.nodes[channel.source].estimates for channel in node.inputs)
        heavy = has_heavy_keys(join, node.estimates.rows, (sides[0], sides[1]), node.parallelism)
        may_repartition = hashed and not relied_on and node.parallelism > 1 and not heavy
        why = _why_whole(join, node, is_relied_on=relied_on, is_shuffled=may_repartition)
        return AdaptiveJoin(may_repartition=may_repartition, may_build=may_build, why_whole=why)
    may_move = is_shuffled and node.parallelism > 1 and not relied_on
    broadcast = {each.pair for each in offered} if may_move else set()
    why = _why_whole(join, node, is_relied_on=relied_on, is_shuffled=is_shuffled)
    return AdaptiveJoin((BF in broadcast, FB in broadcast), may_build=may_build, why_whole=why)


def _why_whole(
    join: Join, node: PhysicalNode, *, is_relied_on: bool, is_shuffled: bool
) -> tuple[str | None, str | None]:
    """Return the reasons why the inputs of a join are not split if they are skewed; None: not asked."""
    is_moved = any(channel.ship_strategy is ShipStrategy.PARTITION_HASH for channel in node.inputs)
    if node.parallelism == 1 or not (is_moved or is_shuffled):
        return None, None
    return why_whole(join, is_relied_on=is_relied_on, is_shuffled=is_shuffled)


def adaptive_text(optimized: OptimizedPlan, node: PhysicalNode) -> str:
    """Describe how the real size of an input may change a join; "" where it changes nothing."""
    facts = adaptive_join(optimized, node) if optimized.settings.is_adaptive else None
    if facts is None:
        return ""
    splits = _split_text(optimized, node, facts)
    if any(channel.is_pipelined for channel in node.inputs if channel.ship_strategy.is_network):
        return f"not {splits}: rows are not stored between tasks (PIPELINED)" if splits else ""
    limits = []
    for side, channel in enumerate(node.inputs):
        other = node.inputs[1 - side]
        stay = _stored(optimized.nodes[other.source])
        is_open = stay.is_size_known and not _is_certain(optimized, channel.source)
        limit = broadcast_limit(stay, node.parallelism, optimized.settings.page_budget.operator_bytes)
        expected = _stored(optimized.nodes[channel.source]).size_bytes
        if is_open and facts.may_broadcast[side] and _are_plain(node.inputs):
            limits.append(f"broadcast when {SIDES[side]} <= {size_text(min(limit, expected / SWITCH_FACTOR))}")
        elif is_open and facts.may_repartition and channel.ship_strategy is ShipStrategy.BROADCAST:
            limits.append(f"repartitioned when {SIDES[side]} > {size_text(max(limit, expected * SWITCH_FACTOR))}")
    return "; ".join([f"may become {' or '.join(limits)}"] * bool(limits) + [splits] * bool(splits))


def _split_text(optimized: OptimizedPlan, node: PhysicalNode, facts: AdaptiveJoin) -> str:
    """Describe the inputs whose keys are unknown and would be split if skewed, "" where none."""
    join = optimized.plan.node(node.plan_node).operator
    assert isinstance(join, Join), f"{node.id} is no join"
    sides = []
    for side, keys in enumerate((join.left_keys, join.right_keys)):
        columns = optimized.nodes[node.inputs[side].source].estimates.columns
        is_known = all(key in columns for key in keys)
        if facts.why_whole[side] == "" and not is_known and _are_plain(node.inputs):
            sides.append(SIDES[side])
    return f"split if {' or '.join(sides)} is skewed" if sides and optimized.settings.split_factor > 0 else ""


def _are_plain(channels: Sequence[Channel]) -> bool:
    return all(is_plain_hash(channel.partitioner) for channel in channels)


def _expected(node: PhysicalNode, *, is_certain: bool) -> ExpectedSize | None:
    estimates = _stored(node)
    if not estimates.is_size_known:
        return None
    return ExpectedSize(estimates.rows, estimates.size_bytes, is_certain)


def _stored(node: PhysicalNode) -> Estimates:
    """Return the estimates of a node in the bytes that are measured when its rows are stored."""
    return stored(node.estimates, node.descriptor.output_schema)


def _is_certain(optimized: OptimizedPlan, node_id: int) -> bool:
    """Whether the size of a node is not a guess: sources that are read whole lead to it, and what keeps their size."""
    waiting, seen = [node_id], {node_id}
    while waiting:
        node = optimized.nodes[waiting.pop()]
        operator = node.descriptor.operator
        if isinstance(operator, SourceOperator) and getattr(operator.spec, "predicate", None) is None:
            continue
        if not operator.traits.keeps_size:
            return False
        sources = {channel.source for channel in node.inputs} - seen
        seen |= sources
        waiting += sources
    return True


def _fixes_parallelism(optimized: OptimizedPlan, node: PhysicalNode) -> bool:
    operator = node.descriptor.operator
    planned = optimized.plan.node(node.plan_node)
    # Rows that the user spreads stay spread, however few they are.
    nodes = (planned, *(optimized.plan.node(source) for source in planned.inputs))
    is_set = planned.parallelism is not None or any(isinstance(one.operator, Partition) for one in nodes)
    return is_set or isinstance(operator, SourceOperator | PythonOperator)


def _is_relied_on(optimized: OptimizedPlan, join: PhysicalNode) -> bool:
    """Whether an operator after a join needs its rows where the join's exchange put them."""
    stack = [join.id]
    while stack:
        for consumer, channel in optimized.consumers_of(stack.pop()):
            if channel.ship_strategy.is_network:
                continue
            if not _takes_any_rows(consumer):
                return True
            stack.append(consumer.id)
    return False


def _takes_any_rows(node: PhysicalNode) -> bool:
    operator = node.descriptor.operator
    if isinstance(operator, JoinOperator):
        return any(channel.ship_strategy is ShipStrategy.BROADCAST for channel in node.inputs)
    return operator.traits.takes_any_rows


def _with_hashed_broadcast(job_graph: JobGraph, vertex: JobVertex) -> JobGraph:
    """Write a broadcast input of unknown size in hash partitions, all of which every subtask reads."""
    operator = vertex.chain[0].operator
    if vertex.adaptive_join is None or not vertex.adaptive_join.may_repartition:
        return job_graph
    assert isinstance(operator, HashJoinOperator), f"{vertex.id} is no hash join"
    edge = input_edge(vertex, operator.first_input)
    data_set = job_graph.data_set(edge.data_set)
    stay = job_graph.data_set(input_edge(vertex, 1 - operator.first_input).data_set)
    if not _may_be_too_large(job_graph, vertex, data_set) or stay.expected is None:
        facts = msgspec.structs.replace(vertex.adaptive_join, may_repartition=False)
        return with_vertices(job_graph, [msgspec.structs.replace(vertex, adaptive_join=facts)])
    keys = operator.left_keys if operator.build_left else operator.right_keys
    hashed = PartitionerSpec("HASH", keys, spread_nulls=True)
    job_graph = with_data_set(
        job_graph, msgspec.structs.replace(data_set, partitioner=hashed, subpartition_count=vertex.parallelism)
    )
    whole = ((0, vertex.parallelism),) * vertex.parallelism
    return with_edge(job_graph, vertex.id, msgspec.structs.replace(edge, ranges=whole))


def _may_be_too_large(job_graph: JobGraph, vertex: JobVertex, data_set: IntermediateDataSet) -> bool:
    producers = job_graph.vertex(data_set.id.producer).parallelism
    return (
        data_set.partitioner.kind == "BROADCAST"
        and data_set.result_type is DataExchangeMode.BATCH.result_type
        and data_set.expected is not None
        and not data_set.expected.is_certain
        and producers * vertex.parallelism <= CHANNELS_MAX
    )
