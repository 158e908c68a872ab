"""Partitionings of the user's and replicated sources: what becomes of them in the plan, without running anything."""

from __future__ import annotations

import msgspec
import pytest

from engine.errors import PlanError
from engine.graph.operator_descriptor import PythonOperator, SourceOperator
from engine.graph.plan import Partition, PythonFunction
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import PartitionerSpec
from engine.optimizer.optimizer import optimize
from engine.optimizer.partition_planning import key_group_count
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, column, lit, schema
from tests.optimizer.test_physical_operators import FOUR, shape

PAIR = schema(k="int64", v="int64")
LESS = call("less", "k", lit(3))


def partition(builder: Builder, source: int, kind: str, *keys: str, **rest: object) -> int:
    function = PythonFunction("partition", b"pickle", "fn", "job.py", 7) if kind == "CUSTOM" else None
    channel = column("__channel", "int32") if kind == "CUSTOM" else None
    return builder.add(Partition(kind, keys, function, channel), (source,), builder.schema(source), **rest)


def channels(builder: Builder, settings: OptimizerSettings = FOUR) -> list[tuple[str, str]]:
    """Return (ship strategy, partitioner) of every edge that leaves its subtask."""
    nodes = optimize(builder.plan(), settings).nodes
    found = [channel for node in nodes for channel in node.inputs if channel.partitioner.kind != "FORWARD"]
    return [(channel.ship_strategy.value, channel.partitioner.kind) for channel in found]


@pytest.mark.parametrize(
    ("parallelism", "groups"), [(1, 128), (85, 128), (86, 256), (200, 512), (1000, 2048), (100_000, 32768)]
)
def test_key_groups_are_as_many_as_in_flink(parallelism: int, groups: int) -> None:
    assert key_group_count(parallelism) == groups


@pytest.mark.parametrize(
    ("kind", "keys", "strategy"),
    [
        ("SHUFFLE", (), "PARTITION_RANDOM"),
        ("GLOBAL", (), "PARTITION_RANDOM"),
        ("REBALANCE", (), "PARTITION_FORCED_REBALANCE"),
        ("RESCALE", (), "PARTITION_FORCED_REBALANCE"),
        ("BROADCAST", (), "BROADCAST"),
        ("KEYGROUP", ("k",), "PARTITION_HASH"),
        ("CUSTOM", ("k",), "PARTITION_CUSTOM"),
    ],
)
def test_the_edge_goes_straight_into_the_next_operator(kind: str, keys: tuple[str, ...], strategy: str) -> None:
    builder = Builder()
    builder.sink(builder.filter(partition(builder, builder.source(PAIR), kind, *keys), LESS, parallelism=3))
    assert channels(builder) == [(strategy, kind)]
    *_, last = shape(builder)
    assert last == ("filter k < 3 -> parquet sink out", 3, [kind])


def test_a_custom_partitioning_runs_its_function_where_rows_come_from() -> None:
    builder = Builder()
    source = builder.source(schema(k="int64", v="int64", w="int64"))
    builder.sink(builder.project(partition(builder, source, "CUSTOM", "k", parallelism=3), "v"))
    plan = optimize(builder.plan(), FOUR)
    (chooser,) = (node for node in plan.nodes if isinstance(node.descriptor.operator, PythonOperator))
    assert chooser.parallelism == 4
    assert (chooser.descriptor.operator.keys, chooser.descriptor.operator.channel_count) == (("k",), 3)
    assert chooser.descriptor.output_schema.names == ("k", "v", "__channel")
    ((_, channel),) = plan.consumers_of(chooser.id)
    assert channel.partitioner == PartitionerSpec("CUSTOM", ("__channel",))
    assert channel.partitioner.travelling(chooser.descriptor.output_schema).names == ("k", "v")


def test_a_partitioning_with_two_readers_stays_an_operator() -> None:
    builder = Builder()
    spread = partition(builder, builder.source(PAIR), "SHUFFLE")
    builder.sink(builder.filter(spread, LESS), "one")
    builder.sink(builder.python(spread), "two")
    assert channels(builder) == [("PARTITION_RANDOM", "SHUFFLE")]
    assert ("shuffle", 4, ["SHUFFLE"]) in shape(builder)


def test_key_by_serves_group_by_and_not_joins() -> None:
    builder = Builder()
    keyed = partition(builder, builder.source(PAIR), "KEYGROUP", "k")
    builder.sink(builder.aggregate(keyed, ("k",), ("sum", "v")))
    assert channels(builder) == [("PARTITION_HASH", "KEYGROUP")]
    builder = Builder()
    left = partition(builder, builder.source(PAIR), "KEYGROUP", "k")
    right = builder.source(schema(k="int64", w="int64"))
    builder.sink(builder.join(left, right, on="k", hint=JoinHint.REPARTITION_HASH_SECOND))
    assert sorted(kind for _, kind in channels(builder)) == ["HASH", "HASH", "KEYGROUP"]


def test_key_groups_of_some_keys_group_by_more_and_are_lost_with_them() -> None:
    builder = Builder()
    keyed = partition(builder, builder.source(PAIR), "KEYGROUP", "k")
    builder.sink(builder.aggregate(keyed, ("k", "v"), ("count_all", None)))
    assert channels(builder) == [("PARTITION_HASH", "KEYGROUP")]
    builder = Builder()
    keyed = partition(builder, builder.source(PAIR), "KEYGROUP", "k")
    builder.sink(builder.aggregate(keyed, ("v",), ("count_all", None)))
    assert sorted(kind for _, kind in channels(builder)) == ["HASH", "KEYGROUP"]


@pytest.mark.parametrize(
    ("kinds", "left"),
    [
        (("SHUFFLE", "GLOBAL"), ["GLOBAL"]),
        (("REBALANCE", "SHUFFLE", "BROADCAST"), ["BROADCAST"]),
        (("BROADCAST", "SHUFFLE"), ["BROADCAST", "SHUFFLE"]),
        (("SHUFFLE", "RESCALE"), ["SHUFFLE", "RESCALE"]),
        (("FORWARD", "RESCALE"), ["RESCALE"]),
        (("SHUFFLE", "FORWARD"), ["SHUFFLE"]),
        (("FORWARD", "FORWARD"), []),
    ],
)
def test_of_two_in_a_row_the_last_counts_where_it_forgets_the_first(kinds: tuple[str, ...], left: list[str]) -> None:
    builder = Builder()
    node = builder.source(PAIR)
    for kind in kinds:
        node = partition(builder, node, kind)
    builder.sink(builder.filter(node, LESS))
    assert [kind for _, kind in channels(builder)] == left


def test_forward_into_another_parallelism_is_an_error() -> None:
    builder = Builder()
    forwarded = partition(builder, builder.source(PAIR), "FORWARD")
    builder.sink(builder.filter(forwarded, LESS, parallelism=3))
    with pytest.raises(PlanError, match=r"source part\.parquet' has parallelism 4.*'filter k < 3' has parallelism 3"):
        optimize(builder.plan(), FOUR)


def test_only_used_columns_travel() -> None:
    builder = Builder()
    source = builder.source(schema(k="int64", v="int64", w="string"))
    builder.sink(builder.project(partition(builder, source, "KEYGROUP", "k"), "v"))
    (read, *_) = optimize(builder.plan(), FOUR).nodes
    assert read.descriptor.output_schema.names == ("k", "v")


def replicated(builder: Builder, node: int) -> int:
    changed = msgspec.structs.replace(builder.nodes[node].operator, is_replicated=True)
    builder.nodes[node] = msgspec.structs.replace(builder.nodes[node], operator=changed)
    return node


def sources_read(builder: Builder) -> list[tuple[int, bool]]:
    """Return (parallelism, is replicated) of each source."""
    nodes = optimize(builder.plan(), FOUR).nodes
    return [
        (node.parallelism, node.descriptor.operator.is_replicated)
        for node in nodes
        if isinstance(node.descriptor.operator, SourceOperator)
    ]


@pytest.mark.parametrize("how", JoinType)
@pytest.mark.parametrize("side", [0, 1])
def test_a_replicated_side_needs_no_exchange_where_it_may_be_broadcast(how: JoinType, side: int) -> None:
    builder = Builder()
    nodes = [builder.source(PAIR, path="a.parquet"), builder.source(schema(r="int64", w="int64"), path="b.parquet")]
    replicated(builder, nodes[side])
    builder.sink(builder.join(*nodes, how=how, left_on="k", right_on="r"))
    may_be = how in (
        (JoinType.INNER, JoinType.RIGHT, JoinType.CROSS)
        if side == 0
        else (JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI, JoinType.CROSS)
    )
    assert sources_read(builder)[side] == (4, may_be)
    assert (channels(builder) == []) is may_be
    assert not sources_read(builder)[1 - side][1]


def test_a_replicated_source_is_read_once_for_everything_else() -> None:
    builder = Builder()
    small = replicated(builder, builder.source(schema(r="int64", w="int64"), path="b.parquet"))
    joined = builder.join(
        builder.source(PAIR), builder.filter(small, call("less", "r", lit(3))), left_on="k", right_on="r"
    )
    builder.sink(joined, "one")
    builder.sink(small, "two")
    assert sorted(sources_read(builder)) == [(4, False), (4, False), (4, True)]


def test_a_hint_of_the_join_wins_over_replication() -> None:
    builder = Builder()
    small = replicated(builder, builder.source(schema(k="int64", w="int64"), path="b.parquet"))
    builder.sink(builder.join(builder.source(PAIR), small, on="k", hint=JoinHint.REPARTITION_HASH_FIRST))
    assert [kind for _, kind in channels(builder)] == ["HASH", "HASH"]


def test_a_pruned_source_keeps_its_rate() -> None:
    builder = Builder()
    node = builder.source(PAIR)
    slow = msgspec.structs.replace(builder.nodes[node].operator, rate_limit=10.0)
    builder.nodes[node] = msgspec.structs.replace(builder.nodes[node], operator=slow)
    builder.sink(builder.project(node, "v"))
    (read, *_) = optimize(builder.plan(), FOUR).nodes
    assert read.descriptor.operator.spec.columns == ("v",)
    assert read.descriptor.operator.rate_limit == 10.0
