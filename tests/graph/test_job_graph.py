"""Job graphs: byte form, edges, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from engine.errors import PlanError
from engine.graph.job_graph import JobGraph
from engine.ids import JobId
from engine.optimizer.job_graph_generator import generate_job_graph
from engine.optimizer.optimizer import optimize
from engine.optimizer.settings import OptimizerSettings
from tests.optimizer.plan_building import skew_join


def job_graph() -> JobGraph:
    return generate_job_graph(optimize(skew_join(), OptimizerSettings(parallelism=4)), JobId("a" * 32), "skew")


def test_a_job_graph_survives_its_byte_form():
    graph = job_graph()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(graph), type=JobGraph) == graph


def test_edges_are_found_by_their_data_sets():
    graph = job_graph()
    *_, join = graph.vertices
    for edge in join.inputs:
        assert graph.data_set(edge.data_set).consumer == join.id
        assert graph.vertex(edge.data_set.producer).source is not None


def test_a_data_set_with_two_consumers_is_refused():
    graph = job_graph()
    first = graph.vertices[0]
    wrong = msgspec.structs.replace(first.outputs[0], consumer=first.id)
    vertices = (msgspec.structs.replace(first, outputs=(wrong,)), *graph.vertices[1:])
    with pytest.raises(PlanError, match="consumed by two vertices"):
        msgspec.structs.replace(graph, vertices=vertices).validate()


def test_vertices_out_of_order_are_refused():
    graph = job_graph()
    with pytest.raises(PlanError, match="malformed"):
        msgspec.structs.replace(graph, vertices=graph.vertices[::-1]).validate()
