"""What explain says of an operator's memory is what its tasks get: through all that lies between, for any plan."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from engine.config.loader import Configuration
from engine.config.options import SLOTS
from engine.errors import MemoryBudgetError
from engine.gateways.messages import JobList
from engine.gateways.task_executors import TaskExecutorHardware, TaskExecutorList, TaskExecutorOverview
from engine.graph.deployment import Staging, TaskReport
from engine.graph.job_graph import JobGraph
from engine.graph.operator_descriptor import OperatorDescriptor, SinkOperator
from engine.graph.packed_sizes import packed_sizes
from engine.graph.plan import Aggregate, Join, Plan
from engine.ids import AllocationId, JobId, ResourceId
from engine.jobmaster.deployment import build_descriptor
from engine.jobmaster.execution_vertex import ExecutionVertex
from engine.jobmaster.scheduler import SchedulingRegion
from engine.operators.operator import TaskContext
from engine.optimizer.explain import explain
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.physical_plan import OptimizedPlan
from engine.optimizer.settings import OptimizerSettings
from engine.rest.cluster_routes import overview_document
from engine.targets.cluster import ClusterExecutor, Overview
from engine.targets.local import LocalExecutor
from engine.taskexecutor.slot_table import SlotTable
from engine.taskexecutor.task_resources import configured_sizes
from tests.jobmaster.job_simulation import Simulation
from tests.optimizer.plan_building import Builder, schema
from tests.optimizer.random_plans import plans

MIB = 1 << 20
#: pages of an operator, for each of its subtasks, and whether all operators of its region were in the slot
Deployed = dict[int, list[tuple[int, bool]]]


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, object]:
    settings: dict[str, object] = {
        "taskmanager.memory.process.size": draw(st.integers(160 * MIB, 400 * MIB)),
        "parallelism.default": draw(st.integers(1, 5)),
    }
    if draw(st.booleans()):
        settings["taskmanager.memory.managed.size"] = draw(st.integers(1 * MIB, 40 * MIB))
    if draw(st.booleans()):
        settings["taskmanager.numberOfTaskSlots"] = draw(st.integers(1, 7))
    return settings


def without_unread(plan: Plan) -> Plan:
    """The same without nodes that no sink reads: a program's plan has none."""
    read = set(plan.sinks)
    for node in reversed(plan.nodes):
        if node.id in read:
            read.update(node.inputs)
    number = {old: new for new, old in enumerate(sorted(read))}
    nodes = (
        msgspec.structs.replace(plan.node(old), id=new, inputs=tuple(number[each] for each in plan.node(old).inputs))
        for old, new in number.items()
    )
    return msgspec.structs.replace(plan, nodes=tuple(nodes), sinks=tuple(number[sink] for sink in plan.sinks))


def with_parallelism(plan: Plan, number: int, parallelism: int | None) -> Plan:
    """The same with another parallelism of one of its joins and aggregates."""
    places = [node.id for node in plan.nodes if isinstance(node.operator, Join | Aggregate)]
    if not places or parallelism is None:
        return plan
    chosen = places[number % len(places)]
    nodes = (
        msgspec.structs.replace(node, parallelism=parallelism) if node.id == chosen else node for node in plan.nodes
    )
    return msgspec.structs.replace(plan, nodes=tuple(nodes))


class _Deployment(Simulation):
    """Regions start one after the other, and tasks only say what pages they have."""

    def __init__(self, graph: JobGraph, table: SlotTable, slot_count: int) -> None:
        slot = table.allocate(0, graph.job_id, AllocationId.random(), "")
        super().__init__(graph, {}, slot_count, lambda *_: [], slot.pages, slot.spare_pages)
        self.pages: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        for result in self.graph.results.values():
            for partition in result.partitions:
                partition.range_bounds = (b"",) * 10

    def _run_subtask(self, subtask: ExecutionVertex, region: SchedulingRegion) -> TaskReport:
        steps = [step.operator for step in subtask.job_vertex.chain]
        staging = {step.sink_index: Staging("") for step in steps if isinstance(step, SinkOperator)}
        descriptor = build_descriptor(subtask, self.graph.job_graph, region.subtasks, staging)
        in_slot = {each.job_vertex.id for each in region.subtasks if each.current.slot is subtask.current.slot}
        is_full = in_slot == {each.job_vertex.id for each in region.subtasks}
        manager = SimpleNamespace(pool=lambda owner, pages: pages)
        context = TaskContext(descriptor, SimpleNamespace(memory_manager=manager), Configuration())
        for step in descriptor.chain:
            if step.memory_weight:
                self.pages[id(step)].append((context.page_pool(step), is_full))
        count = len(subtask.partitions)
        sizes = tuple(packed_sizes((0,) * each.subpartition_count) for each in subtask.partitions)
        return TaskReport(
            subtask.current.attempt,
            "FINISHED",
            partition_rows=(0,) * count,
            partition_bytes=(0,) * count,
            subpartition_bytes=sizes,
        )


def explained(optimized: OptimizedPlan) -> dict[int, int]:
    """Pages by physical node, as the text says."""
    found, node = {}, -1
    for line in explain(optimized).splitlines()[1:]:
        if (head := re.match(r"[ │├└─]*(?:[^\[]*: )?\[(\d+)\] ", line)) is not None:
            node = int(head[1])
        if (pages := re.search(r"memory .* of a slot \((\d+) pages\)$", line)) is not None:
            found[node] = int(pages[1])
    return found


def check(
    plan: Plan, settings: OptimizerSettings, table_of: Callable[[JobGraph], SlotTable], machines: int = 1
) -> None:
    optimized = optimize(plan, settings)
    graph = generate_job_graph(optimized, JobId.random(), "random")
    table = table_of(graph)
    deployment = _Deployment(msgspec.structs.replace(graph, adaptive=None), table, table.slot_count * machines)
    deployment.run()
    said = explained(optimized)
    descriptors: dict[int, OperatorDescriptor] = {node.id: node.descriptor for node in optimized.nodes}
    assert said == {node.id: node.pages for node in optimized.nodes if node.uses_memory}
    assert len(deployment.pages) == len(said)
    for node, pages in said.items():
        deployed = deployment.pages[id(descriptors[node])]
        assert {each for each, is_full in deployed if is_full} == {pages}, "where the whole region is in the slot"
        assert all(each >= pages for each, _ in deployed), "others have more"


def configured(settings: dict[str, object]) -> Configuration:
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set(key, value, "test")
    return configuration


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(plans().map(without_unread), configurations(), st.integers(0, 9), st.sampled_from([None, None, 1, 6]))
def test_an_embedded_cluster_gives_operators_the_pages_that_explain_says(plan, settings, number, parallelism):
    configuration, plan = configured(settings), with_parallelism(plan, number, parallelism)
    usual = settings["parallelism.default"]

    def table_of(graph: JobGraph) -> SlotTable:
        """Slots of an embedded cluster whose first job, which decides the size of pages, asked for as many subtasks."""
        slots = max(configuration.get(SLOTS), *(v.parallelism for v in graph.vertices))
        sizes = configured_sizes(configuration, max(slots, usual, *(node.parallelism or 1 for node in plan.nodes)))
        return SlotTable(slots, sizes.pages, sizes.spare_pages)

    check(plan, LocalExecutor().optimizer_settings(plan, configuration), table_of)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(plans().map(without_unread), configurations(), st.integers(0, 9), st.sampled_from([None, None, 1, 6]))
def test_a_cluster_gives_operators_the_pages_that_explain_says(plan, settings, number, parallelism):
    configuration = configured(settings)
    slots = configuration.get(SLOTS)
    sizes = configured_sizes(configuration, slots)
    hardware = TaskExecutorHardware(
        managed_memory=sizes.managed_bytes, spare_memory=sizes.spare_bytes, page_bytes=sizes.page_bytes
    )
    overview = TaskExecutorOverview(ResourceId.random(), "", "", slots, slots, 0, hardware)
    document = overview_document(TaskExecutorList((overview,)), JobList(()))
    executor = ClusterExecutor()
    executor._overview = (float("inf"), msgspec.convert(document, Overview))

    def table_of(_: JobGraph) -> SlotTable:
        return SlotTable(slots, sizes.pages, sizes.spare_pages)

    plan = with_parallelism(plan, number, parallelism)
    check(plan, executor.optimizer_settings(plan, configuration), table_of, machines=6)


@pytest.mark.parametrize("keeps_rows", [False, True])
def test_a_slot_without_pages_is_an_error_only_for_operators_that_keep_rows(keeps_rows):
    builder = Builder()
    source = builder.python(builder.source(schema(k="int64"), rows=1e6, splits=1000))
    builder.sink(builder.sort(source, "k") if keeps_rows else source)
    plan = builder.plan()
    mapped = msgspec.structs.replace(plan.node(1), parallelism=1000)
    plan = msgspec.structs.replace(plan, nodes=(plan.node(0), mapped, *plan.nodes[2:]))
    configuration = configured({"parallelism.default": 1, "taskmanager.memory.managed.size": 1 * MIB})
    settings = LocalExecutor().optimizer_settings(plan, configuration)
    expected = pytest.raises(MemoryBudgetError, match="a slot has 0 pages") if keeps_rows else nullcontext()
    with expected:
        optimize(plan, settings)
