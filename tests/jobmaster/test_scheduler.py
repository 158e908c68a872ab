"""Scheduling by pipelined regions: which one may start, and in which slots."""

from __future__ import annotations

import msgspec
import pytest

from engine.clock import ManualClock
from engine.graph.deployment import PartitionLocation
from engine.graph.operator_descriptor import HashJoinOperator, PythonOperator, SourceOperator
from engine.graph.runtime_filter import RuntimeFilter, filters_made_by
from engine.graph.said_operators import JoinType
from engine.graph.ship_strategy import ResultPartitionType
from engine.graph.source_spec import TextSource
from engine.graph.subpartition_share import WHOLE
from engine.ids import AllocationId, ResourceId
from engine.jobmaster import deployment
from engine.jobmaster.deployment import ProducerPlaces, build_descriptor
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.execution_state import ExecutionState
from engine.jobmaster.graph_revision import revise
from engine.jobmaster.scheduler import PRODUCING, RegionState, Scheduler
from engine.jobmaster.slot_pool import AllocatedSlot, SlotPool
from tests.jobmaster.job_graphs import BLOCKING, PIPELINED, Edge, job_graph
from tests.jobmaster.test_execution_graph import RUN, advance, finish

CLOCK = ManualClock()
HERE, THERE = ResourceId("a" * 32), ResourceId("b" * 32)


def slot(resource_id=HERE, pages=100):
    return AllocatedSlot(AllocationId.random(), resource_id, f"address-{resource_id}", "data:1", pages)


def pool_with(*slots):
    pool = SlotPool()
    for each in slots:
        pool.offer(pool.open_request(1), each)
    for request_id in range(1, len(slots) + 1):
        pool.close_request(request_id)
    return pool


def regions_of(*arguments):
    return Scheduler(build_execution_graph(job_graph(*arguments))).regions


@pytest.mark.parametrize(
    ("parallelisms", "edges", "expected"),
    [
        ([4], [], [1, 1, 1, 1]),
        ([4, 4], [Edge(0, 1)], [4]),
        ([4, 4], [Edge(0, 1, "FORWARD")], [1, 1, 1, 1]),
        ([4, 2], [Edge(0, 1, "RESCALE")], [2, 2]),
        ([4, 1], [Edge(0, 1, "GLOBAL")], [4]),
        ([3, 2], [Edge(0, 1, result_type=BLOCKING)], [1, 1, 1, 1, 1]),
        ([2, 2, 2], [Edge(0, 1, "FORWARD"), Edge(1, 2)], [2]),
    ],
)
def test_regions_are_subtasks_connected_by_pipelined_edges(parallelisms, edges, expected):
    assert [region.slot_count for region in regions_of(parallelisms, edges)] == expected


def test_a_slot_runs_one_subtask_of_each_vertex():
    graph = build_execution_graph(job_graph([3, 2], [Edge(0, 1)]))
    scheduler = Scheduler(graph)
    scheduler.start_regions(pool_with(slot(), slot(), slot()), CLOCK)
    slots = [[vertex.current.slot for vertex in each.subtasks] for each in graph.vertices]
    assert len(set(slots[0])) == 3 and slots[1] == slots[0][:2]


def test_a_region_starts_as_a_whole_or_not_at_all():
    graph = build_execution_graph(job_graph([3, 3], [Edge(0, 1)]))
    scheduler = Scheduler(graph)
    assert scheduler.start_regions(pool_with(slot(), slot()), CLOCK) == []
    assert {vertex.current.state for vertex in graph} == {ExecutionState.CREATED}


class _Counting(frozenset):
    looks = 0

    def __contains__(self, state):
        _Counting.looks += 1
        return super().__contains__(state)


def test_readers_of_a_whole_result_refer_to_one_table_of_its_places():
    graph = build_execution_graph(job_graph([3, 3], [Edge(0, 1)]))
    scheduler = Scheduler(graph)
    scheduler.start_regions(pool_with(slot(), slot(), slot(THERE)), CLOCK)
    (region,) = scheduler.regions
    places = ProducerPlaces()

    def gate_of(consumer):
        return build_descriptor(consumer, graph.job_graph, region.subtasks, {}, places=places).gates[0]

    first, second, far = map(gate_of, graph.vertices[1].subtasks)
    assert first.producers is second.producers and far.producers != first.producers
    assert [gate.reads for gate in (first, second)] == [(((0, WHOLE),),), (((1, WHOLE),),)]
    places.begin(graph.version)
    assert gate_of(graph.vertices[1].subtasks[0]).producers is not first.producers
    again = gate_of(graph.vertices[1].subtasks[0])
    places.begin(graph.version)
    assert gate_of(graph.vertices[1].subtasks[0]).producers is again.producers
    for state in (ExecutionState.DEPLOYING, ExecutionState.FAILED):
        graph.vertices[0].subtasks[0].current.transition(state, CLOCK)
    failed = graph.vertices[0].subtasks[0]
    slot_before = failed.current.slot
    graph.restart(failed).slot = slot_before
    places.begin(graph.version)  # another attempt produces it now
    later = gate_of(graph.vertices[1].subtasks[0])
    assert later.producers[1:] == first.producers[1:]
    assert later.producers[0].partition == failed.partitions[0].id != first.producers[0].partition


def test_consumers_are_deployed_when_their_pipelined_producers_elsewhere_run():
    graph = build_execution_graph(job_graph([2, 1], [Edge(0, 1)]))
    scheduler = Scheduler(graph)
    scheduler.start_regions(pool_with(slot(), slot(THERE)), CLOCK)
    first, second = graph.vertices[0].subtasks
    (consumer,) = graph.vertices[1].subtasks
    assert scheduler.deployable() == [first, second]
    advance(first, *RUN[1:])
    advance(second, *RUN[1:3])
    assert scheduler.deployable() == []
    advance(second, ExecutionState.RUNNING)
    scheduler.produces(second)
    assert scheduler.deployable() == [consumer]


def test_consumers_are_deployed_with_their_pipelined_producers_in_the_same_process():
    graph = build_execution_graph(job_graph([2, 1, 1], [Edge(0, 1), Edge(1, 2)]))
    scheduler = Scheduler(graph)
    scheduler.start_regions(pool_with(slot(), slot()), CLOCK)
    assert scheduler.deployable() == list(graph), "producers first"
    for producer in graph.vertices[0].subtasks:
        advance(producer, *RUN[1:2])
    assert scheduler.deployable() == [each for vertex in graph.vertices[1:] for each in vertex.subtasks]


def test_a_subtask_is_looked_at_when_what_it_waits_for_has_changed(monkeypatch):
    count = 30
    graph = build_execution_graph(job_graph([count, 1], [Edge(0, 1)]))
    scheduler = Scheduler(graph)
    scheduler.start_regions(pool_with(slot(THERE), *(slot() for _ in range(count - 1))), CLOCK)
    (consumer,) = graph.vertices[1].subtasks
    assert scheduler.deployable() == list(graph.vertices[0].subtasks)
    monkeypatch.setattr("engine.jobmaster.scheduler.PRODUCING", _Counting(PRODUCING))
    _Counting.looks = 0
    for producer in graph.vertices[0].subtasks:
        assert consumer not in scheduler.deployable()
        advance(producer, *RUN[1:])
        scheduler.produces(producer)
    assert _Counting.looks == 0
    assert scheduler.deployable() == [consumer]
    assert _Counting.looks == count


def test_producers_are_looked_at_once_for_all_of_their_consumers(monkeypatch):
    graph = build_execution_graph(job_graph([30, 30], [Edge(0, 1)]))
    scheduler = Scheduler(graph)
    scheduler.start_regions(pool_with(*(slot() for _ in range(30))), CLOCK)
    monkeypatch.setattr("engine.jobmaster.scheduler.PRODUCING", _Counting(PRODUCING))
    _Counting.looks = 0
    for producer in graph.vertices[0].subtasks:
        advance(producer, *RUN[1:])
    assert scheduler.deployable() == list(graph.vertices[1].subtasks)
    assert _Counting.looks == 30


def test_readers_of_a_blocking_result_wait_for_all_of_its_producers():
    graph = build_execution_graph(job_graph([2, 1], [Edge(0, 1, result_type=BLOCKING)]))
    scheduler = Scheduler(graph)
    pool = pool_with(slot())
    reader = scheduler.regions[-1]
    for producer in graph.vertices[0].subtasks:
        assert reader not in scheduler.waiting
        scheduler.start_regions(pool, CLOCK)
        advance(producer, *RUN[1:])
        finish(graph, producer)
        assert scheduler.subtask_ended(producer, pool)
    assert reader in scheduler.waiting
    scheduler.start_regions(pool, CLOCK)
    assert reader.state is RegionState.RUNNING


def test_a_revised_graph_withdraws_the_requests_of_regions_that_are_no_more():
    graph = build_execution_graph(job_graph([2, 2], [Edge(0, 1, result_type=BLOCKING)]))
    scheduler = Scheduler(graph)
    kept, _, asked, _ = scheduler.regions
    kept.request_id, asked.request_id = 3, 4
    source, reader = graph.job_graph.vertices
    fewer = msgspec.structs.replace(reader, parallelism=1)
    revise(graph, msgspec.structs.replace(graph.job_graph, vertices=(source, fewer)))
    assert scheduler.revise() == (4,)
    assert scheduler.regions[0] is kept and kept.request_id == 3
    assert [region.slot_count for region in scheduler.regions] == [1, 1, 1]
    assert scheduler.regions[2].request_id is None
    assert scheduler.revise() == ()


def test_requests_of_regions_whose_inputs_are_missing_again_are_withdrawn_once():
    graph = build_execution_graph(job_graph([1, 1, 1], [Edge(0, 1, result_type=BLOCKING)]))
    scheduler = Scheduler(graph)
    region = {region.subtasks[0].job_vertex.id.index: region for region in scheduler.regions}
    ready, reader = region[2], region[1]
    assert scheduler.withdraw_requests() == ()
    ready.request_id, reader.request_id = 5, 6
    assert scheduler.withdraw_requests() == (6,)
    assert scheduler.withdraw_requests() == ()
    assert (ready.request_id, reader.request_id) == (5, None)


def test_a_tdd_has_gates_channels_partitions_and_pages():
    graph = build_execution_graph(job_graph([2, 2], [Edge(0, 1)], weights={0: 1.0, 1: 3.0}))
    scheduler = Scheduler(graph)
    scheduler.start_regions(pool_with(slot(HERE), slot(THERE)), CLOCK)
    consumer = graph.vertices[1].subtasks[0]
    descriptor = build_descriptor(consumer, graph.job_graph, scheduler.region_of(consumer).subtasks, {})
    (gate,) = descriptor.gates
    assert [(c.location, c.address, c.subpartition_index) for c in gate.channels] == [
        (PartitionLocation.LOCAL, "", 0),
        (PartitionLocation.REMOTE, "data:1", 0),
    ]
    assert descriptor.pages == (6 + (100 - 12) * 3 // 4,)
    producer = graph.vertices[0].subtasks[1]
    descriptor = build_descriptor(producer, graph.job_graph, scheduler.region_of(producer).subtasks, {})
    assert [(p.id, p.subpartition_count, p.consumer_parallelism) for p in descriptor.partitions] == [
        (producer.partitions[0].id, 2, 2)
    ]


@pytest.mark.parametrize(("result_type", "is_shared"), [(PIPELINED, True), (BLOCKING, False)])
def test_subtasks_share_splits_where_all_of_them_run_again_together(result_type, is_shared):
    graph = build_execution_graph(job_graph([2, 2], [Edge(0, 1, result_type=result_type)]))
    scheduler = Scheduler(graph)
    scheduler.start_regions(pool_with(slot(HERE), slot(THERE)), CLOCK)
    for source in graph.vertices[0].subtasks:
        region = scheduler.region_of(source).subtasks
        assert build_descriptor(source, graph.job_graph, region, {}).shares_splits == is_shared


def filtering_graph(filters, build_left=False, result_type=None):
    """Two subtasks of a source that send their rows, hashed, to those of a join that filters them."""
    graph = job_graph([2, 2], [Edge(0, 1)])
    source, join = graph.vertices
    reading = SourceOperator(TextSource((), (), ()), filters=filters)
    probing = HashJoinOperator(JoinType.INNER, ("k",), ("k",), build_left, (), filters=filters[:1])
    edge = msgspec.structs.replace(join.inputs[0], input_index=0)
    outputs = tuple(
        msgspec.structs.replace(output, result_type=result_type or output.result_type) for output in source.outputs
    )
    vertices = (
        msgspec.structs.replace(
            source, chain=(msgspec.structs.replace(source.chain[0], operator=reading),), outputs=outputs
        ),
        msgspec.structs.replace(
            join, chain=(msgspec.structs.replace(join.chain[0], operator=probing),), inputs=(edge,)
        ),
    )
    return build_execution_graph(msgspec.structs.replace(graph, vertices=vertices))


@pytest.mark.parametrize(
    ("places", "build_left", "result_type", "is_awaited"),
    [
        ((HERE, HERE), False, None, True),
        ((HERE, THERE), False, None, True),
        ((HERE, HERE), True, None, False),
        ((HERE, THERE), True, None, False),
        ((HERE, HERE), False, ResultPartitionType.BLOCKING, False),
    ],
)
def test_a_source_awaits_filters_of_joins_that_probe_with_its_rows(places, build_left, result_type, is_awaited):
    filters = (RuntimeFilter(3, "join", 0, "k"), RuntimeFilter(4, "another join", 0, "k"))
    graph = filtering_graph(filters, build_left, result_type)
    producer = graph.vertices[0].subtasks[0]
    for vertex in graph.vertices:
        for subtask, place in zip(vertex.subtasks, places, strict=True):
            subtask.current.slot = slot(place)
    (described,) = build_descriptor(producer, graph.job_graph, [producer], {}).partitions
    assert described.filters == (filters[:1] if is_awaited else ())
    elsewhere = [each for each in graph.vertices[1].subtasks if each.current.slot.resource_id != HERE]
    assert [(place.partition, place.address) for place in described.filter_places] == [
        (filters_made_by(each.current.attempt), each.current.slot.data_address) for each in elsewhere if is_awaited
    ]


def test_filters_of_too_many_consumers_elsewhere_are_not_read(monkeypatch):
    monkeypatch.setattr(deployment, "FILTER_PLACES_MAX", 0)
    graph = filtering_graph((RuntimeFilter(3, "join", 0, "k"),))
    producer = graph.vertices[0].subtasks[0]
    for vertex in graph.vertices:
        for subtask, place in zip(vertex.subtasks, (HERE, THERE), strict=True):
            subtask.current.slot = slot(place)
    (described,) = build_descriptor(producer, graph.job_graph, [producer], {}).partitions
    assert (described.filters, described.filter_places) == ((), ())


@pytest.mark.parametrize("has_functions", [False, True])
def test_pages_that_workers_do_not_need_go_to_the_operators_of_a_slot(has_functions):
    graph = build_execution_graph(job_graph([1], weights={0: 1.0}))
    (vertex,) = graph.job_graph.vertices
    if has_functions:
        function = PythonOperator("map", b"", "shout", "job.py", 3)
        step = msgspec.structs.replace(vertex.chain[0], operator=function, memory_weight=0.0)
        vertex = msgspec.structs.replace(vertex, chain=(*vertex.chain, step))
    described = msgspec.structs.replace(graph.job_graph, vertices=(vertex,))
    (subtask,) = graph.vertices[0].subtasks
    subtask.current.slot = msgspec.structs.replace(slot(), spare_pages=60)
    assert build_descriptor(subtask, described, [subtask], {}).pages[0] == (100 if has_functions else 160)


def test_a_consumer_is_not_described_before_its_producer_has_a_slot():
    graph = build_execution_graph(job_graph([1, 1], [Edge(0, 1)]))
    consumer = graph.vertices[1].subtasks[0]
    consumer.current.slot = slot()
    with pytest.raises(AssertionError, match="is read before it has a slot"):
        build_descriptor(consumer, graph.job_graph, [consumer], {})


def test_the_pool_keeps_slots_of_a_request_for_it_and_refuses_what_is_too_much():
    pool = SlotPool()
    request = pool.open_request(2)
    slots = [slot(), slot(), slot()]
    assert [pool.offer(request, each) for each in (slots[0], slots[0])] == [True, True]
    assert pool.take(2, request) is None and pool.take(1, None) is None
    assert pool.offer(request, slots[1]) and not pool.offer(request, slots[2])
    assert pool.take(2, request) == (slots[0], slots[1])
    assert not pool.offer(request, slots[2])
    pool.give_back(slots[0])
    assert pool.take(1, None) == (slots[0],)
    pool.give_back(slots[1])
    assert pool.release_idle() == (slots[1],) and pool.slots == (slots[0],)


def test_a_lost_task_executor_takes_its_slots_and_hurts_its_requests():
    pool = SlotPool()
    whole, hurt = pool.open_request(1), pool.open_request(2)
    pool.offer(whole, slot(HERE))
    pool.offer(hurt, slot(THERE))
    pool.keep(THERE, (), is_draining=True)
    assert pool.avoided == {THERE}
    assert pool.remove_task_executor(THERE) == (hurt,)
    assert [each.resource_id for each in pool.slots] == [HERE] and not pool.avoided


def test_a_slot_that_is_held_no_more_does_not_come_back():
    pool, kept, gone, elsewhere = SlotPool(), slot(HERE), slot(HERE), slot(THERE)
    for each in (kept, gone, elsewhere):
        pool.adopt(each)
    pool.keep(HERE, (kept.allocation_id,))
    for each in (kept, gone, elsewhere):
        pool.give_back(each)
    assert pool.release_idle() == (kept, elsewhere)
