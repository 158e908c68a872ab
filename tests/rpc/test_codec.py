"""Messages, replies and errors as bytes: round trips, golden ones, and bytes that are refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import __version__
from engine.errors import DataError, EngineError, FencedError, JobNotFoundError
from engine.gateways.messages import MESSAGE_TYPES, JobOverview, SubmitJob, SubmitTasks
from engine.graph.deployment import Staging
from engine.graph.source_spec import SinkSpec
from engine.ids import AllocationId, JobId, ResourceId
from engine.jobmaster.deployment import build_descriptor
from engine.jobmaster.execution_graph import build_execution_graph
from engine.jobmaster.slot_pool import AllocatedSlot
from engine.rpc.codec import MessageCodec
from engine.rpc.errors import MessageCodecError, RemoteCallError
from tests.jobmaster.job_graphs import BLOCKING, Edge, job_graph, splits

CODEC = MessageCodec(MESSAGE_TYPES)


def test_a_job_graph_and_a_task_deployment_descriptor_survive_the_round_trip():
    graph = job_graph(
        [2, 2],
        [Edge(0, 1, result_type=BLOCKING)],
        source_splits=splits(1, 2),
        sinks={1: SinkSpec("csv", "/out")},
    )
    assert CODEC.decode(CODEC.encode(SubmitJob(graph))) == SubmitJob(graph)
    execution_graph = build_execution_graph(graph)
    for vertex in execution_graph:
        vertex.current.slot = AllocatedSlot(AllocationId.random(), ResourceId.random(), "tm", "", 100)
        descriptor = build_descriptor(vertex, graph, [vertex], {1: Staging("/staging")})
        message = SubmitTasks((descriptor,), "jobmaster")
        assert CODEC.decode(CODEC.encode(message)) == message


def test_every_message_type_has_a_name_of_its_own_and_two_of_one_name_are_refused():
    assert len({message_type.__name__ for message_type in MESSAGE_TYPES}) == len(MESSAGE_TYPES)
    with pytest.raises(ValueError, match="two message types"):
        MessageCodec([JobOverview, JobOverview])


def test_what_is_not_a_message_neither_leaves_nor_enters():
    with pytest.raises(MessageCodecError, match="SinkSpec is not a message type"):
        CODEC.encode(SinkSpec("csv", "out"))
    with pytest.raises(MessageCodecError, match="'SinkSpec' is not a message type"):
        CODEC.decode(msgspec.msgpack.encode(("SinkSpec", {})))
    with pytest.raises(MessageCodecError, match="not a message"):
        CODEC.decode(msgspec.msgpack.encode(("CancelJob", {"job_id": 7})))


def test_a_newer_program_adds_to_messages_what_is_ignored_and_to_plans_what_is_refused_by_name():
    graph = msgspec.msgpack.decode(msgspec.msgpack.encode(job_graph([2])))
    assert (
        CODEC.decode(msgspec.msgpack.encode(("CancelJob", {"job_id": {"value": "a"}, "zone": 1}))).job_id.value == "a"
    )
    assert CODEC.decode(msgspec.msgpack.encode(("SubmitJob", {"job_graph": graph}))).job_graph.job_id
    graph["vertices"][0]["niceness"] = 1
    with pytest.raises(MessageCodecError, match=rf"unknown field `niceness`.*has {__version__}: it is to be upgraded"):
        CODEC.decode(msgspec.msgpack.encode(("SubmitJob", {"job_graph": graph})))


@given(st.binary(max_size=200))
def test_bytes_of_nobody_are_refused_and_nothing_else_happens(data):
    with pytest.raises(MessageCodecError):
        CODEC.decode(data)
    assert isinstance(CODEC.decode_error(data), EngineError)


def test_golden_bytes_of_a_message():
    overview = JobOverview(JobId("0" * 32), "q", "RUNNING", 1, -1)
    expected = (
        b"\x92\xabJobOverview\x89\xa6job_id\x81\xa5value\xd9\x20" + b"0" * 32 + b"\xa4name\xa1q"
        b"\xa6status\xa7RUNNING\xa8start_ms\x01\xa6end_ms\xff\xa5tasks\x80\xa7waiting\xc0"
        b"\xa4user\xa0\xa8begun_ms\xff"
    )
    assert CODEC.encode(overview) == expected


def test_engine_errors_arrive_as_themselves_with_their_fields():
    fenced = CODEC.decode_error(CODEC.encode_error(FencedError(3, 2)))
    assert isinstance(fenced, FencedError) and (fenced.expected, fenced.received) == (3, 2)
    assert str(fenced) == str(FencedError(3, 2))
    data = CODEC.decode_error(CODEC.encode_error(DataError("bad row", details="trace", job_id="7")))
    assert isinstance(data, DataError) and (str(data), data.details, data.job_id) == ("bad row", "trace", "7")
    assert isinstance(CODEC.decode_error(CODEC.encode_error(JobNotFoundError("no"))), JobNotFoundError)


def test_other_errors_arrive_as_a_remote_error_with_their_text():
    error = CODEC.decode_error(CODEC.encode_error(KeyError("x")))
    assert isinstance(error, RemoteCallError) and str(error) == "KeyError: 'x'"
