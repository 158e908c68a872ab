"""Whole jobs with decisions in the middle: whatever sizes results show, the rows stay the same and nothing hangs."""

from __future__ import annotations

import hypothesis
import msgspec
import pytest
from hypothesis import Phase
from hypothesis import strategies as st

from engine.adaptive.changes import replay
from engine.adaptive.graph_shape import input_edge
from engine.errors import PlanError
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.expression import ColumnRef
from engine.graph.job_graph import JobGraph
from engine.graph.plan import Join, Plan
from engine.graph.said_operators import JoinHint, JoinType
from engine.ids import JobId
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.job_event import Replanned, decode_event, encode_event
from engine.jobmaster.scheduler import Scheduler
from engine.memory.page_budget import PageBudget
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.jobmaster.job_simulation import Simulation
from tests.optimizer.interpreter import RaisedError, Tables, run_plan
from tests.optimizer.plan_building import Builder, call, column, lit, schema
from tests.optimizer.random_plans import HINTS, SMALL_PART_BYTES, TABLES, plans, tables
from tests.optimizer.test_random_plans import same

SETTINGS = st.builds(
    OptimizerSettings,
    parallelism=st.sampled_from([2, 3, 4, 6]),
    execution_mode=st.sampled_from([ExecutionMode.BATCH, ExecutionMode.BATCH, *ExecutionMode]),
    page_budget=st.sampled_from([13 << 15, 16 << 20]).map(lambda slot_bytes: PageBudget(6 * slot_bytes, slot_count=6)),
    adaptive_bytes_per_subtask=st.sampled_from([0, 1000, 1000, 1 << 20]),
    skew_factor=st.sampled_from([0.0, 1.0, 2.0]),
    skew_bytes=st.sampled_from([1, 1000]),
    has_small_parts=st.booleans(),
    small_part_bytes=st.sampled_from(SMALL_PART_BYTES),
    is_one_process=st.booleans(),
)
SIDE = schema(k="int64", v="int64", w="int64")
#: the plain interpreter knows how these spread rows
KNOWN = {"FORWARD", "GLOBAL", "BROADCAST", "REBALANCE", "HASH"}


def without_hints(plan: Plan) -> Plan:
    nodes = [
        msgspec.structs.replace(node, operator=msgspec.structs.replace(node.operator, hint=JoinHint.OPTIMIZER_CHOOSES))
        if isinstance(node.operator, Join)
        else node
        for node in plan.nodes
    ]
    return msgspec.structs.replace(plan, nodes=tuple(nodes))


def _side(draw: st.DrawFn, builder: Builder, prefix: str) -> int:
    """A table under other names, its size a guess or not, spread by its key already or not."""
    rows, splits = draw(st.sampled_from([1e6, 1e6, 1e5, 1000])), draw(st.sampled_from([1, 4]))
    source = builder.source(SIDE, rows=rows, splits=splits, path=draw(st.sampled_from(TABLES)))
    node = builder.project(source, "k", (column(f"{prefix}v"), ColumnRef("v")))
    kind = draw(st.sampled_from(["guess", "guess", "certain", "grouped", "union", "sort", "limit"]))
    if kind == "guess":
        return builder.python(node, "filter")
    if kind == "grouped":
        return builder.aggregate(node, ("k",), ("count_all", None))
    if kind == "union":
        return builder.union(node, builder.python(node, "filter"))
    if kind in ("sort", "limit"):
        return builder.sort(node, *builder.schema(node).names, limit=3 if kind == "limit" else None)
    return node


def _renamed(builder: Builder, node: int, suffix: str, *kept: str) -> int:
    names = [name for name in builder.schema(node).names if name not in kept]
    return builder.project(node, *kept, *((column(f"{name}{suffix}"), ColumnRef(name)) for name in names))


def _self(draw: st.DrawFn, builder: Builder, node: int, step: int) -> tuple[int, int]:
    """A node twice, the second time perhaps of few and narrow rows: broadcast, as long as that is not known better."""
    if draw(st.booleans()):
        return node, _renamed(builder, node, f"_{step}", "k")
    few = builder.project(builder.filter(node, call("equal", "k", lit(1))), "k")
    # an expression's share of rows is a guess too, and leaves the number of subtasks open
    return builder.filter(node, call("less", "k", lit(3))) if draw(st.booleans()) else node, few


@st.composite
def join_plans(draw: st.DrawFn) -> Plan:
    """Joins over joins by one key, with aggregates that rely on where rows lie, or do not."""
    builder = Builder()
    node = _side(draw, builder, "a")
    if draw(st.booleans()):  # few groups: fewer subtasks, and whoever is connected with them through FORWARD
        node = builder.aggregate(node, builder.schema(node).names, ("count_all", None))
    selves = 0
    for step in range(draw(st.integers(1, 4))):
        how = draw(st.sampled_from([how for how in JoinType if step == 0 or how is not JoinType.CROSS]))
        # with itself: its branches meet again, so they are stored, and something may run along with the join
        is_self = selves < 2 and draw(st.booleans())
        selves += is_self
        sides = [*_self(draw, builder, node, step)] if is_self else [node, _side(draw, builder, f"s{step}")]
        if draw(st.booleans()):
            sides.reverse()
        if how is JoinType.CROSS:
            sides[1] = _renamed(builder, sides[1], "_x")
        hint = draw(st.sampled_from([JoinHint.OPTIMIZER_CHOOSES, *HINTS[how]]))
        node = builder.join(*sides, on="k", how=how, hint=hint)
        after = draw(st.sampled_from(["nothing", "filter", "by key", "by another", "union", "limit", "function"]))
        if after == "filter":
            node = builder.filter(node, call("less", "k", lit(3)))
        elif after == "union":
            node = builder.union(node, builder.filter(node, call("less", "k", lit(2))))
        elif after == "limit":
            node = builder.sort(node, *builder.schema(node).names, limit=5)
        elif after == "function":
            node = builder.python(node)
        elif after == "by key":
            node = builder.aggregate(node, ("k",), ("count_all", None))
        elif after == "by another":
            names = builder.schema(node).names
            node = builder.aggregate(node, tuple(dict.fromkeys(("k", names[-1]))), ("count_all", None))
    builder.sink(node)
    return builder.plan()


@hypothesis.settings(max_examples=150, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@hypothesis.given(
    st.one_of(join_plans(), join_plans(), plans()),
    tables(),
    SETTINGS,
    st.integers(1, 8),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_decisions_never_change_what_a_job_returns(
    plan: Plan, data: Tables, settings: OptimizerSettings, slots: int, random, has_hints: bool
) -> None:
    plan = plan if has_hints else without_hints(plan)
    try:
        expected = run_plan(plan, data)
    except RaisedError:
        hypothesis.reject()
    try:
        optimized = optimize(plan, settings)
    except PlanError:  # a mode that would make the job wait for itself
        hypothesis.reject()
    submitted = generate_job_graph(optimized, JobId("a" * 32), "job")
    kinds = {data_set.partitioner.kind for vertex in submitted.vertices for data_set in vertex.outputs}
    hypothesis.assume(kinds <= KNOWN and len(submitted.vertices) > 2)
    widest = max(vertex.parallelism for vertex in submitted.vertices)
    scales: dict[object, int] = {}

    def size_of(data_set, rows):
        scale = scales.setdefault(data_set, random.choice([1, 50, 10_000, 10_000_000]))
        return [scale * count for count in rows]

    # one process has as many slots as its plan has subtasks, so its slots may be larger than those of the settings
    planned_with = settings if submitted.adaptive is None else submitted.adaptive
    job = Simulation(submitted, data, max(slots, widest), size_of, planned_with.page_budget.slot_pages)
    try:
        actual = job.run()
    except RaisedError:
        hypothesis.reject()
    for decision in job.decisions:
        hypothesis.event(f"{decision.kind} {type(decision.change).__name__}")
    assert same(rewrite(plan), expected, actual), [decision.text for decision in job.decisions]
    stored = [decode_event(encode_event(Replanned((decision,)))) for decision in job.decisions]
    assert replay(submitted, [each for event in stored for each in event.decisions]) == job.graph.job_graph


BATCH = OptimizerSettings(parallelism=4, execution_mode=ExecutionMode.BATCH)
DATA: Tables = {
    "large": [{"k": row % 7, "v": row} for row in range(40)],
    "small": [{"k": row, "w": row} for row in range(5)],
}


def guessed_join(how: JoinType = JoinType.INNER) -> JobGraph:
    """A join of a large table with one that went through a filter whose share is a guess."""
    builder = Builder()
    large = builder.source(schema(k="int64", v="int64"), rows=1e6, path="large")
    small = builder.python(builder.source(schema(k="int64", w="int64"), rows=1e6, path="small"), "filter")
    builder.sink(builder.join(large, small, on="k", how=how))
    return generate_job_graph(optimize(builder.plan(), BATCH), JobId("a" * 32), "job")


def of_bytes(total: int):
    return lambda _, rows: [total // len(rows)] * len(rows)


@pytest.mark.parametrize("slots", [1, 3, 100])
def test_the_large_side_begins_when_the_small_one_is_known_and_not_later(slots):
    job = Simulation(guessed_join(), DATA, slots, of_bytes(1000))
    job.run()
    assert [decision.kind for decision in job.decisions] == ["BROADCAST"]
    small, together = job.order[:4], job.order[4:]
    assert set(small) == {("parquet source small -> filter fn",)}
    assert set(together) == {("inner join on k -> parquet sink out", "parquet source large")}
    assert len(together) == 4


def test_slots_are_asked_only_for_what_may_begin():
    scheduler = Scheduler(build_execution_graph(guessed_join()))
    assert {subtask.job_vertex.name for region in scheduler.waiting for subtask in region.subtasks} == {
        "parquet source small -> filter fn"
    }
    scheduler = Scheduler(build_execution_graph(guessed_join(JoinType.FULL)))
    assert len(scheduler.waiting) == 8


def test_what_has_begun_is_the_same_after_a_decision_and_what_has_not_follows():
    job = Simulation(guessed_join(JoinType.FULL), DATA, 8, of_bytes(1000))
    before = [
        (vertex, list(vertex.subtasks), [each.current.attempt for each in vertex.subtasks])
        for vertex in job.graph.vertices
    ]
    job.run()
    (decision,) = job.decisions
    assert decision.kind == "PARALLELISM"
    for vertex, subtasks, attempts in before[:2]:
        assert vertex.subtasks == subtasks
        assert [each.current.attempt for each in subtasks] == attempts
        assert [each.partitions[0].subpartition_count for each in subtasks] == [4] * 4
    join = job.graph.vertices[2]
    assert len(join.subtasks) == 1 and not set(join.subtasks) & set(before[2][1])
    assert [len(edges) for edges in join.subtasks[0].inputs] == [4, 4]
    assert [edge.subpartition_count for edges in join.subtasks[0].inputs for edge in edges] == [4] * 8


def test_empty_subpartitions_are_not_read_but_there_is_always_a_channel():
    job = Simulation(guessed_join(), DATA, 8, lambda _, rows: [count * 10 for count in rows])
    job.run()
    (subtask, *_) = job.graph.vertices[2].subtasks
    small = subtask.inputs[1]
    assert [edge.subpartition_count for edge in small] == [4] * 4
    # 5 rows from 4 producers to 4 subpartitions each
    assert sum(len(edge.filled_subpartitions) for edge in small) <= 6
    assert all(len(edge.filled_subpartitions) >= 1 for edge in small)


def test_a_producer_that_starts_again_makes_what_its_readers_were_told():
    job = Simulation(guessed_join(), DATA, 1, of_bytes(1000))
    job.run()
    producer = job.graph.vertices[1].subtasks[0]
    job.graph.restart(producer)
    assert producer.partitions[0].subpartition_count == 4
    assert producer.partitions[0].data_set.partitioner.kind == "HASH"
    assert producer.partitions[0].subpartition_bytes == ()


def test_a_broadcast_stays_one_when_its_join_has_fewer_subtasks_than_its_input_was_written_for():
    builder = Builder()
    grouped = builder.aggregate(builder.source(SIDE, rows=1e6, path="large"), ("k", "v"), ("count_all", None))
    few = builder.project(builder.filter(grouped, call("equal", "v", lit(1))), "k")
    builder.sink(builder.join(builder.filter(grouped, call("less", "k", lit(5))), few, on="k"))
    settings = msgspec.structs.replace(BATCH, parallelism=3, adaptive_bytes_per_subtask=1 << 20)
    submitted = generate_job_graph(optimize(builder.plan(), settings), JobId("a" * 32), "job")
    (join,) = (vertex for vertex in submitted.vertices if vertex.adaptive_join is not None)
    assert join.adaptive_join.may_repartition and join.parallelism == 3
    broadcast = input_edge(join, join.chain[0].operator.first_input).data_set

    def size_of(data_set, rows):
        return [10**9 if data_set == broadcast else 10] * len(rows)

    job = Simulation(submitted, {"large": [{"k": row % 7, "v": row, "w": 0} for row in range(40)]}, 8, size_of)
    job.run()
    assert [decision.kind for decision in job.decisions] == ["PARALLELISM"]
    assert len(job.graph.vertices[join.id.index].subtasks) == 1
