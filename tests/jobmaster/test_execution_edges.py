"""Edges between subtasks: the same from both sides, and no memory for each of them."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.index_set import IndexSet
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph


def ends(edge):
    return (
        edge.partition.producer.subtask_index,
        edge.consumer.subtask_index,
        edge.subpartition_index,
        edge.subpartition_count,
    )


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from(["HASH", "RESCALE", "BROADCAST"]))
def test_both_ends_of_an_edge_have_the_same(producers, consumers, kind):
    graph = build_execution_graph(job_graph([producers, consumers], [Edge(0, 1, kind, BLOCKING)]))
    read = {ends(edge) for subtask in graph.vertices[1].subtasks for edges in subtask.inputs for edge in edges}
    partitions = [subtask.partitions[0] for subtask in graph.vertices[0].subtasks]
    assert {ends(edge) for partition in partitions for edge in partition.consumers} == read
    for partition in partitions:  # each subpartition is read by one subtask
        assert sorted(edge.subpartition_index for edge in partition.consumers) == list(
            range(partition.subpartition_count)
        )
    for subtask in graph.vertices[1].subtasks:
        (edges,) = subtask.inputs
        assert [edge.partition for edge in edges] == edges.partitions
        assert ends(edges[-1]) == ends(list(edges)[-1])
        assert [ends(edge) for edge in edges[1:]] == [ends(edge) for edge in edges][1:]
        with pytest.raises(IndexError):
            edges[len(edges)]


def test_a_graph_of_many_subtasks_takes_memory_by_subtask_and_not_by_pair():
    count = 300
    planned = job_graph([count, count], [Edge(0, 1, "HASH", BLOCKING)])
    tracemalloc.start()
    try:
        graph = build_execution_graph(planned)
        for vertex in graph.vertices[1].subtasks:
            for partition in vertex.inputs[0].partitions:
                partition.finished_consumers.add(vertex.subtask_index)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert all(
        len(partition.finished_consumers) == count for partition in graph.vertices[1].subtasks[0].inputs[0].partitions
    )
    assert held < count * count * 20


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 70))))
def test_a_set_of_bits_is_a_set(moves):
    bits, oracle = IndexSet(), set()
    for is_added, index in moves:
        (bits.add if is_added else bits.discard)(index)
        (oracle.add if is_added else oracle.discard)(index)
        assert (list(bits), len(bits), index in bits) == (sorted(oracle), len(oracle), index in oracle)
