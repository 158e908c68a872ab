"""From plans to job graphs: which vertices and phases each operator becomes."""

from __future__ import annotations

import msgspec
import pytest

from engine.graph.operator_descriptor import (
    HashAggregateOperator,
    HashJoinOperator,
    LimitOperator,
    ProjectOperator,
    SinkOperator,
    SortOperator,
)
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import ResultPartitionType
from engine.graph.source_spec import ArrowSource
from engine.ids import JobId
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, call, column, lit, schema

FOUR = OptimizerSettings(parallelism=4)
PAIR = schema(k="int64", v="int64")


def vertices(builder: Builder, settings: OptimizerSettings = FOUR):
    return generate_job_graph(optimize(builder.plan(), settings), JobId.random(), "job").vertices


def shape(builder: Builder, settings: OptimizerSettings = FOUR) -> list[tuple[str, int, list[str]]]:
    """Name, parallelism and partitioners of the inputs of every vertex."""
    found = vertices(builder, settings)
    return [
        (
            vertex.name,
            vertex.parallelism,
            [found[e.data_set.producer.index].outputs[e.data_set.output_index].partitioner.kind for e in vertex.inputs],
        )
        for vertex in found
    ]


def test_a_row_wise_job_is_one_vertex():
    builder = Builder()
    filtered = builder.filter(builder.source(PAIR), call("less", "k", lit(3)))
    builder.sink(builder.python(filtered))
    assert shape(builder) == [
        ("parquet source part.parquet -> map fn -> parquet sink out", 4, []),
    ]


def test_a_grouped_aggregate_is_partial_then_final():
    builder = Builder()
    builder.sink(builder.aggregate(builder.source(PAIR), ("k",), ("sum", "v"), ("count_all", None)))
    assert shape(builder) == [
        ("parquet source part.parquet -> aggregate arguments -> partial aggregate by k", 4, []),
        ("aggregate by k -> parquet sink out", 4, ["HASH"]),
    ]
    first, second = vertices(builder)
    arguments, partial = first.chain[1:]
    assert isinstance(arguments.operator, ProjectOperator)
    assert arguments.output_schema.names == ("k", "__arg0")
    assert [each.name for each in arguments.operator.expressions] == ["k", "__arg0"]
    expected = msgspec.structs.replace(
        second.chain[0].operator, phase="partial", rows_expected=partial.operator.rows_expected
    )
    assert partial.operator == expected
    assert partial.output_schema.names == ("k", "__state0_0", "__state1_0")
    assert second.chain[0].input_schemas == (partial.output_schema,)
    assert first.outputs[0].partitioner.keys == ("k",)
    assert not first.outputs[0].partitioner.spread_nulls


def test_one_subtask_aggregates_in_a_single_phase():
    builder = Builder()
    builder.sink(builder.aggregate(builder.source(PAIR), ("k",), ("sum", "v")))
    (vertex,) = vertices(builder, OptimizerSettings(parallelism=1))
    phases = [step.operator.phase for step in vertex.chain if isinstance(step.operator, HashAggregateOperator)]
    assert phases == ["single"]


def test_counting_all_rows_needs_no_argument_columns():
    builder = Builder()
    builder.sink(builder.aggregate(builder.source(PAIR), (), ("count_all", None)))
    assert shape(builder) == [
        ("parquet source part.parquet -> partial aggregate", 4, []),
        ("aggregate -> parquet sink out", 1, ["GLOBAL"]),
    ]
    partial = vertices(builder)[0].chain[-1]
    assert len(partial.input_schemas[0].columns) == 1


def test_distinct_groups_by_all_columns_without_a_projection():
    builder = Builder()
    builder.sink(builder.aggregate(builder.source(PAIR), ("k", "v")))
    assert shape(builder)[0][0] == "parquet source part.parquet -> partial distinct by k, v"


def test_a_sort_runs_in_one_subtask_and_so_does_what_follows():
    builder = Builder()
    ordered = builder.sort(builder.source(PAIR), "v")
    kept = builder.filter(ordered, call("greater", call("add", "k", "v"), lit(0)), parallelism=4)
    builder.sink(builder.project(kept, "k"), parallelism=4)
    assert shape(builder) == [
        ("parquet source part.parquet", 4, []),
        ("sort by v -> filter k + v > 0 -> project 1 column -> parquet sink out", 1, ["GLOBAL"]),
    ]


def test_a_top_is_chosen_in_every_subtask_first():
    builder = Builder()
    builder.sink(builder.sort(builder.source(PAIR), "v", limit=5))
    assert shape(builder) == [
        ("parquet source part.parquet -> local top 5 by v", 4, []),
        ("top 5 by v -> parquet sink out", 1, ["GLOBAL"]),
    ]
    sorts = [step.operator for vertex in vertices(builder) for step in vertex.chain]
    assert [each.limit for each in sorts if isinstance(each, SortOperator)] == [5, 5]


def test_a_limit_is_applied_in_every_subtask_first():
    builder = Builder()
    count = 9_000_000
    builder.sink(builder.limit(builder.source(PAIR, rows=count + 1), count))
    assert shape(builder) == [
        (f"parquet source part.parquet -> local limit {count}", 4, []),
        (f"limit {count} -> parquet sink out", 1, ["GLOBAL"]),
    ]
    operators = [step.operator for vertex in vertices(builder) for step in vertex.chain]
    assert operators.count(LimitOperator(count)) == 2


def test_a_union_is_one_input_of_many_data_sets():
    builder = Builder()
    first, second = builder.source(PAIR), builder.source(PAIR, splits=1)
    builder.sink(builder.union(first, second, first))
    assert shape(builder) == [
        ("parquet source part.parquet", 4, []),
        ("parquet source part.parquet", 1, []),
        ("union -> parquet sink out", 4, ["FORWARD", "REBALANCE", "FORWARD"]),
    ]
    union = vertices(builder)[2]
    assert [edge.input_index for edge in union.inputs] == [0, 0, 0]
    assert len({edge.data_set for edge in union.inputs}) == 3


def test_a_source_has_no_more_subtasks_than_splits_unless_told_so():
    for splits, set_by_user, expected in ((2, None, 2), (9, None, 4), (2, 3, 3)):
        builder = Builder()
        builder.sink(builder.source(PAIR, splits=splits, parallelism=set_by_user))
        assert vertices(builder)[0].parallelism == expected


def test_inline_rows_are_read_by_one_subtask():
    builder = Builder()
    source = builder.source(PAIR, splits=0)
    operator = builder.nodes[source].operator
    inline = msgspec.structs.replace(operator, spec=ArrowSource((), (), ("k", "v"), b"stream"))
    builder.nodes[source] = msgspec.structs.replace(builder.nodes[source], operator=inline)
    builder.sink(builder.aggregate(source, ("k",), ("sum", "v")))
    assert [vertex.parallelism for vertex in vertices(builder)] == [1, 4]


def test_a_parallelism_set_by_the_user_moves_rows():
    builder = Builder()
    builder.sink(builder.python(builder.source(PAIR, splits=2), parallelism=3))
    assert shape(builder) == [
        ("parquet source part.parquet", 2, []),
        ("map fn -> parquet sink out", 3, ["REBALANCE"]),
    ]


@pytest.mark.parametrize(
    ("how", "coalesce", "expected"),
    [
        (JoinType.INNER, True, ((0, 0), (0, 1), (1, 1))),
        (JoinType.LEFT, True, ((0, 0), (0, 1), (1, 1))),
        # the key is that of the side whose rows are all there
        (JoinType.RIGHT, True, ((1, 0), (0, 1), (1, 1))),
        (JoinType.RIGHT, False, ((0, 0), (0, 1), (1, 0), (1, 1))),
    ],
)
def test_the_output_of_a_join_says_where_each_column_is_from(how, coalesce, expected):
    builder = Builder()
    left = builder.source(PAIR)
    right = builder.source(schema(k="int64", w="int64") if coalesce else schema(k2="int64", w="int64"))
    if coalesce:
        builder.sink(builder.join(left, right, on="k", how=how))
    else:
        builder.sink(builder.join(left, right, left_on="k", right_on="k2", how=how))
    (join,) = [step for vertex in vertices(builder) for step in vertex.chain if "join" in step.name]
    assert isinstance(join.operator, HashJoinOperator)
    assert join.operator.output == expected
    assert len(join.output_schema.columns) == len(expected)


def test_a_repartitioned_join_spreads_null_keys():
    builder = Builder()
    left, right = builder.source(PAIR), builder.source(schema(k="int64", w="int64"))
    builder.sink(builder.join(left, right, on="k", hint=JoinHint.REPARTITION_HASH_FIRST))
    partitioners = [data_set.partitioner for vertex in vertices(builder) for data_set in vertex.outputs]
    assert [(each.kind, each.keys, each.spread_nulls) for each in partitioners] == [("HASH", ("k",), True)] * 2


def test_sinks_are_numbered_in_the_order_of_the_plan():
    builder = Builder()
    source = builder.source(PAIR)
    builder.sink(builder.project(source, "k"), "keys")
    builder.sink(builder.project(source, "v"), "values")
    sinks = [step.operator for vertex in vertices(builder) for step in vertex.chain]
    numbers = {each.spec.path: each.sink_index for each in sinks if isinstance(each, SinkOperator)}
    assert numbers == {"/data/keys": 0, "/data/values": 1}


def test_blocking_exchanges_are_blocking_data_sets():
    builder = Builder()
    builder.sink(builder.aggregate(builder.source(PAIR), ("k",), ("sum", "v")))
    for mode, expected in (("PIPELINED", ResultPartitionType.PIPELINED), ("BATCH", ResultPartitionType.BLOCKING)):
        settings = OptimizerSettings(parallelism=2, execution_mode=mode)
        assert vertices(builder, settings)[0].outputs[0].result_type is expected


def test_names_that_users_give_are_kept():
    builder = Builder()
    source = builder.source(PAIR, name="orders")
    builder.sink(builder.project(source, (column("x"), call("add", "k", "v")), name="sum of both"))
    assert shape(builder)[0][0] == "orders -> sum of both -> parquet sink out"
