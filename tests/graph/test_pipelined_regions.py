"""Pipelined regions: which vertices run together, where edges are cut, and what runs first."""

from __future__ import annotations

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from engine.graph.exchange_mode import ExecutionMode
from engine.graph.job_graph import JobGraph
from engine.graph.pipelined_regions import (
    RegionEdge,
    _run_order,
    acyclic_cuts,
    cyclic_components,
    pipelined_components,
    pipelined_regions,
)
from engine.graph.ship_strategy import ResultPartitionType
from engine.ids import JobId
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.jobmaster import job_graphs
from tests.optimizer.plan_building import Builder, schema, skew_join


def edges(text: str) -> list[RegionEdge]:
    """Read "0=1 1-2": = is PIPELINED, - is BLOCKING."""
    return [RegionEdge(int(part[0]), int(part[2]), part[1] == "=") for part in text.split()]


def test_pipelined_edges_join_regions_and_blocking_ones_part_them():
    assert pipelined_components(5, edges("0=1 1-2 2=3")) == [0, 0, 2, 2, 4]


def test_an_edge_beside_a_blocking_path_is_cut():
    # the region {0, 2} would wait for 1, and 1 for 0, which is in that region
    assert cyclic_components(pipelined_components(3, edges("0=2 0-1 1-2")), edges("0=2 0-1 1-2")) == {0, 1}
    assert acyclic_cuts(3, edges("0=2 0-1 1-2")) == {0}


def test_a_blocking_edge_inside_a_region_is_resolved():
    # 0 and 1 are in one region through 2, but 1 waits for 0
    assert acyclic_cuts(3, edges("0-1 0=2 1=2")) == {1}


def test_two_regions_that_wait_for_each_other_are_parted():
    cyclic = edges("0=3 1=2 0-2 1-3")
    cuts = acyclic_cuts(4, cyclic)
    assert cuts
    assert not cyclic_components(pipelined_components(4, cut(cyclic, cuts)), cut(cyclic, cuts))


def test_a_dag_of_regions_is_left_alone():
    assert acyclic_cuts(5, edges("0=1 1-2 2=3 0-4 3-4")) == set()


def cut(all_edges, positions):
    return [
        msgspec.structs.replace(edge, is_pipelined=edge.is_pipelined and position not in positions)
        for position, edge in enumerate(all_edges)
    ]


@hypothesis.given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.booleans()).filter(lambda each: each[0] < each[1]))
)
def test_after_the_cuts_no_region_waits_for_itself(drawn):
    drawn_edges = [RegionEdge(*each) for each in drawn]
    cuts = acyclic_cuts(8, drawn_edges)
    after = cut(drawn_edges, cuts)
    assert not cyclic_components(pipelined_components(8, after), after)
    assert all(drawn_edges[position].is_pipelined for position in cuts)
    if not cyclic_components(pipelined_components(8, drawn_edges), drawn_edges):
        assert not cuts


def job_graph(mode: str) -> JobGraph:
    settings = OptimizerSettings(parallelism=4, execution_mode=ExecutionMode(mode))
    return generate_job_graph(optimize(skew_join(), settings), JobId.random(), "job")


def test_a_pipelined_job_is_one_region():
    (region,) = pipelined_regions(job_graph("PIPELINED"))
    assert [vertex.index for vertex in region.vertices] == [0, 1]
    assert (region.slot_count, region.inputs, region.outputs) == (4, (), ())


def test_build_sides_run_before_probe_sides():
    graph = job_graph("BATCH_FORCED")
    regions = pipelined_regions(graph)
    order = [graph.vertex(vertex).name for region in regions for vertex in region.vertices]
    assert order[0] == "parquet source currencies.parquet"
    build = next(region for region in regions if "flat_map" in graph.vertex(region.vertices[0]).name)
    join = next(region for region in regions if "join" in graph.vertex(region.vertices[0]).name)
    probe = next(region for region in regions if "source instruments" in graph.vertex(region.vertices[0]).name)
    assert build.index < probe.index < join.index
    assert build.index in join.inputs


def test_a_region_that_becomes_free_late_still_runs_first_when_it_feeds_a_build_side():
    assert _run_order({0: set(), 1: {0}, 2: {0}, 3: {1, 2}}, {0, 2}) == [0, 2, 1, 3]
    assert _run_order({0: set(), 1: set(), 2: {0, 1}}, {1}) == [1, 0, 2]


def test_only_joins_have_build_sides():
    blocking = [job_graphs.Edge(each, 2, result_type=ResultPartitionType.BLOCKING, input_index=each) for each in (0, 1)]
    regions = pipelined_regions(job_graphs.job_graph([1, 1, 1], blocking))
    assert [region.vertices[0].index for region in regions] == [0, 1, 2]


def test_a_graph_whose_regions_wait_for_each_other_is_refused():
    builder = Builder()
    sides = [builder.python(builder.source(schema(k="int64"), rows=1e6, path=name), "filter") for name in "ab"]
    builder.sink(builder.join(*sides, on="k"))
    graph = generate_job_graph(optimize(builder.plan(), OptimizerSettings(parallelism=4)), JobId.random(), "job")
    source, other, join = graph.vertices
    blocked = msgspec.structs.replace(other.outputs[0], result_type=ResultPartitionType.BLOCKING)
    # the join's region holds both sources, and waits for one of them
    first = msgspec.structs.replace(
        source, outputs=(*source.outputs, msgspec.structs.replace(source.outputs[0], consumer=other.id))
    )
    first_id = msgspec.structs.replace(source.outputs[0].id, output_index=1)
    first = msgspec.structs.replace(
        first, outputs=(source.outputs[0], msgspec.structs.replace(first.outputs[1], id=first_id))
    )
    edge = msgspec.structs.replace(join.inputs[0], data_set=first_id)
    second = msgspec.structs.replace(other, inputs=(edge,), outputs=(blocked,))
    with pytest.raises(ValueError, match="wait for each other"):
        pipelined_regions(msgspec.structs.replace(graph, vertices=(first, second, join)))
