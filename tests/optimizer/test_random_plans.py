"""Whole plans against a plain interpreter: rewriting and planning never change what a job returns."""

from __future__ import annotations

from collections import Counter

import hypothesis
from hypothesis import strategies as st

from engine.adaptive.graph_shape import region_pages
from engine.graph.exchange_mode import ExecutionMode
from engine.graph.pipelined_regions import pipelined_regions
from engine.graph.plan import Filter, Limit, Plan, Project, Sort, decode_plan, encode_plan
from engine.ids import JobId
from engine.memory.page_budget import PageBudget
from engine.optimizer.explain import explain, summary
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.logical_optimizer import rewrite
from engine.optimizer.optimizer import optimize
from engine.optimizer.physical_plan import OptimizedPlan
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.interpreter import RaisedError, Rows, Tables, run_physical, run_plan
from tests.optimizer.random_plans import SMALL_PART_BYTES, plans, tables

SETTINGS = st.builds(
    OptimizerSettings,
    parallelism=st.sampled_from([1, 3]),
    execution_mode=st.sampled_from([ExecutionMode.PIPELINED, ExecutionMode.BATCH, ExecutionMode.BATCH_FORCED]),
    legacy_estimates=st.booleans(),
    page_budget=st.sampled_from([6 << 15, 13 << 15, 16 << 20]).map(
        lambda slot_bytes: PageBudget(6 * slot_bytes, slot_count=6)
    ),
    has_small_parts=st.booleans(),
    small_part_bytes=st.sampled_from(SMALL_PART_BYTES),
    is_one_process=st.booleans(),
)


def is_ordered(plan: Plan, node_id: int) -> bool:
    node = plan.node(node_id)
    if isinstance(node.operator, Sort):
        return True
    if isinstance(node.operator, Project | Filter | Limit):
        return is_ordered(plan, node.inputs[0])
    return False


def same(plan: Plan, expected: list[Rows], actual: list[Rows]) -> bool:
    for sink, first, second in zip(plan.sinks, expected, actual, strict=True):
        names = plan.node(sink).schema.names
        left, right = ([tuple(row[name] for name in names) for row in rows] for rows in (first, second))
        if is_ordered(plan, plan.node(sink).inputs[0]):
            if left != right:
                return False
        elif Counter(left) != Counter(right):
            return False
    return True


@hypothesis.settings(max_examples=300)
@hypothesis.given(plans(), tables(), SETTINGS)
def test_optimized_plans_return_the_same_rows(plan: Plan, data: Tables, settings: OptimizerSettings) -> None:
    try:
        expected = run_plan(plan, data)
    except RaisedError:
        hypothesis.reject()
    rewritten = rewrite(plan)
    assert same(plan, expected, run_plan(rewritten, data))
    assert [rewritten.node(sink).schema for sink in rewritten.sinks] == [plan.node(sink).schema for sink in plan.sinks]
    assert same(plan, expected, run_physical(optimize(plan, settings), data))


@hypothesis.settings(max_examples=150)
@hypothesis.given(plans(), SETTINGS)
def test_every_plan_becomes_a_consistent_job_graph(plan: Plan, settings: OptimizerSettings) -> None:
    optimized = optimize(plan, settings)
    graph = generate_job_graph(optimized, JobId.random(), "random")
    read = set()
    for vertex in graph.vertices:
        for edge in vertex.inputs:
            data_set = graph.data_set(edge.data_set)
            assert data_set.consumer == vertex.id
            assert edge.pattern == data_set.partitioner.pattern
            assert edge.data_set not in read
            read.add(edge.data_set)
            producer = graph.vertex(edge.data_set.producer)
            if data_set.partitioner.kind == "FORWARD":
                assert producer.parallelism == vertex.parallelism
            produced, wanted = producer.chain[-1].output_schema, vertex.chain[0].input_schemas[edge.input_index]
            assert produced.names == wanted.names
        for above, below in zip(vertex.chain[1:], vertex.chain, strict=False):
            assert above.input_schemas == (below.output_schema,)
    assert read == {data_set.id for vertex in graph.vertices for data_set in vertex.outputs}
    assert_regions_run(graph, settings)
    assert decode_plan(graph.plan) == plan
    assert explain(optimized) == explain(optimize(decode_plan(encode_plan(plan)), settings))
    assert 1 <= len(summary(optimized)) <= 3


def assert_regions_run(graph, settings: OptimizerSettings) -> None:
    regions = pipelined_regions(graph)
    region_of = {vertex: region.index for region in regions for vertex in region.vertices}
    assert len(region_of) == len(graph.vertices)
    for region in regions:
        assert all(producer < region.index for producer in region.inputs)
        assert region_pages(graph, region.vertices) <= settings.page_budget.slot_pages
    for vertex in graph.vertices:
        for edge in vertex.inputs:
            if not graph.data_set(edge.data_set).result_type.is_pipelined:
                assert region_of[edge.data_set.producer] < region_of[vertex.id]


@hypothesis.settings(max_examples=100)
@hypothesis.given(plans(), st.sampled_from([1, 4]))
def test_every_operator_has_numbers_and_their_origin(plan: Plan, parallelism: int) -> None:
    optimized: OptimizedPlan = optimize(plan, OptimizerSettings(parallelism=parallelism))
    for node in optimized.nodes:
        assert node.estimates.rows >= 1
        assert node.estimates.size_bytes >= 1
        assert node.estimates.origin
        assert node.costs.is_known
        assert node.cumulative_costs.is_known


@hypothesis.given(plans())
def test_rewriting_again_changes_nothing(plan: Plan) -> None:
    once = rewrite(plan)
    assert rewrite(once) == once
