"""What real sizes change in a plan, as tables: join strategies, build sides, parallelism, and who waits for whom."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.adaptive.changes import apply, replay
from engine.adaptive.costs import (
    broadcast_costs,
    broadcast_limit,
    prefers_broadcast,
    repartition_costs,
)
from engine.adaptive.decisions import CHANNELS_MAX, decide
from engine.adaptive.graph_shape import DataSetSize, input_edge, is_divisible
from engine.adaptive.order import waits
from engine.errors import PlanError
from engine.graph.contiguous_runs import contiguous_runs, runs_needed
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.job_graph import JobGraph
from engine.graph.operator_descriptor import HashJoinOperator, SortMergeJoinOperator
from engine.graph.run_time_decision import BroadcastInput, RunTimeDecision, SubtaskRanges
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.ship_strategy import HeavyKeys, PartitionerSpec, ResultPartitionType
from engine.ids import JobId, JobVertexId
from engine.memory.page_budget import PageBudget
from engine.optimizer.explain import explain
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from engine.statistics.estimates import Estimates
from tests.optimizer.plan_building import Builder, call, lit, schema

BATCH = OptimizerSettings(parallelism=4, execution_mode=ExecutionMode.BATCH)
LEFT, RIGHT, JOIN = JobVertexId(0), JobVertexId(1), JobVertexId(2)
KB, MB = 1000, 1_000_000


def join_plan(
    how: JoinType = JoinType.INNER,
    left_rows: float = 1e6,
    right_rows: float = 1e6,
    guess: str = "right",
    hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES,
    then: str = "",
    parallelism: int | None = None,
    splits: int = 4,
):
    """Left and right tables, one of them through a filter whose share is a guess, joined, and what follows."""
    builder = Builder()
    left = builder.source(schema(k="int64", v="int64"), rows=left_rows, splits=splits)
    right = builder.source(schema(k="int64", w="int64"), rows=right_rows)
    guessed = {"left": left, "right": right}.get(guess)
    if guessed is not None:
        guessed = builder.python(guessed, "filter")
    left, right = (guessed, right) if guess == "left" else (left, guessed if guess == "right" else right)
    joined = builder.join(left, right, on="k", how=how, hint=hint, parallelism=parallelism)
    if then == "aggregate":
        joined = builder.aggregate(joined, ("k",), ("count_all", None))
    builder.sink(joined)
    return builder.plan()


def graph_of(plan, settings: OptimizerSettings = BATCH) -> JobGraph:
    return generate_job_graph(optimize(plan, settings), JobId("a" * 32), "job")


def joins_only(**settings) -> OptimizerSettings:
    return msgspec.structs.replace(BATCH, adaptive_bytes_per_subtask=0, **settings)


def size(total: int, count: int = 4) -> DataSetSize:
    return DataSetSize(max(1, total // 16), total, (total // count,) * count)


def finished(graph: JobGraph, **sizes: int) -> tuple[RunTimeDecision, ...]:
    """Decide when the left or the right input of the join is finished with so many bytes, its producer having begun."""
    sides = {"left": 0, "right": 1}
    join = graph.vertex(JOIN)
    found = {input_edge(join, sides[side]).data_set: size(total) for side, total in sizes.items()}
    return decide(graph, found, {data_set.producer for data_set in found})


@pytest.mark.parametrize(
    ("how", "guess", "real", "kind"),
    [
        (JoinType.INNER, "right", 10 * KB, "BROADCAST"),
        (JoinType.INNER, "left", 10 * KB, "BROADCAST"),
        (JoinType.INNER, "right", 8 * MB, None),
        (JoinType.INNER, "right", 5_900 * KB, "BROADCAST"),
        (JoinType.INNER, "right", 6_100 * KB, None),
        (JoinType.INNER, "right", 80 * MB, None),
        (JoinType.LEFT, "right", 10 * KB, "BROADCAST"),
        (JoinType.LEFT, "left", 10 * KB, None),
        (JoinType.RIGHT, "left", 10 * KB, "BROADCAST"),
        (JoinType.RIGHT, "right", 10 * KB, None),
        (JoinType.FULL, "right", 10 * KB, None),
        (JoinType.FULL, "left", 10 * KB, None),
        (JoinType.SEMI, "left", 10 * KB, None),
        (JoinType.ANTI, "left", 10 * KB, None),
    ],
)
def test_a_small_input_is_broadcast_where_the_type_allows_it(how, guess, real, kind):
    graph = graph_of(join_plan(how, guess=guess), joins_only())
    decisions = finished(graph, **{guess: real})
    assert [decision.kind for decision in decisions] == ([kind] if kind else [])
    if kind:
        other = "right" if guess == "left" else "left"
        assert decisions[0].became == f"broadcast {guess}"
        assert f"{other} is not shuffled" in decisions[0].reason
        assert decisions[0].real_bytes == real and decisions[0].expected_bytes == 12 * MB


def test_the_small_input_is_read_whole_and_the_other_one_stays_where_it_is():
    graph = graph_of(join_plan(), joins_only())
    changed = replay(graph, finished(graph, right=10 * KB))
    join = changed.vertex(JOIN)
    small, stay = input_edge(join, 1), input_edge(join, 0)
    assert small.ranges == ((0, 4),) * 4 and changed.data_set(small.data_set).subpartition_count == 4
    assert changed.data_set(small.data_set).partitioner == graph.data_set(small.data_set).partitioner
    assert changed.data_set(stay.data_set).partitioner.kind == "FORWARD"
    assert changed.data_set(stay.data_set).result_type is ResultPartitionType.PIPELINED
    assert not join.chain[0].operator.build_left


@pytest.mark.parametrize(
    ("mode", "pages", "result_type"),
    [
        (ExecutionMode.BATCH_FORCED, 1000, ResultPartitionType.BLOCKING),
        (ExecutionMode.BATCH, 11, ResultPartitionType.BLOCKING),
        (ExecutionMode.BATCH, 12, ResultPartitionType.PIPELINED),
    ],
)
def test_what_cannot_run_together_is_stored_all_the_same(mode, pages, result_type):
    builder = Builder()
    table = builder.source(schema(k="int64", g="int64", v="int64"), rows=1e9)
    groups = builder.aggregate(table, ("k", "g"), ("sum", "v"))
    small = builder.python(builder.source(schema(k="int64", w="int64"), rows=1e7), "filter")
    builder.sink(builder.join(groups, small, on="k"))
    graph = graph_of(builder.plan(), joins_only(execution_mode=mode, page_budget=PageBudget(pages << 15)))
    join = next(vertex for vertex in graph.vertices if isinstance(vertex.chain[0].operator, HashJoinOperator))
    guessed = input_edge(join, 1).data_set
    (decision,) = decide(graph, {guessed: size(10 * KB)}, {guessed.producer})
    changed = replay(graph, [decision])
    stays = changed.data_set(input_edge(changed.vertex(join.id), 0).data_set)
    assert (stays.partitioner.kind, stays.result_type) == ("FORWARD", result_type)
    assert ("but stored" in decision.reason) == (result_type is ResultPartitionType.BLOCKING)


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (join_plan(hint=JoinHint.REPARTITION_HASH_FIRST), "a hint is an order"),
        (join_plan(then="aggregate"), "the aggregate relies on rows being together by the join's key"),
        (join_plan(splits=1), "the other input has one subtask: the join would have one as well"),
    ],
)
def test_joins_that_others_rely_on_stay_as_they_were_planned(plan, why):
    assert finished(graph_of(plan, joins_only()), right=10 * KB) == (), why


def test_nothing_is_decided_about_what_has_begun_or_where_it_is_turned_off():
    graph = graph_of(join_plan(), joins_only())
    sizes = {input_edge(graph.vertex(JOIN), 1).data_set: size(10 * KB)}
    assert decide(graph, sizes, {RIGHT})
    assert decide(graph, sizes, {RIGHT, LEFT}) == ()
    assert decide(graph, sizes, {RIGHT, JOIN}) == ()
    assert decide(graph, {}, {RIGHT}) == ()
    off = graph_of(join_plan(), msgspec.structs.replace(BATCH, is_adaptive=False))
    assert off.adaptive is None and decide(off, sizes, {RIGHT}) == () and waits(off) == {}


@pytest.mark.parametrize(("filled_count", "is_broadcast"), [(CHANNELS_MAX, True), (CHANNELS_MAX + 1, False)])
def test_what_is_in_too_many_pieces_is_not_broadcast(filled_count, is_broadcast):
    graph = graph_of(join_plan(splits=100), joins_only(parallelism=100))
    small = input_edge(graph.vertex(JOIN), 1).data_set
    sizes = {small: size(10 * KB, 100)._replace(filled_count=filled_count)}
    assert bool(decide(graph, sizes, {RIGHT})) == is_broadcast


@pytest.mark.parametrize(
    ("how", "real", "became"),
    [
        (JoinType.INNER, 40 * MB, "repartition both inputs"),
        (JoinType.LEFT, 40 * MB, "repartition both inputs"),
        (JoinType.SEMI, 40 * MB, "repartition both inputs"),
        (JoinType.INNER, 30 * KB, None),
        (JoinType.INNER, 1 * MB, None),
    ],
)
def test_a_large_input_is_repartitioned_although_a_broadcast_was_planned(how, real, became):
    graph = graph_of(join_plan(how, right_rows=2000), joins_only())
    edge = input_edge(graph.vertex(JOIN), 1)
    assert edge.ranges == ((0, 4),) * 4 and graph.data_set(edge.data_set).partitioner.kind == "HASH"
    decisions = finished(graph, right=real)
    assert [decision.became for decision in decisions] == ([became] if became else [])
    changed = replay(graph, decisions)
    if became:
        assert input_edge(changed.vertex(JOIN), 1).ranges == ()
        other = changed.data_set(input_edge(changed.vertex(JOIN), 0).data_set)
        assert (other.partitioner.keys, other.result_type) == (("k",), ResultPartitionType.BLOCKING)


@pytest.mark.parametrize(("parallelism", "became"), [(2, []), (4, ["repartition both inputs"])])
def test_a_broadcast_stays_where_storing_the_other_side_costs_more(parallelism, became):
    # 24 MB of rows on the other side, as they are stored: sent, written and read, or none of it
    graph = graph_of(join_plan(right_rows=2000), joins_only(parallelism=parallelism))
    decisions = finished(graph, right=22 * MB)
    assert [decision.became for decision in decisions] == became


def test_what_is_expected_is_measured_as_stored_rows_are():
    graph = graph_of(join_plan(guess="nothing"), joins_only())
    expected = graph.data_set(input_edge(graph.vertex(JOIN), 1).data_set).expected
    assert (expected.rows, expected.size_bytes) == (1e6, 24e6)  # 8 bytes of a header beside two columns


@pytest.mark.parametrize("guess", ["right", "nothing"])
def test_a_broadcast_is_kept_in_hash_partitions_only_where_its_size_is_a_guess(guess):
    graph = graph_of(join_plan(right_rows=2000, guess=guess))
    *_, join = graph.vertices
    data_set = graph.data_set(input_edge(join, 1).data_set)
    assert data_set.partitioner.kind == ("HASH" if guess == "right" else "BROADCAST")
    # The rows of the other side may have to travel after all: they are not the join's own.
    assert bool(join.feed) == (guess == "nothing")


@pytest.mark.parametrize(
    ("left", "right", "built"),
    [
        (8 * MB, 16 * MB, None),
        (40 * MB, 20 * MB, "build right"),
        (40 * MB, 21 * MB, None),
        (40 * MB, 100 * KB, "build right"),
    ],
)
def test_the_really_smaller_side_is_built_when_both_are_known(left, right, built):
    graph = graph_of(join_plan(JoinType.FULL, guess="left"), joins_only())
    assert graph.vertex(JOIN).chain[0].operator.build_left
    decisions = finished(graph, left=left, right=right)
    assert [decision.became for decision in decisions] == ([built] if built else [])
    assert replay(graph, decisions).vertex(JOIN).chain[0].operator.build_left == (built is None)


@pytest.mark.parametrize(
    ("left", "right", "per_subtask", "parallelism"),
    [
        (100 * KB, 100 * KB, 16 * MB, 1),
        (16 * MB, 14 * MB, 16 * MB, 2),
        (24 * MB, 23 * MB, 16 * MB, 4),
        (100 * MB, 1 * MB, 16 * MB, 4),
        (100 * KB, 100 * KB, 0, 4),
    ],
)
def test_readers_of_small_results_get_fewer_subtasks(left, right, per_subtask, parallelism):
    settings = msgspec.structs.replace(BATCH, adaptive_bytes_per_subtask=per_subtask)
    graph = graph_of(join_plan(JoinType.FULL, guess="nothing"), settings)
    changed = replay(graph, finished(graph, left=left, right=right))
    join = changed.vertex(JOIN)
    assert join.parallelism == parallelism
    assert input_edge(join, 0).ranges == input_edge(join, 1).ranges
    if parallelism < 4:
        assert [begin for begin, _ in input_edge(join, 0).ranges] == list(range(0, 4, 4 // parallelism))


def test_a_parallelism_that_was_set_stays():
    graph = graph_of(join_plan(JoinType.FULL, guess="nothing", parallelism=4))
    assert finished(graph, left=1000, right=1000) == ()


def test_a_large_subpartition_stands_alone_and_the_small_ones_together():
    graph = graph_of(join_plan(JoinType.FULL, guess="nothing"), msgspec.structs.replace(BATCH, parallelism=8))
    join = graph.vertex(JOIN)
    sizes = DataSetSize(1, 907 * MB, (MB, MB, MB, 900 * MB, MB, MB, MB, MB))
    facts = {input_edge(join, side).data_set: sizes for side in (0, 1)}
    *_, decision = decide(graph, facts, {LEFT, RIGHT})
    assert decision.change == SubtaskRanges((JOIN,), ((0, 3), (3, 4), (4, 8)))
    assert decision.text.startswith(f"{join.name}: 8 subtasks -> 3 subtasks (reads ")


def test_a_change_that_does_not_fit_the_graph_is_refused():
    graph = graph_of(join_plan(JoinType.FULL))
    with pytest.raises(PlanError, match="reads 4 subpartitions"):
        apply(graph, SubtaskRanges((JOIN,), ((0, 2), (2, 3))))


@pytest.mark.parametrize(
    ("plan", "waiting"),
    [
        (join_plan(guess="right"), {LEFT}),
        (join_plan(guess="left"), {RIGHT}),
        (join_plan(guess="nothing"), set()),
        (join_plan(guess="right", right_rows=1e9, left_rows=1e8), set()),
        (join_plan(JoinType.LEFT, guess="left"), set()),
        (join_plan(JoinType.FULL), set()),
        (join_plan(hint=JoinHint.REPARTITION_HASH_FIRST), set()),
    ],
)
def test_the_large_side_waits_where_the_small_one_is_a_guess(plan, waiting):
    assert set(waits(graph_of(plan))) == waiting


def test_a_sort_merge_join_becomes_a_hash_join_when_it_is_broadcast():
    graph = graph_of(join_plan(hint=JoinHint.REPARTITION_SORT_MERGE))
    assert isinstance(graph.vertex(JOIN).chain[0].operator, SortMergeJoinOperator)
    changed = apply(graph, BroadcastInput(JOIN, 1, (JOIN,), 4, is_pipelined=True))
    operator = changed.vertex(JOIN).chain[0].operator
    assert isinstance(operator, HashJoinOperator) and not operator.build_left and operator.left_keys == ("k",)


@pytest.mark.parametrize(
    ("partitioner", "divisible"),
    [
        (PartitionerSpec("HASH", ("k",), spread_nulls=True), True),
        (PartitionerSpec("REBALANCE"), True),
        (PartitionerSpec("HASH", ("k",), heavy=HeavyKeys(replicated=(("1",),))), False),
        (PartitionerSpec("KEYGROUP", ("k",)), False),
        (PartitionerSpec("RANGE", ("k",)), False),
        (PartitionerSpec("GLOBAL"), False),
    ],
)
def test_only_portions_that_mean_nothing_else_are_put_together(partitioner, divisible):
    assert is_divisible(partitioner) == divisible


def test_nobody_waits_for_what_it_makes_itself():
    builder = Builder()
    table = builder.source(schema(k="int64", v="int64"), rows=1e6)
    sums = builder.filter(builder.aggregate(table, ("k",), ("sum", "v")), call("greater", "k", lit(1)))
    builder.sink(builder.join(table, sums, on="k", hint=JoinHint.OPTIMIZER_CHOOSES))
    graph = graph_of(builder.plan())
    assert LEFT not in waits(graph)


def test_explain_says_what_real_sizes_may_change():
    text = explain(optimize(join_plan(), BATCH))
    limit = broadcast_limit(Estimates(1e6, 24e6, ""), 4, BATCH.page_budget.operator_bytes)
    assert 6e6 < limit < 24e6
    assert "may become broadcast when right <= 6 MB" in text
    assert "may become repartitioned when right > " in explain(optimize(join_plan(right_rows=2000), BATCH))
    assert "may become" not in explain(optimize(join_plan(), OptimizerSettings(parallelism=4)))
    assert "may become" not in explain(optimize(join_plan(guess="nothing"), BATCH))


def sized(size_bytes: float) -> Estimates:
    return Estimates(1e6, size_bytes, "")


SIZES = st.floats(1, 1e12) | st.floats(0, 12).map(lambda digits: 10**digits)
MEMORY = st.sampled_from([32 << 10, 64 << 20, 4 << 30])


@given(SIZES, st.floats(0, 1.5), st.integers(2, 100), MEMORY)
@example(1e11, 0.02, 16, 64 << 20)  # yes up to 0.6 GB, dearer up to 1.7, cheaper up to 2.5
@example(1e10, 0.1, 3, 64 << 20)
def test_the_limit_is_where_preference_ends(stay_bytes, share, parallelism, memory):
    stay, small_bytes = sized(stay_bytes), share * stay_bytes
    limit = broadcast_limit(stay, parallelism, memory)
    prefers = prefers_broadcast(sized(small_bytes), stay, parallelism, memory)
    if small_bytes < 0.999 * limit:
        assert prefers
    elif limit * 1.001 < small_bytes:
        assert not prefers


@given(SIZES, st.lists(st.floats(0, 1.5), min_size=2, max_size=30), st.integers(2, 100), MEMORY)
@example(2e9, [share / 100 for share in range(50)], 2, 64 << 20)
def test_who_is_smaller_than_what_is_broadcast_is_broadcast_too(stay_bytes, shares, parallelism, memory):
    answers = [
        prefers_broadcast(sized(share * stay_bytes), sized(stay_bytes), parallelism, memory) for share in sorted(shares)
    ]
    assert answers == sorted(answers, reverse=True)


@given(SIZES, st.floats(0, 1), st.integers(2, 100), MEMORY)
def test_what_is_broadcast_costs_less_than_a_repartitioning(stay_bytes, share, parallelism, memory):
    small, stay = sized(share * stay_bytes), sized(stay_bytes)
    costs = broadcast_costs(small, stay, parallelism, memory), repartition_costs(small, stay, parallelism, memory)
    if prefers_broadcast(small, stay, parallelism, memory):
        assert costs[0] < costs[1]


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30), st.integers(1, 120))
def test_runs_cover_everything_once_and_none_is_larger_than_it_must_be(sizes, limit):
    shares = [min(size, limit) for size in sizes]
    count = runs_needed(shares, limit)
    runs = contiguous_runs(shares, count)
    assert [index for begin, end in runs for index in range(begin, end)] == list(range(len(sizes)))
    assert all(begin < end and sum(shares[begin:end]) <= limit for begin, end in runs)
    longest, share = 1, 0
    for size in shares:  # each run as long as it may be
        longest, share = (longest, share + size) if share + size <= limit else (longest + 1, size)
    assert count == longest


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30), st.integers(1, 12))
def test_no_runs_of_that_number_have_a_smaller_largest_share(sizes, count):
    largest = max(sum(sizes[begin:end]) for begin, end in contiguous_runs(sizes, count))
    assert largest == max(sizes) or runs_needed(sizes, largest - 1) > count
