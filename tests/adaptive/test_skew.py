"""Which skewed joins are split when the sizes of their inputs are known, into which shares, and why others are not."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.adaptive.changes import replay
from engine.adaptive.decisions import decide
from engine.adaptive.graph_shape import DataSetSize, input_edge
from engine.errors import PlanError
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.job_graph import JobGraph
from engine.graph.run_time_decision import RunTimeDecision, SplitSkew
from engine.graph.said_operators import JoinHint, JoinType
from engine.graph.subpartition_share import PARTS, SubpartitionShare, are_complete, whole_share
from engine.ids import JobId, JobVertexId
from engine.optimizer.explain import explain
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import Builder, schema

LEFT, RIGHT, JOIN = JobVertexId(0), JobVertexId(1), JobVertexId(2)
MB = 1_000_000
SETTINGS = OptimizerSettings(parallelism=4, execution_mode=ExecutionMode.BATCH, adaptive_bytes_per_subtask=0)
EVEN, SKEWED = (MB, MB, MB, MB), (MB, 45 * MB, MB, MB)
#: of two producers, the second one with three quarters of everything
PRODUCERS = 4


def planned(
    how: JoinType = JoinType.INNER,
    hint: JoinHint = JoinHint.REPARTITION_HASH_SECOND,
    then: str = "",
    grouped: bool = False,
    settings: OptimizerSettings = SETTINGS,
):
    builder = Builder()
    left = builder.python(builder.source(schema(k="int64", v="int64"), rows=1e6), "map")
    right = builder.source(schema(k="int64", w="int64"), rows=1e6)
    if grouped:
        right = builder.aggregate(right, ("k",), ("count_all", None))
    joined = builder.join(left, right, on="k", how=how, hint=hint)
    if then == "by key":
        joined = builder.aggregate(joined, ("k",), ("count_all", None))
    builder.sink(joined)
    return optimize(builder.plan(), settings)


def graph_of(*arguments, **options) -> JobGraph:
    return generate_job_graph(planned(*arguments, **options), JobId("a" * 32), "job")


def size(stored: tuple[int, ...]) -> DataSetSize:
    """Return a data set whose producers have the same share of every subpartition."""
    each = tuple(count // PRODUCERS for count in stored)
    return DataSetSize(sum(stored) // 16, sum(stored), stored, PRODUCERS * len(stored), (each,) * PRODUCERS)


def finished(
    graph: JobGraph, left: tuple[int, ...] = EVEN, right: tuple[int, ...] = EVEN
) -> tuple[RunTimeDecision, ...]:
    join = next(vertex for vertex in graph.vertices if len(vertex.inputs) == 2)
    sizes = {
        input_edge(join, side).data_set: size(stored)
        for side, stored in enumerate((left, right))
        if not graph.data_set(input_edge(join, side).data_set).result_type.is_pipelined
    }
    return decide(graph, sizes, {data_set.producer for data_set in sizes})


KEPT = "whether a row of {} has a match is known where all rows with its key are"


@pytest.mark.parametrize("skewed", ["left", "right"])
@pytest.mark.parametrize("how", [how for how in JoinType if how is not JoinType.CROSS])
@pytest.mark.parametrize("hint", [JoinHint.REPARTITION_HASH_FIRST, JoinHint.REPARTITION_SORT_MERGE])
def test_the_input_is_cut_whose_partner_has_no_rows_of_its_own(how, skewed, hint):
    graph = graph_of(how, hint=hint)
    if "HASH" not in {data_set.partitioner.kind for vertex in graph.vertices for data_set in vertex.outputs}:
        pytest.skip("sorted runs are read by ranges")
    (decision,) = finished(graph, **{skewed: SKEWED})
    assert decision.kind == "SKEWED_JOIN" and decision.real_bytes == 48 * MB
    may_be_cut = {
        JoinType.INNER: {"left", "right"},
        JoinType.RIGHT: {"right"},
        JoinType.FULL: set(),
    }.get(how, {"left"})
    if skewed in may_be_cut:
        assert isinstance(decision.change, SplitSkew)
        assert decision.became == f"{skewed} of subtask 2 spread over 4 subtasks"
    else:
        other = "right" if skewed == "left" else "left"
        assert decision.became == f"{skewed} stays skewed" and KEPT.format(other) in decision.reason
    assert "subtask 2 would read 45 MB of " + skewed in decision.reason
    changed = replay(graph, [decision])
    changed.validate()
    assert decide(changed, {}, set()) == ()


def test_nobody_reads_more_than_another_and_each_byte_is_read_once():
    graph = graph_of()
    (decision,) = finished(graph, left=SKEWED)
    changed = replay(graph, [decision])
    left, right = (input_edge(changed.vertex(JOIN), side) for side in (0, 1))
    whole = [whole_share(subtask, PRODUCERS) for subtask in range(4)]
    assert right.shares == ((whole[0], whole[1]), (whole[1],), (whole[2], whole[1]), (whole[3], whole[1]))
    assert [shares[0] for shares in (left.shares[0], left.shares[2], left.shares[3])] == [whole[0], whole[2], whole[3]]
    shares = [share for each in left.shares for share in each if share.subpartition == 1]
    assert {share.end - share.begin for share in shares} <= {
        round(PRODUCERS * PARTS * part / 45) + off for part in (11, 12) for off in (-1, 0, 1)
    }
    assert are_complete([share for each in left.shares for share in each], 4, PRODUCERS)


@pytest.mark.parametrize(
    ("left", "right", "why"),
    [
        (EVEN, EVEN, "nothing is skewed"),
        ((900_000, 40_000, 40_000, 40_000), EVEN, "too little"),
        ((2 * MB, MB, MB, MB), EVEN, "twice the median is not more than twice"),
        ((3 * MB, MB, MB, MB), (40 * MB, MB, MB, MB), "the other input would be read whole by all"),
        ((9 * MB, 8 * MB, 8 * MB, MB), EVEN, "the median is as large"),
    ],
)
def test_what_does_not_pay_is_left(left, right, why):
    graph = graph_of(JoinType.LEFT)
    assert [each for each in finished(graph, left, right) if isinstance(each.change, SplitSkew)] == [], why


def test_both_inputs_are_cut_where_they_are_skewed_by_different_keys():
    graph = graph_of()
    (decision,) = finished(graph, left=(45 * MB, MB, MB, MB), right=(MB, MB, MB, 45 * MB))
    assert decision.became.startswith("left of subtask 1 spread over ")
    assert " and right of subtask 4 spread over " in decision.became
    changed = replay(graph, [decision])
    left, right = (input_edge(changed.vertex(JOIN), side).shares for side in (0, 1))
    for reader in range(4):
        cut_left = {share.subpartition for share in left[reader]}
        cut_right = {share.subpartition for share in right[reader]}
        # who reads a share of one input reads the other one's subpartition whole
        assert cut_left == cut_right
        assert whole_share(3, PRODUCERS) in left[reader] or 3 not in cut_left
        assert whole_share(0, PRODUCERS) in right[reader] or 0 not in cut_right


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (graph_of(then="by key", hint=JoinHint.OPTIMIZER_CHOOSES), "what follows relies on rows with equal keys"),
        (graph_of(grouped=True), "the other input lies partitioned already"),
    ],
)
def test_where_it_would_be_wrong_the_reason_is_said_once(graph, why):
    decisions = finished(graph, left=SKEWED)
    said = [decision for decision in decisions if decision.kind == "SKEWED_JOIN"]
    assert len(said) == 1 and why in said[0].reason, decisions
    changed = replay(graph, decisions)
    assert [each.kind for each in finished(changed, left=SKEWED)] == []


def test_what_is_cut_is_not_put_together_again_and_little_is_read_by_one():
    settings = msgspec.structs.replace(SETTINGS, adaptive_bytes_per_subtask=16 * MB)
    decisions = finished(graph_of(settings=settings), left=SKEWED)
    assert [decision.kind for decision in decisions] == ["SKEWED_JOIN"]
    few = finished(graph_of(settings=settings), left=(100_000, 5 * MB, 100_000, 100_000), right=(1000,) * 4)
    assert [decision.became for decision in few] == ["1 subtask"]


@pytest.mark.parametrize("changes", [{"skew_factor": 0.0}, {"is_adaptive": False}, {"legacy_estimates": True}])
def test_settings_turn_it_off(changes):
    settings = msgspec.structs.replace(SETTINGS, **changes)
    assert finished(graph_of(settings=settings), left=SKEWED) == ()


def test_shares_that_do_not_fit_the_graph_are_refused():
    graph = graph_of()
    (decision,) = finished(graph, left=SKEWED)
    change = decision.change
    assert isinstance(change, SplitSkew)
    torn = ((SubpartitionShare(1, 0, 5),), *change.shares[0][1:])
    wrong = msgspec.structs.replace(decision, change=SplitSkew(change.join, (torn, change.shares[1])))
    with pytest.raises(PlanError, match="in shares"):
        replay(graph, [wrong])


STORED = st.lists(st.integers(0, 200 * MB), min_size=4, max_size=4).map(tuple)


@given(STORED, STORED, st.lists(st.integers(0, 20), min_size=PRODUCERS, max_size=PRODUCERS))
def test_shares_fit_any_sizes_and_make_the_largest_load_smaller(left, right, weights):
    graph = graph_of()
    sizes = {}
    join = graph.vertex(JOIN)
    for side, stored in enumerate((left, right)):
        total = sum(weights) or 1
        of_producers = [tuple(each * weight // total for each in stored) for weight in weights]
        summed = tuple(sum(each) for each in zip(*of_producers, strict=True))
        sizes[input_edge(join, side).data_set] = DataSetSize(1, sum(summed), summed, 16, tuple(of_producers))
    decisions = decide(graph, sizes, {LEFT, RIGHT})
    changed = replay(graph, decisions)
    changed.validate()
    split = [decision for decision in decisions if isinstance(decision.change, SplitSkew)]
    if not split:
        return
    loads, planned_loads = [0.0] * 4, [0.0] * 4
    for side in (0, 1):
        edge = input_edge(changed.vertex(JOIN), side)
        stored = sizes[edge.data_set].stored
        for reader, shares in enumerate(edge.shares):
            assert shares
            planned_loads[reader] += sum(each[reader] for each in stored)
            for share in shares:
                for producer, each in enumerate(stored):
                    begin, end = share.part_of(producer)
                    loads[reader] += max(0, end - begin) / PARTS * each[share.subpartition]
    assert max(loads) * 1.2 < max(planned_loads)


@pytest.mark.parametrize(
    ("how", "mode", "text"),
    [
        (JoinType.INNER, ExecutionMode.BATCH, "│  split if left is skewed"),
        (JoinType.LEFT, ExecutionMode.BATCH, "│  split if left is skewed"),
        (JoinType.LEFT, ExecutionMode.PIPELINED, "│  not split if left is skewed: rows are not stored between tasks"),
        (JoinType.FULL, ExecutionMode.BATCH, None),
    ],
)
def test_explain_says_what_is_split_should_it_be_skewed(how, mode, text):
    explained = explain(planned(how, settings=msgspec.structs.replace(SETTINGS, execution_mode=mode)))
    assert text in explained if text else "skewed" not in explained
