"""Messages: as the published protocol has them on the wire, with Any around them or without."""

import pytest
from google.protobuf.any_pb2 import Any

from engine.errors import PlanError
from engine.flight_sql.messages import bare, given, packed, request, unpacked

URL = "type.googleapis.com/arrow.flight.protocol.sql."


def test_bytes_are_those_of_the_protocol():
    assert bare("CommandStatementQuery", query="SELECT 1") == b"\x0a\x08SELECT 1"
    assert bare("DoPutUpdateResult", record_count=-1) == b"\x08" + b"\xff" * 9 + b"\x01"
    assert bare("CommandGetSqlInfo", info=[0, 8]) == b"\x08\x00\x08\x08"
    message = Any.FromString(packed("TicketStatementQuery", statement_handle=b"\x00\xff"))
    assert (message.type_url, message.value) == (URL + "TicketStatementQuery", b"\x0a\x02\x00\xff")


def test_a_field_that_was_left_out_is_told_from_an_empty_one():
    _, message = unpacked(packed("CommandGetTables", catalog="", include_schema=True, table_types=["VIEW"]))
    assert (given(message, "catalog"), given(message, "db_schema_filter_pattern")) == ("", None)
    assert (list(message.table_types), message.include_schema) == (["VIEW"], True)
    assert list(
        unpacked(Any(type_url=URL + "CommandGetSqlInfo", value=b"\x0a\x02\x00\x08").SerializeToString())[1].info
    )


def test_the_message_of_an_action_may_have_any_around_it_or_not():
    name = "ActionCreatePreparedStatementRequest"
    assert request(name, packed(name, query="SELECT 1")).query == "SELECT 1"
    assert request(name, bare(name, query="SELECT 1")).query == "SELECT 1"


def test_other_bytes_are_errors():
    for data in (b"", b"\xff", b"SELECT 1", Any(type_url="type.googleapis.com/other.Message").SerializeToString()):
        with pytest.raises(PlanError, match="no message of Flight SQL"):
            unpacked(data)
    with pytest.raises(PlanError, match="CommandGetNothing is not known"):
        unpacked(Any(type_url=URL + "CommandGetNothing").SerializeToString())
    with pytest.raises(PlanError, match="damaged"):
        unpacked(Any(type_url=URL + "CommandGetTables", value=b"\x0a\x05a").SerializeToString())
